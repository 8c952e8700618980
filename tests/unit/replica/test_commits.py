"""Those who wait for a commit hear of it at once, each exactly once, also when one of them adds another."""

import asyncio

import pytest
from ottla.errors import Code, KafkaError
from ottla.replica.commits import Commits


def test_only_those_below_the_watermark_are_notified() -> None:
    commits, notified = Commits(), []
    for offset in (3, 5):
        commits.add(offset, lambda code, offset=offset: notified.append((offset, code)))  # type: ignore[misc]
    commits.resolve(5)
    assert notified == [(3, Code.none)]
    commits.resolve(6)
    assert notified == [(3, Code.none), (5, Code.none)]
    assert not commits


def test_one_that_is_notified_may_wait_for_more() -> None:
    commits, notified = Commits(), []
    commits.add(1, lambda _: commits.add(9, lambda _: notified.append(9)))
    commits.add(7, lambda _: notified.append(7))
    commits.resolve(2)
    assert notified == []
    commits.resolve(10)
    assert notified == [7, 9]


def test_failure_reaches_everyone_and_nobody_twice() -> None:
    async def scenario() -> None:
        commits, notified = Commits(), []
        future = commits.wait(1)
        commits.add(2, notified.append)
        commits.fail(Code.not_leader_or_follower)
        commits.resolve(100)
        assert notified == [Code.not_leader_or_follower]
        with pytest.raises(KafkaError):
            await future

    asyncio.run(scenario())
