"""What differs between two images: named, so that a subscriber touches only what changed. Pure."""

import uuid
from collections.abc import Mapping, Set
from typing import TypeVar

import msgspec

from ottla.metadata.model.acls import AclBinding
from ottla.metadata.model.state import ConfigResource, Topic
from ottla.metadata.model.tables import Tables

__all__ = ["Changes", "compare"]

_Key = TypeVar("_Key")


class Changes(msgspec.Struct, frozen=True):
    """`created` and `deleted` map topic ids to names; a topic made again under its old name is in both.

    `partitions` has the changed and new partition numbers of every topic that still exists, created ones too.
    """

    created: Mapping[uuid.UUID, str] = {}
    deleted: Mapping[uuid.UUID, str] = {}
    partitions: Mapping[uuid.UUID, Set[int]] = {}
    configs: Set[ConfigResource] = frozenset()
    brokers: Set[int] = frozenset()
    features: bool = False
    producer_ids: bool = False
    client_quotas: bool = False
    scram_credentials: bool = False
    delegation_tokens: bool = False
    acls_added: Mapping[uuid.UUID, AclBinding] = {}
    acls_removed: Mapping[uuid.UUID, AclBinding] = {}

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__struct_fields__)


def compare(old: Tables, new: Tables) -> Changes:
    """The changes between images that did not follow by `apply`: after a snapshot came from the leader."""
    kept = old.topics_by_id.keys() & new.topics_by_id.keys()
    partitions = {topic.id: _changed(old.topics_by_id.get(topic.id), topic) for topic in new.topics.values()}
    return Changes(
        created={key: topic.name for key, topic in new.topics_by_id.items() if key not in kept},
        deleted={key: topic.name for key, topic in old.topics_by_id.items() if key not in kept},
        partitions={key: changed for key, changed in partitions.items() if changed},
        configs=_differing(old.configs, new.configs),
        brokers=_differing(old.brokers, new.brokers),
        features=old.features != new.features,
        producer_ids=old.next_producer_id != new.next_producer_id,
        client_quotas=old.client_quotas != new.client_quotas,
        scram_credentials=old.scram_credentials != new.scram_credentials,
        delegation_tokens=old.delegation_tokens != new.delegation_tokens,
        acls_added={key: new.acls[key] for key in new.acls.keys() - old.acls.keys()},
        acls_removed={key: old.acls[key] for key in old.acls.keys() - new.acls.keys()},
    )


def _changed(old: Topic | None, new: Topic) -> set[int]:
    before = old.partitions if old is not None else ()
    known = len(before)
    return {state.index for state in new.partitions if state.index >= known or state != before[state.index]}


def _differing(old: Mapping[_Key, object], new: Mapping[_Key, object]) -> set[_Key]:
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
