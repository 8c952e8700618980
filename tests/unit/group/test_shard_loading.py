"""A shard of groups while its log is read: what is decided meanwhile is not forgotten."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from ottla.coordination.writing import WriteRules
from ottla.group.classic.group import Rules
from ottla.group.offsets.records import CommittedOffset
from ottla.group.shard import Shard
from ottla.system import RealClock

PRODUCER, OFFSET = 9, 41


def loading_shard() -> Shard:
    return Shard(
        cast(Any, SimpleNamespace(leader_epoch=0)),
        clock=RealClock(),
        rules=Rules(new_id=str, wall_ms=lambda: 0),
        write_rules=WriteRules(),
        consumer_rules=cast(Any, lambda shard: None),
        share_rules=cast(Any, lambda shard: None),
        computing=cast(Any, None),
    )


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_that_ends_while_its_offsets_are_read(commit: bool) -> None:
    """Its marker was written behind the end up to which the log is read: only the writer of it can tell."""
    shard = loading_shard()
    shard.record_pending(PRODUCER, "readers", [("t", 0, CommittedOffset(5, -1, "", 0))], position=OFFSET - 1)
    shard.transaction_ended(PRODUCER, commit=commit, offset=OFFSET)
    assert shard.offsets.get("readers") is None, "not before everything is read"
    shard.loaded()
    offsets = shard.offsets.get("readers")
    assert (offsets is not None) == commit
    if offsets is not None:
        kept = offsets.get("t", 0)
        assert kept is not None
        assert kept.offset == 5
        assert offsets.written == OFFSET
    assert not shard.offsets.has_pending("readers")


def test_groups_whose_offsets_are_all_removed_in_the_log_leave_nothing() -> None:
    """Compaction may not have passed yet over the offsets, their tombstones and the group's."""
    shard = loading_shard()
    for group_id in ("gone", "without-offsets"):
        shard.record_offset(group_id, "t", 0, CommittedOffset(5, -1, "", 0))
        shard.remove_offset(group_id, "t", 0)
    shard.remove_group("gone", "classic")
    shard.loaded()
    assert shard.offsets.get("gone") is None
    assert shard.offsets.get("without-offsets") is not None, "as long as there is the group"
