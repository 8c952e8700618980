"""Committed offsets as records: OffsetCommitKey v1 and OffsetCommitValue, as Kafka 4.1 writes and reads them. Pure.

Encoded by hand, because every commit writes one: v4, or v1 when a client (OffsetCommit v2-4) set a retention time.
"""

import struct
from typing import Any, NamedTuple

from ottla.coordination.core.records import field, reading
from ottla.group.contract.records import record_type
from ottla.wire.schema import Struct
from ottla.wire.text_limits import size_bytes
from ottla.wire.writer import uvarint

__all__ = ["CommittedOffset", "offset_key", "offset_value", "read_offset_key", "read_offset_value"]

NO_EXPIRY = -1
OFFSET_BYTES = 220


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int = NO_EXPIRY

    @property
    def kept_bytes(self) -> int:
        """In memory, with its place in the tables."""
        return OFFSET_BYTES + size_bytes(self.metadata) if self.metadata else OFFSET_BYTES


V4_HEAD = struct.Struct(">hqi")
V4_TAIL = struct.Struct(">qb")  # ends with the number of tagged fields
V4_PLAIN = struct.Struct(">hqibqb")  # without metadata
V1_HEAD = struct.Struct(">hqh")
V1_TAIL = struct.Struct(">qq")
INT16 = struct.Struct(">h").pack
INT32 = struct.Struct(">i").pack


def offset_key_head(group_id: str, topic: str) -> bytes:
    """The common start of the keys of all partitions."""
    group, name = group_id.encode(), topic.encode()
    return b"".join((b"\0\1", INT16(len(group)), group, INT16(len(name)), name))


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return offset_key_head(group_id, topic) + INT32(partition)


def offset_value(committed: CommittedOffset) -> bytes:
    offset, leader_epoch, metadata, committed_ms, expires_ms = committed
    if expires_ms != NO_EXPIRY:
        text = metadata.encode()
        return V1_HEAD.pack(1, offset, len(text)) + text + V1_TAIL.pack(committed_ms, expires_ms)
    if not metadata:
        return V4_PLAIN.pack(4, offset, leader_epoch, 1, committed_ms, 0)
    text = metadata.encode()
    head = V4_HEAD.pack(4, offset, leader_epoch)
    return b"".join((head, uvarint(len(text) + 1), text, V4_TAIL.pack(committed_ms, 0)))


def _value_struct(version: int) -> Struct:
    flexible = version >= 4
    fields = [field("offset", "int64", flexible=flexible)]
    if version >= 3:
        fields.append(field("leader_epoch", "int32", flexible=flexible, default=-1))
    fields.append(field("metadata", "string", flexible=flexible))
    fields.append(field("commit_timestamp", "int64", flexible=flexible))
    if version == 1:
        fields.append(field("expire_timestamp", "int64", default=-1))
    return Struct("OffsetCommitValue", version, flexible, tuple(fields))


_names = (field("group", "string", nullable=False), field("topic", "string", nullable=False))
_key = Struct("OffsetCommitKey", 1, False, (*_names, field("partition", "int32")))
_keys = reading(Struct("OffsetCommitKey", 0, False, _key.fields), _key)
_values = reading(*(_value_struct(version) for version in range(5)))


def read_offset_key(key: memoryview) -> tuple[str, str, int]:
    read = _keys(key)
    return read.group, read.topic, read.partition


def read_offset_value(value: memoryview) -> CommittedOffset:
    read = _values(value)
    leader_epoch = getattr(read, "leader_epoch", -1)
    expires_ms = getattr(read, "expire_timestamp", NO_EXPIRY)
    return CommittedOffset(read.offset, leader_epoch, read.metadata or "", read.commit_timestamp, expires_ms)


@record_type(0, 1)
def replay_offset(state: Any, key: memoryview, value: memoryview | None) -> None:
    group, topic, partition = read_offset_key(key)
    if value is None:
        state.remove_offset(group, topic, partition)
    else:
        state.record_offset(group, topic, partition, read_offset_value(value))
