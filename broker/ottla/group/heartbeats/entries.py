"""Entries: decoded records of consumer groups (KIP-848) and share groups (KIP-932) in the offsets topic. Pure.

Both have keys of a group's id and at most one more name, and flexible values of version 0.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from ottla.coordination.core import records
from ottla.coordination.core.records import VERSION, Record, reading, writing
from ottla.group.consumer.member import MemberState, Partitions
from ottla.wire.reader import Malformed
from ottla.wire.schema import Field, Struct

__all__ = [
    "Entry",
    "Format",
    "Formats",
    "GroupEpoch",
    "array",
    "by_topic",
    "epoch_format",
    "field",
    "partitions_of",
    "state_of",
    "struct",
    "target_epoch_format",
    "target_format",
    "topics",
]


class Entry(NamedTuple):
    """One record; value None is a tombstone. `key` is (group id,) or (group id, member id or regular expression)."""

    kind: int
    key: tuple[str, ...]
    value: Any


class GroupEpoch(msgspec.Struct, frozen=True):
    epoch: int
    metadata_hash: int = 0


# -- schemas

field = partial(records.field, flexible=True, nullable=False)
array = partial(records.array, flexible=True, nullable=False)


def struct(name: str, *fields: Field) -> Struct:
    return Struct(name, 0, True, fields)


_TOPIC = struct("TopicPartitions", field("topic_id", "uuid"), array("partitions", "int32"))


def topics(name: str) -> Field:
    return array(name, _TOPIC)


class Format(NamedTuple):
    """How a kind of value is encoded and decoded. `names`: how many names its key has."""

    names: int
    schema: Struct
    fields_of: Callable[[Any], dict[str, Any]]
    value_of: Callable[[Any], Any]


def epoch_format(name: str, metadata_hash: Field) -> Format:
    return Format(
        1,
        struct(name, field("epoch", "int32"), metadata_hash),
        lambda value: {"epoch": value.epoch, "metadata_hash": value.metadata_hash},
        lambda message: GroupEpoch(message.epoch, message.metadata_hash),
    )


def target_epoch_format(name: str) -> Format:
    schema = struct(name, field("assignment_epoch", "int32"))
    return Format(1, schema, lambda value: {"assignment_epoch": value}, lambda message: message.assignment_epoch)


def target_format(name: str) -> Format:
    return Format(
        2,
        struct(name, topics("topic_partitions")),
        lambda value: {"topic_partitions": by_topic(value)},
        lambda message: partitions_of(message.topic_partitions),
    )


class Formats:
    """`read_over`: obsolete kinds, which are ignored, with the number of names in their keys."""

    def __init__(self, formats: Mapping[int, Format], *, read_over: Mapping[int, int] | None = None) -> None:
        self._formats = formats
        self._read_over = read_over or {}
        self._write = {kind: writing(each.schema) for kind, each in formats.items()}
        self._read = {kind: reading(each.schema) for kind, each in formats.items()}
        self.kinds = frozenset(formats) | frozenset(self._read_over)

    def encode(self, entry: Entry) -> Record:
        key = VERSION.pack(entry.kind) + b"".join(map(_text, entry.key))
        if entry.value is None:
            return key, None
        return key, self._write[entry.kind](self._formats[entry.kind].fields_of(entry.value))

    def decode(self, key: bytes, value: bytes | None) -> Entry | None:
        """None for an obsolete kind. Malformed, struct.error, IndexError or UnicodeDecodeError: a damaged record."""
        (kind,) = VERSION.unpack_from(key, 0)
        if kind in self._read_over:
            _names(key, self._read_over[kind])
            return None
        names = _names(key, self._formats[kind].names)
        if value is None:
            return Entry(kind, names, None)
        return Entry(kind, names, self._formats[kind].value_of(self._read[kind](memoryview(value))))


def _text(value: str) -> bytes:
    data = value.encode()
    return VERSION.pack(len(data)) + data


def _names(key: bytes, count: int) -> tuple[str, ...]:
    names, position = [], 2
    for _ in range(count):
        (size,) = VERSION.unpack_from(key, position)
        position += 2
        if not 0 <= size <= len(key) - position:
            raise Malformed(f"a key's text of {size} bytes, {len(key) - position} remain")
        names.append(str(key[position : position + size], "utf-8"))
        position += size
    return tuple(names)


# -- parts of values


def by_topic(partitions: Partitions) -> list[dict[str, Any]]:
    """In the wire's format, sorted."""
    found: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return [{"topic_id": topic_id, "partitions": indexes} for topic_id, indexes in found.items()]


def partitions_of(lines: Iterable[Any]) -> Partitions:
    return frozenset((line.topic_id or bytes(16), index) for line in lines for index in line.partitions)


def state_of(number: int) -> MemberState:
    return MemberState(number) if number in (0, 1, 2) else MemberState.UNKNOWN
