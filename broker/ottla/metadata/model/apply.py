"""How records change an image. Pure: the builder is private to one call of `Image.apply`.

A record that does not fit (a partition of a topic that does not exist, say) is a bug of the controller that wrote it
or a damaged log: it raises MetadataError, and the node stops rather than guess.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ottla.metadata.model.acls import AclBinding
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.credentials import PreviousKeys, ScramCredential, ScramKeys
from ottla.metadata.model.records import Record
from ottla.metadata.model.state import Broker, ConfigResource, Listener, PartitionState, ResourceType, Topic
from ottla.metadata.model.tables import Tables
from ottla.metadata.model.text_bytes import acl_bytes, credential_bytes, quota_bytes, setting_bytes, token_bytes
from ottla.metadata.model.tokens import DelegationToken
from ottla.pb import metadata_pb2 as pb

__all__ = ["ImageBuilder", "MetadataError"]


class MetadataError(Exception):
    """The metadata log holds a record that does not fit what came before it."""


class ImageBuilder:
    def __init__(self, tables: Tables) -> None:
        self._before = tables
        self._version, self._epoch = tables.version, tables.epoch
        self._drafts: dict[str, dict[Any, Any]] = {}
        self._scalars: dict[str, int] = {}
        # Partition lists of topics changed so far: made into topics once, at the end.
        self._open: dict[uuid.UUID, list[PartitionState]] = {}
        self._ids: dict[bytes, uuid.UUID] = {}
        self._partition_count = tables.partition_count
        self._text_bytes = tables.text_bytes
        self._created: dict[uuid.UUID, str] = {}
        self._deleted: dict[uuid.UUID, str] = {}
        self._partitions: dict[uuid.UUID, set[int]] = {}
        self._configs: set[ConfigResource] = set()
        self._brokers: set[int] = set()
        self._acls_added: dict[uuid.UUID, AclBinding] = {}
        self._acls_removed: dict[uuid.UUID, AclBinding] = {}

    def apply(self, records: Iterable[Record], *, version: int, epoch: int) -> None:
        self._version, self._epoch = version, epoch
        for record in records:
            kind = record.WhichOneof("kind")
            if kind is None:
                raise MetadataError(f"entry {version} holds a record of a kind that this version does not know")
            _APPLY[kind](self, getattr(record, kind))

    def fields(self) -> dict[str, Any]:
        """The fields of the image that changed."""
        self._close_topics()
        return {
            **self._drafts,
            **self._scalars,
            "version": self._version,
            "epoch": self._epoch,
            "partition_count": self._partition_count,
            "text_bytes": self._text_bytes,
        }

    def changes(self) -> Changes:
        return Changes(
            created=self._created,
            deleted=self._deleted,
            partitions=self._partitions,
            configs=self._configs,
            brokers=self._brokers,
            features="features" in self._drafts,
            client_quotas="client_quotas" in self._drafts,
            scram_credentials="scram_credentials" in self._drafts,
            delegation_tokens="delegation_tokens" in self._drafts,
            producer_ids="next_producer_id" in self._scalars,
            acls_added=self._acls_added,
            acls_removed=self._acls_removed,
        )

    # -- topics

    def topic(self, record: pb.TopicRecord) -> None:
        topics, by_id = self._draft("topics"), self._draft("topics_by_id")
        topic = Topic(name=record.name, id=self._id(record.id))
        if topic.name in topics or topic.id in by_id:
            raise MetadataError(f"entry {self._version} creates topic {topic.name} ({topic.id}), which exists")
        topics[topic.name] = by_id[topic.id] = topic
        self._created[topic.id] = topic.name
        self._open[topic.id] = []

    def partition(self, record: pb.PartitionRecord) -> None:
        topic_id = self._id(record.topic_id)
        partitions = self._partitions_of(topic_id)
        if record.index != len(partitions):
            raise MetadataError(f"entry {self._version} adds partition {record.index} of {topic_id} out of order")
        partitions.append(
            PartitionState(
                record.index,
                tuple(record.replicas),
                tuple(record.isr),
                record.leader,
                record.leader_epoch,
                record.partition_epoch,
                tuple(record.adding),
                tuple(record.removing),
                tuple(record.elr),
                tuple(record.last_known_elr),
                tuple(map(self._id, record.directories)),
            )
        )
        self._partition_count += 1
        self._touch(topic_id, record.index)

    def partition_change(self, record: pb.PartitionChangeRecord) -> None:
        topic_id = self._id(record.topic_id)
        partitions = self._partitions_of(topic_id)
        if not 0 <= record.index < len(partitions):
            raise MetadataError(f"entry {self._version} changes partition {record.index} of {topic_id}: no such one")
        old = partitions[record.index]
        changed: dict[str, Any] = {"partition_epoch": old.partition_epoch + 1}
        if record.HasField("leader"):
            changed.update(leader=record.leader, leader_epoch=old.leader_epoch + 1)
        for name in ("replicas", "isr", "adding", "removing", "elr", "last_known_elr"):
            if record.HasField(name):
                changed[name] = tuple(getattr(record, name).ids)
        if record.HasField("directories"):
            changed["directories"] = tuple(map(self._id, record.directories.ids))
        partitions[record.index] = msgspec.structs.replace(old, **changed)
        self._touch(topic_id, record.index)

    def remove_topic(self, record: pb.RemoveTopicRecord) -> None:
        topic_id = self._id(record.id)
        self._partition_count -= len(self._partitions_of(topic_id))
        topic = self._draft("topics_by_id").pop(topic_id)
        del self._draft("topics")[topic.name], self._open[topic_id]
        self._partitions.pop(topic_id, None)
        if topic_id in self._created:
            del self._created[topic_id]
        else:
            self._deleted[topic_id] = topic.name
        self._remove_configs((ResourceType.TOPIC, topic.name))

    # -- settings, brokers, features, ids

    def config(self, record: pb.ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        self._set_or_remove("configs", resource, record, setting_bytes)
        self._configs.add(resource)

    def client_quota(self, record: pb.ClientQuotaRecord) -> None:
        entity = tuple((each.type, each.name if each.HasField("name") else None) for each in record.entity)
        self._set_or_remove("client_quotas", entity, record, quota_bytes)

    def acl(self, record: pb.AclRecord) -> None:
        acl_id = self._id(record.id)
        if acl_id in self._current("acls"):
            raise MetadataError(f"entry {self._version} adds ACL {acl_id}, which exists")
        self._draft("acls")[acl_id] = self._acls_added[acl_id] = AclBinding(
            record.resource_type,
            record.pattern_type,
            record.resource_name,
            record.principal,
            record.host,
            record.operation,
            record.permission,
        )
        self._text_bytes += acl_bytes(self._acls_added[acl_id])

    def remove_acl(self, record: pb.RemoveAclRecord) -> None:
        acl_id = self._id(record.id)
        binding = self._draft("acls").pop(acl_id, None)
        if binding is None:
            raise MetadataError(f"entry {self._version} removes ACL {acl_id}, which does not exist")
        self._text_bytes -= acl_bytes(binding)
        if self._acls_added.pop(acl_id, None) is None:
            self._acls_removed[acl_id] = binding

    def _set_or_remove(
        self,
        table: str,
        owner: Any,
        record: pb.ConfigRecord | pb.ClientQuotaRecord,
        bytes_of: Callable[[Any, Mapping[str, Any]], int],
    ) -> None:
        """One value of an owner's; who has none left is not in the table."""
        before: Mapping[str, Any] = self._current(table).get(owner, {})
        values = dict(before)
        if record.HasField("value"):
            values[record.key] = record.value
        else:
            values.pop(record.key, None)
        self._text_bytes += bytes_of(owner, values) - bytes_of(owner, before)
        if values:
            self._draft(table)[owner] = values
        else:
            self._draft(table).pop(owner, None)

    def register_broker(self, record: pb.RegisterBrokerRecord) -> None:
        self._draft("brokers")[record.id] = Broker(
            id=record.id,
            epoch=record.epoch,
            incarnation=self._id(record.incarnation),
            rack=record.rack if record.HasField("rack") else None,
            listeners=tuple(Listener(each.name, each.host, each.port, each.protocol) for each in record.listeners),
            grpc_host=record.grpc_host,
            grpc_port=record.grpc_port,
            control_port=record.control_port,
            log_dirs=tuple(map(self._id, record.log_dirs)),
            features={name: (each.lowest, each.highest) for name, each in sorted(record.features.items())},
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
        )
        self._brokers.add(record.id)

    def unregister_broker(self, record: pb.UnregisterBrokerRecord) -> None:
        self._registered(record.id, record.epoch)
        del self._draft("brokers")[record.id]
        self._brokers.add(record.id)

    def broker_change(self, record: pb.BrokerChangeRecord) -> None:
        broker = self._registered(record.id, record.epoch)
        changed = {
            name: getattr(record, name) for name in ("fenced", "in_controlled_shutdown") if record.HasField(name)
        }
        self._draft("brokers")[record.id] = msgspec.structs.replace(broker, **changed)
        self._brokers.add(record.id)

    def feature_level(self, record: pb.FeatureLevelRecord) -> None:
        if record.level:
            self._draft("features")[record.name] = record.level
        else:
            self._draft("features").pop(record.name, None)
        self._scalars["features_epoch"] = self._version

    def producer_ids(self, record: pb.ProducerIdsRecord) -> None:
        self._scalars["next_producer_id"] = record.next

    # -- credentials

    def scram_credential(self, record: pb.ScramCredentialRecord) -> None:
        previous = record.previous if record.HasField("previous") else None
        owner = (record.user, record.mechanism)
        if owner not in self._current("scram_credentials"):
            self._text_bytes += credential_bytes(owner)
        self._draft("scram_credentials")[owner] = ScramCredential(
            salt=record.salt,
            iterations=record.iterations,
            keys=ScramKeys(record.stored_key, record.server_key),
            previous=PreviousKeys(ScramKeys(previous.stored_key, previous.server_key), previous.until_ms)
            if previous is not None
            else None,
        )

    def remove_scram_credential(self, record: pb.RemoveScramCredentialRecord) -> None:
        owner = (record.user, record.mechanism)
        if self._draft("scram_credentials").pop(owner, None) is None:
            raise MetadataError(f"entry {self._version} removes a credential of {record.user!r}, who has none")
        self._text_bytes -= credential_bytes(owner)

    def delegation_token(self, record: pb.DelegationTokenRecord) -> None:
        before = self._current("delegation_tokens").get(record.id)
        token = self._draft("delegation_tokens")[record.id] = DelegationToken(
            id=record.id,
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issued_ms=record.issued_ms,
            expires_ms=record.expires_ms,
            expires_ms_max=record.expires_ms_max,
        )
        self._text_bytes += token_bytes(token) - (token_bytes(before) if before is not None else 0)

    def remove_delegation_token(self, record: pb.RemoveDelegationTokenRecord) -> None:
        token = self._draft("delegation_tokens").pop(record.id, None)
        if token is None:
            raise MetadataError(f"entry {self._version} removes delegation token {record.id}, which does not exist")
        self._text_bytes -= token_bytes(token)

    def no_op(self, record: pb.NoOpRecord) -> None:
        pass

    # -- drafts

    def _current(self, name: str) -> Any:
        draft = self._drafts.get(name)
        return getattr(self._before, name) if draft is None else draft

    def _draft(self, name: str) -> dict[Any, Any]:
        draft = self._drafts.get(name)
        if draft is None:
            draft = self._drafts[name] = dict(getattr(self._before, name))
        return draft

    def _partitions_of(self, topic_id: uuid.UUID) -> list[PartitionState]:
        partitions = self._open.get(topic_id)
        if partitions is None:
            topic = self._current("topics_by_id").get(topic_id)
            if topic is None:
                raise MetadataError(f"entry {self._version} names topic {topic_id}, which does not exist")
            partitions = self._open[topic_id] = list(topic.partitions)
        return partitions

    def _close_topics(self) -> None:
        if not self._open:
            return
        topics, by_id = self._draft("topics"), self._draft("topics_by_id")
        for topic_id, partitions in self._open.items():
            name = by_id[topic_id].name
            topics[name] = by_id[topic_id] = Topic(name, topic_id, tuple(partitions))
        self._open.clear()

    def _registered(self, broker_id: int, epoch: int) -> Broker:
        broker: Broker | None = self._current("brokers").get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise MetadataError(
                f"entry {self._version} names broker {broker_id} epoch {epoch}, which is not registered"
            )
        return broker

    def _remove_configs(self, resource: ConfigResource) -> None:
        if resource in self._current("configs"):
            self._text_bytes -= setting_bytes(resource, self._draft("configs").pop(resource))
            self._configs.add(resource)

    def _touch(self, topic_id: uuid.UUID, index: int) -> None:
        self._partitions.setdefault(topic_id, set()).add(index)

    def _id(self, raw: bytes) -> uuid.UUID:
        known = self._ids.get(raw)
        if known is None:
            known = self._ids[raw] = uuid.UUID(bytes=raw)
        return known


_APPLY: dict[str, Callable[[ImageBuilder, Any], None]] = {
    "topic": ImageBuilder.topic,
    "partition": ImageBuilder.partition,
    "partition_change": ImageBuilder.partition_change,
    "remove_topic": ImageBuilder.remove_topic,
    "config": ImageBuilder.config,
    "register_broker": ImageBuilder.register_broker,
    "unregister_broker": ImageBuilder.unregister_broker,
    "broker_change": ImageBuilder.broker_change,
    "feature_level": ImageBuilder.feature_level,
    "producer_ids": ImageBuilder.producer_ids,
    "no_op": ImageBuilder.no_op,
    "client_quota": ImageBuilder.client_quota,
    "scram_credential": ImageBuilder.scram_credential,
    "remove_scram_credential": ImageBuilder.remove_scram_credential,
    "delegation_token": ImageBuilder.delegation_token,
    "remove_delegation_token": ImageBuilder.remove_delegation_token,
    "acl": ImageBuilder.acl,
    "remove_acl": ImageBuilder.remove_acl,
}
