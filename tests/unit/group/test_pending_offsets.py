"""Offsets inside transactions wait for their marker, and never overtake a later commit."""

from ottla.group.offset_records import CommittedOffset
from ottla.group.pending_offsets import PendingOffsets

GROUP = "readers"


def at(offset: int) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", 0)


def test_each_producer_has_its_own() -> None:
    pending = PendingOffsets()
    pending.keep(9, GROUP, [("t", 0, at(5)), ("t", 1, at(6))])
    pending.keep(9, GROUP, [("t", 0, at(7))])
    pending.keep(8, "others", [("t", 0, at(1))])
    assert pending.concerns(GROUP, "t", 0) and not pending.concerns(GROUP, "t", 2)
    assert pending.take(9) == {GROUP: [("t", 0, at(7)), ("t", 1, at(6))]}
    assert pending.take(9) == {}
    assert not pending.has_group(GROUP) and pending.has_group("others")


def test_a_later_commit_takes_its_place() -> None:
    pending = PendingOffsets()
    pending.keep(9, GROUP, [("t", 0, at(5)), ("t", 1, at(6))])
    pending.supersede(GROUP, "t", 0)
    assert pending.take(9) == {GROUP: [("t", 1, at(6))]}
