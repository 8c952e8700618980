"""Offsets inside transactions wait for their marker, and never overtake a later commit."""

from itertools import permutations

import pytest
from ottla.group.offsets.pending import PendingOffsets
from ottla.group.offsets.records import CommittedOffset

GROUP = "readers"


def at(offset: int) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", 0)


def test_each_producer_has_its_own() -> None:
    pending = PendingOffsets()
    pending.record(9, GROUP, [("t", 0, at(5)), ("t", 1, at(6))], position=1)
    pending.record(9, GROUP, [("t", 0, at(7))], position=2)
    pending.record(8, "others", [("t", 0, at(1))], position=3)
    assert pending.has_pending(GROUP, "t", 0) and not pending.has_pending(GROUP, "t", 2)
    assert pending.commit(9) == {GROUP: [("t", 0, at(7)), ("t", 1, at(6))]}
    assert pending.commit(9) == {}
    assert not pending.has_pending_of_group(GROUP) and pending.has_pending_of_group("others")


def test_a_later_commit_takes_its_place() -> None:
    pending = PendingOffsets()
    pending.record(9, GROUP, [("t", 0, at(5)), ("t", 1, at(6))], position=1)
    pending.drop_older(GROUP, "t", 0, before=2)
    assert pending.commit(9) == {GROUP: [("t", 1, at(6))]}


@pytest.mark.parametrize("markers", list(permutations([1, 2, 3])))
@pytest.mark.parametrize("aborted", [set(), {3}, {2}, {1, 2}])
def test_the_latest_record_wins_whenever_the_markers_come(markers: tuple[int, ...], aborted: set[int]) -> None:
    """Producers 1, 2 and 3 have written in this order."""
    pending, in_force = PendingOffsets(), None
    for producer in (1, 2, 3):
        pending.record(producer, GROUP, [("t", 0, at(producer))], position=producer)
    for producer in markers:
        if producer in aborted:
            pending.abort(producer)
            continue
        for _, _, committed in pending.commit(producer).get(GROUP, ()):
            in_force = committed
    assert in_force == at(max({1, 2, 3} - aborted))
