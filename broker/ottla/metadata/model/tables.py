"""The tables of the fleet's metadata at one version of the log, and lookups in them. Pure, immutable."""

import uuid
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from ottla.metadata.model.acls import AclBinding
from ottla.metadata.model.credentials import ScramCredential, ScramOwner
from ottla.metadata.model.state import Broker, ConfigResource, PartitionState, QuotaEntity, Topic
from ottla.metadata.model.tokens import DelegationToken

__all__ = ["Tables"]

_EMPTY: Mapping[str, str] = MappingProxyType({})


class Tables(msgspec.Struct, frozen=True):
    """`version` is the Raft index of the last entry applied, `epoch` its term."""

    cluster_id: str
    version: int = 0
    epoch: int = 0
    topics: Mapping[str, Topic] = {}
    topics_by_id: Mapping[uuid.UUID, Topic] = {}
    brokers: Mapping[int, Broker] = {}
    configs: Mapping[ConfigResource, Mapping[str, str]] = {}
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}
    scram_credentials: Mapping[ScramOwner, ScramCredential] = {}
    delegation_tokens: Mapping[str, DelegationToken] = {}
    acls: Mapping[uuid.UUID, AclBinding] = {}
    features: Mapping[str, int] = {}
    features_epoch: int = -1
    next_producer_id: int = 0
    partition_count: int = 0
    text_bytes: int = 0
    """Of settings, quotas, ACLs and credentials: see `metadata.model.text_bytes`."""

    def partition(self, topic: str, index: int) -> PartitionState | None:
        found = self.topics.get(topic)
        return found.partitions[index] if found is not None and 0 <= index < len(found.partitions) else None

    def is_active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def config(self, resource_type: int, resource_name: str) -> Mapping[str, str]:
        """Settings made for exactly this resource; empty when there are none."""
        return self.configs.get((resource_type, resource_name), _EMPTY)
