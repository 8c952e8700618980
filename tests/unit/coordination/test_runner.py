"""Effects are performed in order, and what follows from them when their records are committed."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ottla.coordination.core.effects import Reply, Send, Wake, Write
from ottla.coordination.runner import Runner
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.system import RealClock
from ottla.wire.batch import Batch

RECORDS = [(b"key", b"value")]


class Partition:
    """Appends whatever comes, unless it is to refuse; commits when the test says so."""

    def __init__(self) -> None:
        self.end = self.high_watermark = 0
        self.refusal: Code | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def append(self, batch: Batch, **_: Any) -> Any:
        if self.refusal is not None:
            raise KafkaError(self.refusal)
        self.end += batch.last_offset_delta + 1
        return SimpleNamespace(last_offset=self.end - 1)

    def committed(self, offset: int) -> "asyncio.Future[None] | None":
        if self.high_watermark > offset:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    async def commit(self, code: Code = Code.none) -> None:
        waiting, self._waiting = self._waiting, []
        self.high_watermark = self.end if code is Code.none else self.high_watermark
        for future in waiting:
            if code is Code.none:
                future.set_result(None)
            else:
                future.set_exception(KafkaError(code))
        await asyncio.sleep(0)


class Stage:
    def __init__(self, *, commit_s_max: float = 5.0) -> None:
        self.partition = Partition()
        self.seen: list[Any] = []
        self.runner = Runner(
            cast(Any, self.partition),
            clock=RealClock(),
            rules=WriteRules(commit_s_max=commit_s_max),
            on_perform=lambda key: None,
            on_deadline=lambda key: self.seen.append(("due", key)),
            on_send=lambda message: self.seen.append(("send", message)),
            on_compute=lambda key, compute: self.seen.append(("compute", key)),
        )

    def write(self, *, then: bool = True) -> Write:
        def follow(code: Code, now: float) -> list[Any]:
            return [Send(code.name)]

        return Write(RECORDS, follow if then else None, lambda offset: self.seen.append(("in force", offset)))


Play = Callable[[Callable[[Stage], Awaitable[None]]], None]


@pytest.fixture
def play() -> Play:
    def run(what: Callable[[Stage], Awaitable[None]]) -> None:
        async def live() -> None:
            await what(Stage(commit_s_max=0.02))

        asyncio.run(live())

    return run


def test_applied_when_appended_and_continued_when_committed(play: Play) -> None:
    async def what(stage: Stage) -> None:
        stage.runner.perform("g", [stage.write(), Send("at once")])
        assert stage.seen == [("in force", 0), ("send", "at once")]
        await stage.partition.commit()
        assert stage.seen[2:] == [("send", "none")]

    play(what)


def test_a_refused_append_is_a_code_for_what_follows_or_an_error(play: Play) -> None:
    async def what(stage: Stage) -> None:
        stage.partition.refusal = Code.not_leader_or_follower
        stage.runner.perform("g", [stage.write()])
        assert stage.seen == [("send", "not_coordinator")], "and nothing is in force"
        with pytest.raises(KafkaError, match="not_coordinator"):
            stage.runner.perform("g", [stage.write(then=False)])

    play(what)


def test_nobody_waits_longer_than_allowed(play: Play) -> None:
    async def what(stage: Stage) -> None:
        stage.runner.perform("g", [stage.write()])
        with pytest.raises(KafkaError, match="coordinator_not_available"):
            await stage.runner.until_committed(0, timeout_s=stage.runner.commit_s_max)
        assert stage.seen[1:] == [("send", "coordinator_not_available")]
        safe = asyncio.ensure_future(stage.runner.until_committed(0, timeout_s=None))
        await asyncio.sleep(0.05)
        assert not safe.done(), "but messages to other brokers wait as long as it takes"
        await stage.partition.commit()
        await safe

    play(what)


def test_nothing_follows_after_the_end(play: Play) -> None:
    async def what(stage: Stage) -> None:
        stage.runner.perform("g", [stage.write(), Wake(0.0)])
        stage.runner.stop()
        await stage.partition.commit(Code.not_leader_or_follower)
        await asyncio.sleep(0.01)
        assert stage.seen == [("in force", 0)]

    play(what)


def test_a_request_that_was_given_up_needs_no_answer(play: Play) -> None:
    async def what(stage: Stage) -> None:
        to: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        to.cancel()
        stage.runner.perform("g", [Reply(to, "late"), Wake(0.0)])
        await asyncio.sleep(0.01)
        assert stage.seen == [("due", "g")]

    play(what)
