"""States as records of `__share_group_state`: Kafka's ShareSnapshot and ShareUpdate, in the versions of 4.1. Pure.

The version of the key tells the two apart. An update has no state epoch of its own: its snapshot's applies.
"""

import uuid
from typing import Any, NamedTuple

from ottla.coordination.core.records import VERSION, Record, UnknownType, array, field, reading, writing
from ottla.share.core.messages import ShareKey, StateBatch
from ottla.share.core.state import Kept, Update
from ottla.wire.schema import Struct

__all__ = ["Entry", "deletion_record", "read", "snapshot_record", "update_record"]

SNAPSHOT, UPDATE = 0, 1
NO_ID = bytes(16)


class Entry(NamedTuple):
    """One decoded record; None deletes the state."""

    key: ShareKey
    value: Kept | Update | None


def _key_struct(name: str, version: int) -> Struct:
    fields = (field("group_id", "string"), field("topic_id", "uuid"), field("partition", "int32"))
    return Struct(name, version, False, fields)


def _value_struct(name: str, *between: str) -> Struct:
    numbers = [field("snapshot_epoch", "int32", flexible=True)]
    numbers += [field(one, "int32" if one.endswith("epoch") else "int64", flexible=True) for one in between]
    batch = Struct(
        "StateBatch",
        0,
        True,
        (
            field("first_offset", "int64", flexible=True),
            field("last_offset", "int64", flexible=True),
            field("delivery_state", "int8", flexible=True),
            field("delivery_count", "int16", flexible=True),
        ),
    )
    return Struct(name, 0, True, (*numbers, array("state_batches", batch, flexible=True)))


_keys = {
    SNAPSHOT: _key_struct("ShareSnapshotKey", SNAPSHOT),
    UPDATE: _key_struct("ShareUpdateKey", UPDATE),
}
_snapshot = _value_struct(
    "ShareSnapshotValue", "state_epoch", "leader_epoch", "start_offset", "create_timestamp", "write_timestamp"
)
_update = _value_struct("ShareUpdateValue", "leader_epoch", "start_offset")
_read_key = {kind: reading(struct) for kind, struct in _keys.items()}
_write_key = {kind: writing(struct) for kind, struct in _keys.items()}
_read_snapshot, _write_snapshot = reading(_snapshot), writing(_snapshot)
_read_update, _write_update = reading(_update), writing(_update)


# writing


def snapshot_record(key: ShareKey, kept: Kept) -> Record:
    value = {
        "snapshot_epoch": kept.snapshot_epoch,
        "state_epoch": kept.state_epoch,
        "leader_epoch": kept.leader_epoch,
        "start_offset": kept.start,
        "create_timestamp": kept.created_ms,
        "write_timestamp": kept.written_ms,
        "state_batches": _lines(kept.batches),
    }
    return _key(SNAPSHOT, key), _write_snapshot(value)


def update_record(key: ShareKey, update: Update, *, snapshot_epoch: int) -> Record:
    value = {
        "snapshot_epoch": snapshot_epoch,
        "leader_epoch": update.leader_epoch,
        "start_offset": update.start,
        "state_batches": _lines(update.batches),
    }
    return _key(UPDATE, key), _write_update(value)


def deletion_record(key: ShareKey) -> Record:
    return _key(SNAPSHOT, key), None


def _key(kind: int, key: ShareKey) -> bytes:
    return _write_key[kind]({"group_id": key.group_id, "topic_id": key.topic_id, "partition": key.partition})


def _lines(batches: tuple[StateBatch, ...]) -> list[dict[str, int]]:
    return [
        {
            "first_offset": one.first,
            "last_offset": one.last,
            "delivery_state": one.delivery,
            "delivery_count": one.count,
        }
        for one in batches
    ]


# reading


def read(key: memoryview, value: memoryview | None) -> Entry:
    """Raises UnknownType for records of a later Kafka, otherwise an error of coordination.core.records.UNREADABLE."""
    (kind,) = VERSION.unpack_from(key)
    if kind not in _read_key:
        raise UnknownType(f"a record of type {kind} in the state of share groups")
    read_key = _read_key[kind](key)
    share_key = ShareKey(read_key.group_id, uuid.UUID(bytes=read_key.topic_id or NO_ID), read_key.partition)
    if value is None:
        return Entry(share_key, None)
    return Entry(share_key, _kept(_read_snapshot(value)) if kind == SNAPSHOT else _change(_read_update(value)))


def _kept(value: Any) -> Kept:
    return Kept(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start=value.start_offset,
        created_ms=value.create_timestamp,
        written_ms=value.write_timestamp,
        batches=_batches(value),
    )


def _change(value: Any) -> Update:
    return Update(leader_epoch=value.leader_epoch, start=value.start_offset, batches=_batches(value))


def _batches(value: Any) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in value.state_batches or ()
    )
