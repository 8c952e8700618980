"""A share-partition's state against a dict of single offsets; fences; beginnings."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import Code, KafkaError
from ottla.share.core.messages import UNINITIALIZED, Delivery, ShareState, StateBatch, Summary
from ottla.share.core.state import Kept, Update, initialized, merged

A, K, X = Delivery.AVAILABLE, Delivery.ACKNOWLEDGED, Delivery.ARCHIVED
NOW = 1_700_000_000_000


def kept(**changes: object) -> Kept:
    values: dict[str, object] = {
        "snapshot_epoch": 3,
        "state_epoch": 2,
        "leader_epoch": 5,
        "start": 10,
        "created_ms": NOW,
        "written_ms": NOW,
    }
    return Kept(**{**values, **changes})  # type: ignore[arg-type]


batches = st.builds(
    lambda first, size, delivery, count: StateBatch(first, first + size, delivery, count),
    st.integers(0, 40),
    st.integers(0, 15),
    st.sampled_from([A, K, X]),
    st.integers(1, 3),
)


@given(st.lists(st.lists(batches, max_size=5), max_size=5), st.integers(-1, 45))
def test_merging_is_what_happens_to_every_offset(rounds: list[list[StateBatch]], start: int) -> None:
    found: tuple[StateBatch, ...] = ()
    offsets: dict[int, tuple[int, int]] = {}
    for new in rounds:
        found = merged(found, new, start=-1)
        for one in new:
            for offset in range(one.first, one.last + 1):
                offsets[offset] = max(offsets.get(offset, (0, 0)), (one.count, one.delivery))
    found = merged(found, (), start=start)
    told = {offset: (one.count, one.delivery) for one in found for offset in range(one.first, one.last + 1)}
    assert told == {offset: fate for offset, fate in offsets.items() if offset >= start}
    for left, right in pairwise(found):
        assert left.last < right.first
        touch = left.last + 1 == right.first
        assert not touch or (left.delivery, left.count) != (right.delivery, right.count), "they should have joined"


@given(st.lists(batches, max_size=6), st.randoms())
def test_order_and_repetition_change_nothing(new: list[StateBatch], random: Random) -> None:
    again = [*new, *new]
    random.shuffle(again)
    assert merged((), again, start=-1) == merged((), new, start=-1)


def test_what_was_acknowledged_stays_so_when_an_older_update_comes_late() -> None:
    state = kept().updated(Update(leader_epoch=5, start=12, batches=(StateBatch(12, 20, K, 2),)))
    late = state.updated(Update(leader_epoch=5, start=10, batches=(StateBatch(10, 20, A, 1),)))
    assert late.state == state.state == ShareState(2, 12, (StateBatch(12, 20, K, 2),))


def test_an_update_without_a_start_leaves_it() -> None:
    after = kept().updated(Update(leader_epoch=6, batches=(StateBatch(8, 11, K, 1),)))
    assert after.state == ShareState(2, 10, (StateBatch(10, 11, K, 1),))
    assert after.summary == Summary(2, 10, 6) and after.updates == 1


def test_fences() -> None:
    state = kept()
    state.require_leader(5)
    state.require_leader(6)
    state.require_epoch(2)
    for epoch in (1, 3):
        with pytest.raises(KafkaError) as refused:
            state.require_epoch(epoch)
        assert refused.value.code is Code.fenced_state_epoch
    with pytest.raises(KafkaError) as refused:
        state.require_leader(4)
    assert refused.value.code is Code.fenced_leader_epoch


def test_it_begins_once() -> None:
    first = initialized(None, state_epoch=0, start=UNINITIALIZED, now_ms=NOW)
    assert first is not None and first.state == ShareState() and first.summary == Summary()
    assert initialized(first, state_epoch=0, start=7, now_ms=NOW) is None


def test_it_begins_anew_with_a_higher_epoch_and_the_same_fences() -> None:
    before = kept(batches=(StateBatch(10, 20, K, 1),), updates=4)
    after = initialized(before, state_epoch=3, start=0, now_ms=NOW + 1)
    assert after is not None and after.state == ShareState(3, 0, ())
    assert after.leader_epoch == 5 and after.snapshot_epoch == 4 and after.updates == 0
    with pytest.raises(KafkaError) as refused:
        initialized(before, state_epoch=1, start=0, now_ms=NOW)
    assert refused.value.code is Code.fenced_state_epoch


def test_snapshots_are_numbered() -> None:
    after = kept(updates=9).snapshotted(now_ms=NOW + 5)
    assert (after.snapshot_epoch, after.updates, after.created_ms, after.written_ms) == (4, 0, NOW, NOW + 5)
