"""Committed offsets: their records, their partition, their end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.coordination.core import partitioning
from ottla.coordination.core.partitioning import partition_of
from ottla.group.classic.group import ClassicGroup, Rules
from ottla.group.contract.records import replay
from ottla.group.offsets.committed import GroupOffsets
from ottla.group.offsets.records import CommittedOffset, offset_key, offset_value
from support.classic_groups import Stage, subscription

DAY_MS = 86_400_000


class Kept:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, int], CommittedOffset] = {}

    def record_offset(self, group: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        self.kept[group, topic, partition] = committed

    def remove_offset(self, group: str, topic: str, partition: int) -> None:
        del self.kept[group, topic, partition]


@given(
    offset=st.integers(0, 2**62),
    epoch=st.integers(-1, 2**31 - 1),
    metadata=st.text(max_size=50),
    expires=st.sampled_from([-1, 5]),
)
def test_what_is_written_is_read(offset: int, epoch: int, metadata: str, expires: int) -> None:
    committed = CommittedOffset(offset, epoch if expires < 0 else -1, metadata, 123, expires)
    key, state = offset_key("grüppe", "topic", 7), Kept()
    replay(state, memoryview(key), memoryview(offset_value(committed)))
    assert state.kept == {("grüppe", "topic", 7): committed}
    replay(state, memoryview(key), None)
    assert not state.kept


@pytest.mark.parametrize(
    ("group", "partition"),
    # printed by Java: Utils.abs(group.hashCode()) % 50
    [("g1", 42), ("console-consumer-1", 24), ("", 0), ("polygenelubricants", 0), ("grüppe", 12), ("🚀", 27)],
)
def test_groups_lie_where_java_puts_them(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition


def offsets_of(*entries: tuple[str, int, int]) -> GroupOffsets:
    offsets = GroupOffsets()
    for topic, committed_ms, expires_ms in entries:
        offsets.record(topic, 0, CommittedOffset(1, -1, "", committed_ms, expires_ms))
    return offsets


def expired(group: ClassicGroup, offsets: GroupOffsets, now_ms: int) -> list[str]:
    return [topic for topic, _ in offsets.expired(group, now_ms=now_ms, retention_ms=DAY_MS)]


def test_the_partition_of_a_long_name_is_found_without_keeping_it() -> None:
    before = partitioning._kept_hash.cache_info().currsize
    assert partition_of("é" * 10_000 + "\U0001f600", 50) == 25
    assert partitioning._kept_hash.cache_info().currsize == before


def test_offsets_of_a_simple_group_grow_old_from_their_commit_on() -> None:
    group = ClassicGroup("g", Rules(new_id=str, wall_ms=lambda: 0))
    offsets = offsets_of(("old", 0, -1), ("new", 1000, -1), ("asked", 0, 500))
    assert expired(group, offsets, 600) == ["asked"]
    assert expired(group, offsets, DAY_MS) == ["old", "asked"]


def test_offsets_of_a_group_that_had_members_grow_old_when_all_are_gone() -> None:
    stage = Stage()
    (member,) = stage.stable(1)
    begin = stage.group.rules.wall_ms()
    offsets = offsets_of(("t", begin, -1), ("other", begin, -1))
    assert expired(stage.group, offsets, begin + DAY_MS) == ["other"], "members still read the other one"
    stage.at(100.0)
    assert stage.group.state == "Empty" and member not in stage.group.members
    emptied = stage.group.empty_since_ms
    assert emptied is not None and emptied > begin
    assert expired(stage.group, offsets, emptied + DAY_MS - 1) == []
    assert expired(stage.group, offsets, emptied + DAY_MS) == ["t", "other"]


def test_nothing_grows_old_while_it_is_not_known_what_is_read() -> None:
    stage = Stage()
    stage.stable(1, protocols=(("range", b"?"),))
    assert expired(stage.group, offsets_of(("t", 0, -1)), stage.group.rules.wall_ms() + DAY_MS) == []
    other = Stage()
    other.stable(1, protocols=(("range", subscription("t")),))
    other.join("again", other.group.leader or "")
    assert expired(other.group, offsets_of(("x", 0, -1)), other.group.rules.wall_ms() + DAY_MS) == []
