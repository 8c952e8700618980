"""Bytes that members keep are bounded, whatever becomes of their connections."""

from types import SimpleNamespace
from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup, Rules
from ottla.group.classic.member import Member
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.member import Subscription
from ottla.group.consumer.records import MEMBER
from ottla.group.heartbeats.entries import Entry
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


def test_members_that_live_by_heartbeats_count() -> None:
    rules: Any = None
    group, clock = ConsumerGroup("g", rules), Clock()
    memory = MemberMemory(1000, groups=lambda: [group], clock=clock)  # type: ignore[arg-type]
    subscription = Subscription(topics=frozenset({"t" * 200, "u" * 200}), regex="r" * 100, client_id="c" * 50)
    group.log.apply(Entry(MEMBER, ("g", "m"), subscription))
    memory.take(900)
    clock.now += COUNT_SECONDS_MIN
    with pytest.raises(KafkaError):
        memory.take(500)
    assert memory.used_bytes == subscription.kept_bytes == 678
    group.log.apply(Entry(MEMBER, ("g", "m"), None))
    clock.now += COUNT_SECONDS_MIN
    memory.take(1000)


def test_requests_that_wait_count() -> None:
    clock = Clock()
    memory = MemberMemory(1000, groups=list, clock=clock)  # type: ignore[arg-type]
    memory.take(700)
    with memory.waiting(700):
        clock.now += COUNT_SECONDS_MIN
        with pytest.raises(KafkaError):
            memory.take(500)
    clock.now += COUNT_SECONDS_MIN
    memory.take(1000)
