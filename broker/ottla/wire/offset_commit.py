"""OffsetCommit by hand: thousands of groups commit several times a second, so this is a hot path. Pure.

Requests of the flexible versions (8, 9), which current clients send, are read into tuples; responses of all versions
are written. Tests hold both against kio.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from ottla.wire.reader import Malformed, Read, Tally, read_uvarint
from ottla.wire.writer import array_head, text

__all__ = ["CommitRequest", "PartitionCommit", "encode", "flexible_reader"]

PARTITION = Struct(">iqi")
LINE = Struct(">ih")
INT32 = Struct(">i")
FLEXIBLE_SINCE = 8
THROTTLE_SINCE = 3
NO_THROTTLE = bytes(4)
PARTITION_BYTES_MIN = PARTITION.size + 2

PartitionCommit = tuple[int, int, int, str | None]
"""Partition, offset, leader epoch, metadata."""


class CommitRequest(NamedTuple):
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: list[tuple[str, list[PartitionCommit]]]
    retention_time: int = -1


def flexible_reader(tally: Tally) -> Read:
    """Its reader raises Malformed, struct.error or IndexError, and TooMany."""

    def read(view: memoryview, position: int) -> tuple[CommitRequest, int]:
        tally.begin()
        return _read_flexible(view, position, tally)

    return read


def _read_flexible(view: memoryview, position: int, tally: Tally) -> tuple[CommitRequest, int]:
    group_id, position = _text(view, position)
    (generation,) = INT32.unpack_from(view, position)
    member_id, position = _text(view, position + 4)
    instance_id, position = _nullable_text(view, position)
    count, position = read_uvarint(view, position)
    topics = []
    for _ in range(_checked(count - 1, view, position, 3, tally)):
        topic, position = _topic(view, position, tally)
        topics.append(topic)
    return CommitRequest(group_id, generation, member_id, instance_id, topics), _after_tags(view, position, tally)


def _topic(view: memoryview, position: int, tally: Tally) -> tuple[tuple[str, list[PartitionCommit]], int]:
    name, position = _text(view, position)
    count, position = read_uvarint(view, position)
    partitions: list[PartitionCommit] = []
    for _ in range(_checked(count - 1, view, position, PARTITION_BYTES_MIN, tally)):
        index, offset, leader_epoch = PARTITION.unpack_from(view, position)
        metadata, position = _nullable_text(view, position + PARTITION.size)
        partitions.append((index, offset, leader_epoch, metadata))
        position = _after_tags(view, position, tally)
    return (name, partitions), _after_tags(view, position, tally)


def _nullable_text(view: memoryview, position: int) -> tuple[str | None, int]:
    size = view[position]
    if size <= 1:  # null or empty: most members have no instance id and most offsets no metadata
        return (None if size == 0 else ""), position + 1
    return _text(view, position)


def _text(view: memoryview, position: int) -> tuple[str, int]:
    size, position = read_uvarint(view, position)
    end = position + size - 1
    if size == 0 or end > len(view):
        raise Malformed(f"a text of {size - 1} bytes at {position}, {len(view) - position} remain")
    return str(view[position:end], "utf-8"), end


def _checked(count: int, view: memoryview, position: int, size_min: int, tally: Tally) -> int:
    if count * size_min > len(view) - position:
        raise Malformed(f"array claims {count} elements, {len(view) - position} bytes remain")
    tally.add(count)
    return max(count, 0)


def _after_tags(view: memoryview, position: int, tally: Tally) -> int:
    count, position = read_uvarint(view, position)
    if count:
        _checked(count, view, position, 2, tally)
    for _ in range(count):
        _, position = read_uvarint(view, position)
        size, position = read_uvarint(view, position)
        position += size
    return position


def encode(version: int, topics: Iterable[tuple[str, list[tuple[int, int]]]]) -> list[bytes]:
    """The response's body from (topic, [(partition, error code)])."""
    flexible = version >= FLEXIBLE_SINCE
    tail = b"\0" if flexible else b""
    listed = list(topics)
    parts = [NO_THROTTLE] if version >= THROTTLE_SINCE else []
    parts.append(array_head(len(listed), flexible=flexible))
    for name, lines in listed:
        parts += (text(name, flexible=flexible), array_head(len(lines), flexible=flexible))
        parts += [LINE.pack(index, code) + tail for index, code in lines]
        parts.append(tail)
    parts.append(tail)
    return parts
