"""Markers: the control batches that end a transaction in a partition. Pure.

One record each. Key: version 0 (2 bytes), kind (2 bytes: 0 abort, 1 commit). Value: version 0 (2 bytes), the
coordinator's epoch (4 bytes).
"""

from struct import Struct
from typing import NamedTuple

from ottla.wire.batch import Batch, parse
from ottla.wire.records import Record, encode

__all__ = ["Marker", "marker_batch"]

KEY = Struct(">hh")
VALUE = Struct(">hi")
VERSION = 0
NO_SEQUENCE = -1


class Marker(NamedTuple):
    """`epoch` is the producer's, at least that of its records: the coordinator may have bumped it (KIP-890)."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commit: bool


def marker_batch(marker: Marker, *, now_ms: int) -> Batch:
    record = Record(0, now_ms, KEY.pack(VERSION, marker.commit), VALUE.pack(VERSION, marker.coordinator_epoch))
    producer = (marker.producer_id, marker.epoch, NO_SEQUENCE)
    return parse(encode([record], producer=producer, is_transactional=True, is_control=True))
