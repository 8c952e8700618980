"""Performs what automata ask for, over one partition of an internal topic. Coordinators wait nowhere else: for commits
and for deadlines.

Nothing leaves this broker before it is committed. So an answer waits for the record that it depends on
(`until_committed`), and what follows from a write (`Write.then`) is performed when that is committed.
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
    """`key` names an automaton. The shard, which knows the automata, is called back:

    `on_perform`    before effects are performed
    `on_deadline`   when the time has come that an automaton asked for by Wake
    `on_send`       for each Send; it waits by `until_safe` and delivers the message
    `on_compute`    for each Compute; it has it done elsewhere, and performs what follows
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
        self._commit_s_max = rules.commit_s_max
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
            self._go_on(key, write.then, error.code)
            return
        if write.in_force is not None:
            write.in_force(last_offset)
        if write.then is not None:
            self.when_committed(last_offset, partial(self._go_on, key, write.then))

    def _go_on(self, key: str, then: Then, code: Code) -> None:
        """Not after `stop`: the automata have answered by then that another broker leads."""
        if not self._stopped:
            self.perform(key, then(code, self._clock.monotonic()))

    def forget(self, key: str) -> None:
        """The automaton is gone, and its deadline with it."""
        self._deadlines.forget(key)

    def stop(self) -> None:
        """Another broker leads: no deadline is met any longer, and nothing follows from what was written."""
        self._stopped = True
        self._deadlines.stop()

    # writing; `gather` and `flush` are the writer's

    def append(self, records: Sequence[Record]) -> int:
        """All of them or none (KafkaError, in a coordinator's code); the offset to wait for."""
        return self._writer.append(records)

    def append_in_transaction(self, records: Sequence[Record], session: tuple[int, int], ticket: Ticket | None) -> int:
        """The same for a producer's id and epoch; `ticket` is needed for the first of its transaction."""
        return self._writer.append_in_transaction(records, session, ticket)

    # waiting for commits

    def is_committed(self, offset: int) -> bool:
        return self._partition.high_watermark > offset

    def when_committed(self, offset: int, then: Callable[[Code], None]) -> None:
        """`then` is called once: now or when the offset is committed, or with the code for those who wait for it."""
        commit = self._partition.committed(offset)
        if commit is None:
            then(Code.none)
        else:
            CommitWait(commit, then, seconds=self._commit_s_max)

    async def until_committed(self, offset: int) -> None:
        """KafkaError when that will not be known here, or not in time."""
        if self.is_committed(offset):
            return
        waiting: asyncio.Future[Code] = asyncio.get_running_loop().create_future()
        self.when_committed(offset, lambda code: None if waiting.done() else waiting.set_result(code))
        if (code := await waiting) is not Code.none:
            raise KafkaError(code)

    async def until_safe(self, offset: int) -> None:
        """The same without a limit of time: for messages to other brokers, which no client waits for."""
        commit = self._partition.committed(offset)
        if commit is not None:
            await commit


class CommitWait:
    """For one commit, not longer than allowed."""

    __slots__ = ("_commit", "_then", "_timeout")

    def __init__(self, commit: "asyncio.Future[None]", then: Callable[[Code], None], *, seconds: float) -> None:
        self._commit = commit
        self._then = then
        self._timeout = asyncio.get_running_loop().call_later(seconds, self._late)
        commit.add_done_callback(self._done)

    def _done(self, commit: "asyncio.Future[None]") -> None:
        self._timeout.cancel()
        error = commit.exception()
        code = error.code if isinstance(error, KafkaError) else Code.none
        self._then(answer_code(code))

    def _late(self) -> None:
        self._commit.remove_done_callback(self._done)
        self._commit.add_done_callback(asyncio.Future.exception)  # nobody waits for it any longer
        self._then(answer_code(Code.request_timed_out))
