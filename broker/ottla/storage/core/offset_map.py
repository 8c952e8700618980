"""The last offset of each key in the dirty part of a log, in bounded memory. Pure."""

from hashlib import md5

from ottla.wire.batch import Batch
from ottla.wire.records import payload, spans

__all__ = ["KEYS_MAX", "OffsetMap", "fingerprint"]

KEYS_MAX = 500_000  # about 100 MB during a cleaning; the rest is left to the next one
FINGERPRINT_BYTES = 16


def fingerprint(key: bytes) -> bytes:
    """A 16-byte hash of the key, as in Kafka; a shorter key is used itself and cannot equal a hash."""
    return key if len(key) < FINGERPRINT_BYTES else md5(key, usedforsecurity=False).digest()


class OffsetMap:
    """Invariant: of all records from `start` to `latest` the map holds the last offset of every key."""

    __slots__ = ("keys_max", "latest", "offsets", "start")

    def __init__(self, *, start: int, keys_max: int = KEYS_MAX) -> None:
        self.start = start
        self.keys_max = keys_max
        self.latest = start - 1
        self.offsets: dict[bytes, int] = {}

    def has_room(self, batch: Batch) -> bool:
        """The first batch always fits: otherwise a log with a batch larger than the map would never be cleaned."""
        return not self.offsets or len(self.offsets) + batch.count <= self.keys_max

    def add(self, batch: Batch) -> None:
        """Batches must be added in offset order."""
        records, offsets = payload(batch), self.offsets
        for _, _, _, delta, key_start, key_length, _, _ in spans(records, batch.count):
            offset = batch.base_offset + delta
            if key_length >= 0 and offset >= self.start:
                offsets[fingerprint(records[key_start : key_start + key_length])] = offset

    def reach(self, offset: int) -> None:
        """The map covers everything up to this offset."""
        self.latest = max(self.latest, offset)

    def supersedes(self, key: bytes, offset: int) -> bool:
        """Whether a later record of the key exists."""
        return self.offsets.get(fingerprint(key), -1) > offset
