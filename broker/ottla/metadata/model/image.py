"""The fleet's metadata at one version of the log. Pure, immutable: share it freely.

    image, changes = image.apply(records, version=entry.index, epoch=entry.term)

`apply` copies the maps it changes once per call, however many records the call has, and nothing else.
"""

from collections.abc import Iterable

import msgspec

from ottla.metadata.model import snapshot
from ottla.metadata.model.apply import ImageBuilder
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.records import Record
from ottla.metadata.model.tables import Tables

__all__ = ["Image"]


class Image(Tables, frozen=True):
    def apply(self, records: Iterable[Record], *, version: int, epoch: int) -> "tuple[Image, Changes]":
        return self.apply_batches([(version, epoch, records)])

    def apply_batches(self, batches: Iterable[tuple[int, int, Iterable[Record]]]) -> "tuple[Image, Changes]":
        """Several entries (version, epoch, records) at the price of one."""
        builder = ImageBuilder(self)
        for version, epoch, records in batches:
            builder.apply(records, version=version, epoch=epoch)
        return msgspec.structs.replace(self, **builder.fields()), builder.changes()

    def to_snapshot(self) -> bytes:
        return snapshot.encode(self)

    @classmethod
    def from_snapshot(cls, data: bytes) -> "Image":
        header, records = snapshot.decode(data)
        image, _ = cls(cluster_id=header.cluster_id).apply(records, version=header.version, epoch=header.epoch)
        return msgspec.structs.replace(image, features_epoch=header.features_epoch)
