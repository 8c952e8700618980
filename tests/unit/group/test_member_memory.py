"""Bytes that members keep are bounded, whatever becomes of their connections."""

from types import SimpleNamespace
from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup, Rules
from ottla.group.classic.member import Member
from ottla.group.member_memory import COUNT_SECONDS_MIN, MemberMemory


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


def member(size: int) -> Member:
    return Member(
        "m",
        instance_id=None,
        client_id="",
        client_host="",
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        protocols=(("range", bytes(size - len("range"))),),
        assignment=bytes(10),
    )


def test_what_members_keep_counts_and_what_they_brought_before_does_not() -> None:
    group, clock = ClassicGroup("g", Rules(new_id=str, wall_ms=lambda: 0)), Clock()
    others: Any = SimpleNamespace(type="consumer")
    memory = MemberMemory(1000, groups=lambda: [group, others], clock=clock)  # type: ignore[arg-type]
    group.roster.add(member(500))
    memory.take(500)
    memory.take(490)
    clock.now += COUNT_SECONDS_MIN
    memory.take(490)
    assert memory.used_bytes == 1000
    with pytest.raises(KafkaError) as refused:
        memory.take(1)
    assert refused.value.code is Code.coordinator_not_available
    group.remove("m")
    clock.now += COUNT_SECONDS_MIN
    memory.take(1000)
