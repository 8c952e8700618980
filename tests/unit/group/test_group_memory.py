"""Bytes of groups and their offsets are bounded: they stay for days."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.group.group_memory import GroupMemory
from ottla.group.offsets.committed import TOPIC_BYTES, ShardOffsets
from ottla.group.offsets.records import OFFSET_BYTES, CommittedOffset

GROUPS, TOPICS, PRODUCERS = ("g", "h"), ("s", "t"), (7, 8)


def committed(metadata: str = "") -> CommittedOffset:
    return CommittedOffset(1, -1, metadata, 0)


def test_offsets_take_memory_once() -> None:
    offsets = ShardOffsets()
    offsets.record("g", "t", 0, committed("note"), position=1)
    assert offsets.kept_bytes == TOPIC_BYTES + OFFSET_BYTES + 4
    assert offsets.added_bytes("g", [("t", 0, committed("note"))]) == 0
    assert offsets.added_bytes("g", [("t", 0, committed())]) == -4
    assert offsets.added_bytes("g", [("t", 1, committed())]) == OFFSET_BYTES
    assert offsets.added_bytes("g", [("s", 1, committed("\N{EURO SIGN}"))]) == TOPIC_BYTES + OFFSET_BYTES + 3
    offsets.record("g", "t", 0, committed(), position=2)
    assert offsets.kept_bytes == TOPIC_BYTES + OFFSET_BYTES


@pytest.mark.parametrize("seed", range(50))
def test_nothing_is_left_when_all_is_gone(seed: int) -> None:
    random, offsets = Random(seed), ShardOffsets()
    for position in range(60):
        group, producer = random.choice(GROUPS), random.choice(PRODUCERS)
        entry = (random.choice(TOPICS), random.randrange(3), committed("x" * random.randrange(9)))
        match random.randrange(5):
            case 0:
                offsets.record(group, *entry, position=position)
            case 1:
                offsets.record_pending(producer, group, [entry], position=position)
            case 2:
                offsets.commit(producer, position=position)
            case 3:
                offsets.abort(producer)
            case _:
                offsets.remove(group, *entry[:2], position=position)
    for producer in PRODUCERS:
        offsets.abort(producer)
    for group in GROUPS:
        for topic in TOPICS:
            for partition in range(3):
                offsets.remove(group, topic, partition, position=100)
    assert offsets.kept_bytes == 0


def shard_of(kept_bytes: int, added_bytes: Any, *groups: str) -> Any:
    return SimpleNamespace(kept_bytes=kept_bytes, added_bytes=added_bytes, groups=dict.fromkeys(groups))


def test_groups_that_are_there_go_on_when_new_ones_are_refused() -> None:
    """A consumer commits old and new partitions together, and comes again and again when it is refused."""
    full = shard_of(100, lambda group_id, entries, in_transaction: 50, "known")
    memory = GroupMemory(100, lambda: [full])
    memory.check(full, "known")
    with pytest.raises(KafkaError):
        memory.check(full, "new")
    full.kept_bytes = 151
    with pytest.raises(KafkaError):
        memory.check(full, "known")


def test_what_is_new_is_refused_beyond_the_limit() -> None:
    def shard(kept_bytes: int, added_bytes: int) -> Any:
        return shard_of(kept_bytes, lambda group_id, entries, in_transaction: added_bytes)

    fits, new, known = shard(40, 20), shard(40, 21), shard(40, 0)
    memory = GroupMemory(100, lambda: [fits, new])
    memory.check(fits, "g")
    with pytest.raises(KafkaError) as refused:
        memory.check(new, "g")
    assert refused.value.code is Code.coordinator_not_available
    GroupMemory(1, lambda: [fits, new]).check(known, "g")
