"""Changes of a share-partition's state, and the records that store them. Pure."""

from collections.abc import Callable
from typing import NamedTuple

from ottla.coordination.core.effects import Effects, Write
from ottla.coordination.core.records import Record
from ottla.share.core import records
from ottla.share.core.messages import UNINITIALIZED, ShareKey
from ottla.share.core.state import Kept, Update, merged

__all__ = ["Change", "delete", "effects_of", "snapshot", "touch", "update"]


class Change(NamedTuple):
    """`after` None: the state is deleted. A snapshot replaces all earlier records of its key."""

    key: ShareKey
    after: Kept | None
    record: Record
    is_snapshot: bool = False


def effects_of(change: Change, on_appended: Callable[[int], None]) -> Effects:
    return [Write([change.record], on_appended=on_appended)]


def snapshot(key: ShareKey, kept: Kept) -> Change:
    return Change(key, kept, records.snapshot_record(key, kept), is_snapshot=True)


def update(key: ShareKey, kept: Kept, change: Update, *, updates_max: int, now_ms: int) -> Change:
    """An update record; after `updates_max` of them a snapshot instead."""
    after = kept.updated(change)
    if after.updates > updates_max:
        return snapshot(key, after.snapshotted(now_ms=now_ms))
    start = UNINITIALIZED if after.start == kept.start else after.start
    batches = merged((), change.batches, start=after.start)
    written = Update(leader_epoch=after.leader_epoch, start=start, batches=batches)
    return Change(key, after, records.update_record(key, written, snapshot_epoch=kept.snapshot_epoch))


def touch(key: ShareKey, kept: Kept | None, *, updates_max: int, now_ms: int) -> Change:
    """A record without a change: a coordinator that has been replaced cannot commit it."""
    if kept is None:
        return delete(key)
    return update(key, kept, Update(leader_epoch=kept.leader_epoch), updates_max=updates_max, now_ms=now_ms)


def delete(key: ShareKey) -> Change:
    return Change(key, None, records.deletion_record(key))
