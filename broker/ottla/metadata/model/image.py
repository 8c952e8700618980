"""The fleet's metadata at one version of the log. Pure, immutable: share it freely.

    image, changes = image.apply(records, version=entry.index, epoch=entry.term)

`apply` copies the maps it changes once per call, however many records the call has, and nothing else.
"""

import uuid
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from ottla.metadata.model import snapshot
from ottla.metadata.model.apply import ImageBuilder
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.records import Record
from ottla.metadata.model.state import Broker, ConfigResource, PartitionState, QuotaEntity, Topic

__all__ = ["Image"]

_EMPTY: Mapping[str, str] = MappingProxyType({})


class Image(msgspec.Struct, frozen=True):
    """`version` is the Raft index of the last entry applied, `epoch` its term."""

    cluster_id: str
    version: int = 0
    epoch: int = 0
    topics: Mapping[str, Topic] = {}
    topics_by_id: Mapping[uuid.UUID, Topic] = {}
    brokers: Mapping[int, Broker] = {}
    configs: Mapping[ConfigResource, Mapping[str, str]] = {}
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}
    features: Mapping[str, int] = {}
    features_epoch: int = -1
    next_producer_id: int = 0
    partition_count: int = 0

    def apply(self, records: Iterable[Record], *, version: int, epoch: int) -> "tuple[Image, Changes]":
        return self.apply_batches([(version, epoch, records)])

    def apply_batches(self, batches: Iterable[tuple[int, int, Iterable[Record]]]) -> "tuple[Image, Changes]":
        """Several entries (version, epoch, records) at the price of one."""
        builder = ImageBuilder(self)
        for version, epoch, records in batches:
            builder.apply(records, version=version, epoch=epoch)
        return msgspec.structs.replace(self, **builder.fields()), builder.changes()

    def partition(self, topic: str, index: int) -> PartitionState | None:
        found = self.topics.get(topic)
        return found.partitions[index] if found is not None and 0 <= index < len(found.partitions) else None

    def is_active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def config(self, resource_type: int, resource_name: str) -> Mapping[str, str]:
        """Settings made for exactly this resource; empty when there are none."""
        return self.configs.get((resource_type, resource_name), _EMPTY)

    def to_snapshot(self) -> bytes:
        return snapshot.encode(self)

    @classmethod
    def from_snapshot(cls, data: bytes) -> "Image":
        header, records = snapshot.decode(data)
        image, _ = cls(cluster_id=header.cluster_id).apply(records, version=header.version, epoch=header.epoch)
        return msgspec.structs.replace(image, features_epoch=header.features_epoch)
