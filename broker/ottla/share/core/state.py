"""A share-partition's state as the log has it: a snapshot and later updates. Pure.

Batches are sorted and do not overlap; equal neighbours are joined. Where old and new overlap, the higher delivery count
wins, and of equal counts the more final state, as in Kafka. So a duplicate, late or reordered update, as after a lost
answer, changes nothing, and acknowledged records never become available again. For the same reason the start never
decreases. A higher state epoch resets both.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec

from ottla.errors import Code, KafkaError
from ottla.share.core.messages import UNINITIALIZED, ShareState, StateBatch, Summary

__all__ = ["Kept", "Update", "initialized", "merged"]

NO_LEADER_YET = 0  # as in Kafka: no leader has read the state
first_of, last_of = attrgetter("first"), attrgetter("last")


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """A leader's change; a `start` of -1 means unchanged."""

    leader_epoch: int
    start: int = UNINITIALIZED
    batches: tuple[StateBatch, ...] = ()


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """`snapshot_epoch` numbers the snapshots; `updates` counts the updates since; times are those of snapshots."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int = NO_LEADER_YET
    start: int
    created_ms: int
    written_ms: int
    batches: tuple[StateBatch, ...] = ()
    updates: int = 0

    # answers

    @property
    def state(self) -> ShareState:
        return ShareState(self.state_epoch, self.start, self.batches)

    @property
    def summary(self) -> Summary:
        return Summary(self.state_epoch, self.start, self.leader_epoch)

    # fences: KafkaError

    def require_leader(self, leader_epoch: int) -> None:
        if leader_epoch < self.leader_epoch:
            raise KafkaError(
                Code.fenced_leader_epoch, f"the leader of epoch {leader_epoch} was replaced in {self.leader_epoch}"
            )

    def require_epoch(self, state_epoch: int) -> None:
        """A higher epoch is as wrong as a lower one: the group was deleted and created again, with new epochs."""
        if state_epoch != self.state_epoch:
            raise KafkaError(
                Code.fenced_state_epoch, f"the state of epoch {state_epoch} was replaced by {self.state_epoch}"
            )

    # changes

    def updated(self, update: Update) -> "Kept":
        start = max(self.start, update.start)
        return msgspec.structs.replace(
            self,
            leader_epoch=max(self.leader_epoch, update.leader_epoch),
            start=start,
            batches=merged(self.batches, update.batches, start=start),
            updates=self.updates + 1,
        )

    def snapshotted(self, *, now_ms: int) -> "Kept":
        return msgspec.structs.replace(self, snapshot_epoch=self.snapshot_epoch + 1, written_ms=now_ms, updates=0)


def initialized(before: Kept | None, *, state_epoch: int, start: int, now_ms: int) -> Kept | None:
    """The snapshot to write; None for a repeated request. KafkaError: FENCED_STATE_EPOCH.

    The leader epoch is kept, so fenced leaders stay fenced.
    """
    if before is None:
        return Kept(snapshot_epoch=0, state_epoch=state_epoch, start=start, created_ms=now_ms, written_ms=now_ms)
    if state_epoch == before.state_epoch:
        return None
    if state_epoch < before.state_epoch:
        before.require_epoch(state_epoch)
    return Kept(
        snapshot_epoch=before.snapshot_epoch + 1,
        state_epoch=state_epoch,
        leader_epoch=before.leader_epoch,
        start=start,
        created_ms=now_ms,
        written_ms=now_ms,
    )


# batches


def merged(batches: Sequence[StateBatch], new: Iterable[StateBatch], *, start: int) -> tuple[StateBatch, ...]:
    """`batches` are sorted and do not overlap; `new` are in any order. Everything before `start` is dropped."""
    found = list(batches)
    for one in new:
        _put(found, one)
    del found[: bisect_left(found, start, key=last_of)]
    if found and found[0].first < start:
        found[0] = _part(found[0], start, found[0].last)
    return tuple(found)


def _put(found: list[StateBatch], one: StateBatch) -> None:
    low = bisect_left(found, one.first, key=last_of)
    high = bisect_right(found, one.last, key=first_of)
    left, right = max(low - 1, 0), high + 1  # with the neighbours: they may join
    found[left:right] = _joined([*found[left:low], *_overlaid(found[low:high], one), *found[high:right]])


def _overlaid(old: Iterable[StateBatch], one: StateBatch) -> Iterator[StateBatch]:
    """`old`, all of which overlap `one`, merged with `one`: it fills gaps and replaces less final states."""
    position = one.first
    for each in old:
        first, last = max(each.first, one.first), min(each.last, one.last)
        if each.first < first:
            yield _part(each, each.first, first - 1)
        if position < first:
            yield _part(one, position, first - 1)
        yield _part(max(each, one, key=_finality), first, last)
        if each.last > last:
            yield _part(each, last + 1, each.last)
        position = last + 1
    if position <= one.last:
        yield _part(one, position, one.last)


def _joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    found: list[StateBatch] = []
    for one in batches:
        if found and found[-1].last + 1 == one.first and _finality(found[-1]) == _finality(one):
            found[-1] = _part(one, found[-1].first, one.last)
        else:
            found.append(one)
    return found


def _part(one: StateBatch, first: int, last: int) -> StateBatch:
    return StateBatch(first, last, one.delivery, one.count)


def _finality(one: StateBatch) -> tuple[int, int]:
    return one.count, one.delivery
