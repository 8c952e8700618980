"""Performs the effects of state machines, over one partition of an internal topic.

The only place where coordinators wait for commits and deadlines. Nothing leaves this broker before it is committed: an
answer waits for the record that it depends on (`until_committed`), and the effects that follow from a write
(`Write.then`) are performed when that write is committed.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ottla.coordination.core.effects import Compute, Effects, Reply, Send, Wake, Write
from ottla.coordination.core.records import Record
from ottla.coordination.deadlines import Deadlines
from ottla.coordination.writing import Writer, WriteRules, answer_code
from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.replica.partition import Partition
from ottla.storage.core.verification import Ticket

__all__ = ["Runner"]

Then = Callable[[Code, float], Effects]


class Runner:
    """`key` names a state machine. The shard, which holds the state machines, is called back:

    `on_perform`    before effects are performed
    `on_deadline`   at the time that a state machine requested by Wake
    `on_send`       for each Send; it awaits `until_committed` and delivers the message
    `on_compute`    for each Compute; it runs the work in a thread and performs the effects that follow
    """

    def __init__(
        self,
        partition: Partition,
        *,
        clock: Clock,
        rules: WriteRules,
        on_perform: Callable[[str], None],
        on_deadline: Callable[[str], None],
        on_send: Callable[[Any], None],
        on_compute: Callable[[str, Compute], None],
    ) -> None:
        self._partition = partition
        self._clock = clock
        self.commit_s_max = rules.commit_s_max
        self._writer = Writer(partition, clock=clock, codec=rules.codec, when_committed=self.when_committed)
        self._deadlines = Deadlines(clock, on_deadline)
        self._on_perform = on_perform
        self._on_send = on_send
        self._on_compute = on_compute
        self._stopped = False
        self.gather = self._writer.gather  # without a call in between: every OffsetCommit comes here
        self.flush = self._writer.flush

    # effects

    def perform(self, key: str, effects: Effects) -> None:
        self._on_perform(key)
        for effect in effects:
            match effect:
                case Reply():
                    if not effect.to.done():
                        effect.to.set_result(effect.answer)
                case Wake():
                    self._deadlines.wake(key, effect.at)
                case Write():
                    self._write(key, effect)
                case Send():
                    self._on_send(effect.message)
                case Compute():
                    self._on_compute(key, effect)

    def _write(self, key: str, write: Write) -> None:
        try:
            last_offset = self._writer.append(write.records)
        except KafkaError as error:
            if write.then is None:
                raise
            self._continue(key, write.then, error.code)
            return
        if write.on_appended is not None:
            write.on_appended(last_offset)
        if write.then is not None:
            self.when_committed(last_offset, partial(self._continue, key, write.then))

    def _continue(self, key: str, then: Then, code: Code) -> None:
        """Does nothing after `stop`: by then all waiting requests have been answered with NOT_COORDINATOR."""
        if not self._stopped:
            self.perform(key, then(code, self._clock.monotonic()))

    def forget(self, key: str) -> None:
        """The state machine was removed: its deadline is cancelled."""
        self._deadlines.forget(key)

    def stop(self) -> None:
        """Another broker leads: deadlines are cancelled, and pending writes no longer call `then`."""
        self._stopped = True
        self._deadlines.stop()

    # writing; `gather` and `flush` are the writer's

    def append(self, records: Sequence[Record]) -> int:
        """Append all or none (KafkaError, in a coordinator's code). Returns the offset to wait for."""
        return self._writer.append(records)

    def append_in_transaction(self, records: Sequence[Record], session: tuple[int, int], ticket: Ticket | None) -> int:
        """The same for a producer's id and epoch; the first append of its transaction needs `ticket`."""
        return self._writer.append_in_transaction(records, session, ticket)

    # waiting for commits

    def is_committed(self, offset: int) -> bool:
        return self._partition.high_watermark > offset

    def when_committed(self, offset: int, then: Callable[[Code], None]) -> None:
        """`then` is called once: with NONE as soon as the offset is committed, or with the code that ends the wait."""
        self._wait(offset, then, timeout_s=self.commit_s_max)

    async def until_committed(self, offset: int, *, timeout_s: float | None) -> None:
        """KafkaError when this broker stops leading before the commit, or on time-out. None: wait without limit."""
        if self.is_committed(offset):
            return
        waiting: asyncio.Future[Code] = asyncio.get_running_loop().create_future()
        then: Callable[[Code], None] = lambda code: None if waiting.done() else waiting.set_result(code)  # noqa: E731
        self._wait(offset, then, timeout_s=timeout_s)
        if (code := await waiting) is not Code.none:
            raise KafkaError(code)

    def _wait(self, offset: int, then: Callable[[Code], None], *, timeout_s: float | None) -> None:
        commit = self._partition.committed(offset)
        if commit is None:
            then(Code.none)
        else:
            CommitWait(commit, then, timeout_s=timeout_s)


class CommitWait:
    """Waits for one commit, at most `timeout_s` (None: without limit)."""

    __slots__ = ("_commit", "_then", "_timeout")

    def __init__(
        self, commit: "asyncio.Future[None]", then: Callable[[Code], None], *, timeout_s: float | None
    ) -> None:
        self._commit = commit
        self._then = then
        self._timeout: asyncio.TimerHandle | None = None
        if timeout_s is not None:
            self._timeout = asyncio.get_running_loop().call_later(timeout_s, self._timed_out)
        commit.add_done_callback(self._done)

    def _done(self, commit: "asyncio.Future[None]") -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        error = commit.exception()
        code = error.code if isinstance(error, KafkaError) else Code.none
        self._then(answer_code(code))

    def _timed_out(self) -> None:
        self._commit.remove_done_callback(self._done)
        self._commit.add_done_callback(asyncio.Future.exception)  # the outcome has no reader now
        self._then(answer_code(Code.request_timed_out))
