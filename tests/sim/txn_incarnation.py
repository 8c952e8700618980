"""A copier's process: it reads its group's offset and copies inputs from there on, exactly once.

Outputs and the offset go in one transaction, by KIP-890 as Java's client does it, or by the older flow as librdkafka
does. The input is the row of natural numbers, so that output and offset can be compared.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ottla.errors import Code
from ottla.group.offsets_topic import OFFSETS_TOPIC
from ottla.txn.coordinator import STATE_TOPIC
from ottla.wire import records
from ottla.wire.records import Record
from sim.txn_directory import LEDGER
from sim.txn_flow import AGAIN, DONE, FENCED
from sim.txn_history import Entry
from sim.virtual_loop import WALL_MS_AT_START
from sim.workload import REQUEST_TIMEOUT_MS

if TYPE_CHECKING:
    from sim.txn_clients import Copier

__all__ = ["INPUT", "Incarnation"]

INPUT = ("orders", 0)
PAUSE_S, IDLE_S = 0.3, 1.5
DELIVERY_ATTEMPTS_MAX = 25  # then a real client's delivery.timeout.ms is over
ATTEMPTS_MAX = 10_000


class Over(Exception):
    """This incarnation ends."""


class Abortable(Exception):
    """This transaction cannot be committed."""


class Incarnation:
    def __init__(self, copier: "Copier", number: int) -> None:
        self.copier, self.number = copier, number
        self.flow, self.random = copier.flow, copier.random
        self.is_over = self.is_fenced = False
        self.began_at: float | None = None
        self.session = (-1, -1)
        self._sequences: dict[int, int] = {}
        self._position = 0

    def __str__(self) -> str:
        return f"{self.copier.name}.{self.number}"

    async def run(self) -> None:
        try:
            await self._init()
            await self._find_position()
            while True:
                await self._transaction()
                await self._pause(IDLE_S)
        except Over as over:
            self.copier.referee.note(f"{self} ends: {over}")
        finally:
            self.is_over = True

    async def _pause(self, seconds_max: float = PAUSE_S) -> None:
        await asyncio.sleep(self.random.random() * seconds_max)
        if self.is_over or self.copier.stopping:
            raise Over("crashed")

    # -- requests

    async def _coordinate(self, api_key: tuple[int, int], request: Any) -> Any:
        return await self.copier.call(self.copier.coordinator(STATE_TOPIC, self.copier.name), api_key, request)

    def _signed(self, **fields: Any) -> SimpleNamespace:
        producer_id, epoch = self.session
        name = self.copier.name
        return SimpleNamespace(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, **fields)

    def _refuse(self, code: int, what: str, *, fenced_before: bool) -> None:
        """Over, or abort; not for what a client may try again. One that is shut out must never hear `none`."""
        if code == Code.none and fenced_before:
            self.copier.referee.object(f"{self} was shut out, and its {what} is taken")
        elif code in FENCED or code == Code.invalid_txn_state:
            raise Over(f"{what}: {Code(code).name}")
        elif code == Code.transaction_abortable:
            raise Abortable(what)
        elif code not in AGAIN and code not in DONE:
            self.copier.referee.object(f"{self} gets {Code(code).name} for its {what}")
            raise Over(what)

    async def _insist(
        self,
        what: str,
        ask: Callable[[], Awaitable[Any]],
        code_of: Callable[[Any], int],
        *,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> Any:
        """The answer that says that it is done. Abortable when it takes too long."""
        fenced_before = self.is_fenced
        for _ in range(attempts_max):
            answer = await ask()
            if answer is not None:
                code = code_of(answer)
                self._refuse(code, what, fenced_before=fenced_before)
                if code in DONE:
                    return answer
            await self._pause()
        raise Abortable(what)

    async def _init(self) -> None:
        """With the session it has, if any: to go on with the next epoch (KIP-360)."""
        asked_at, goes_on = self.copier.network.loop.time(), self.session[0] >= 0
        request = self._signed(transaction_timeout=self.copier.timeout_ms)
        answer = await self._insist(
            "InitProducerId", lambda: self._coordinate(self.flow.init, request), lambda answer: answer.error_code
        )
        self.session = (answer.producer_id, answer.producer_epoch)
        self._sequences.clear()
        if not goes_on:
            self.copier.began(self, asked_at)
        self.copier.referee.note(f"{self} is {self.session}")

    async def _find_position(self) -> None:
        at_least = self.copier.committed
        while (found := await self.copier.position()) is None:
            await self._pause()
        if found < at_least:
            self.copier.referee.object(f"{self} is to go on at {found}, but {at_least} was committed")
        self._position = found

    # -- a transaction

    async def _transaction(self) -> None:
        entry = self.copier.history.open(self.copier.name)
        end = self._position + self.random.randint(1, 4)
        for number in range(self._position, end):
            entry.rows.setdefault(self.random.randrange(self.copier.partitions), []).append(number)
        try:
            await self._fill(entry, end)
        except Abortable as reason:
            self.copier.referee.note(f"{self} aborts {entry.serial}: {reason}")
            await self._abort(entry)
            return
        await self._stall()
        if self.random.random() < 0.15:
            await self._end(entry, commit=False)
            return
        await self._end(entry, commit=True)
        self._position = end
        self.copier.committed = max(self.copier.committed, end)

    async def _stall(self) -> None:
        """Now and then, longer than the transaction may take."""
        if self.random.random() < 0.04:
            await self._pause(self.copier.timeout_ms / 250)

    async def _fill(self, entry: Entry, end: int) -> None:
        if not self.flow.epochs:
            await self._add_partitions(entry)
        jobs = [self._produce(entry, partition, numbers) for partition, numbers in entry.rows.items()]
        outcomes = await asyncio.gather(*jobs, self._commit_offset(end), return_exceptions=True)
        failures = [each for each in outcomes if isinstance(each, BaseException)]
        for failure in sorted(failures, key=lambda each: isinstance(each, Abortable)):
            raise failure

    async def _abort(self, entry: Entry) -> None:
        """In the older flow the epoch is bumped after it: nobody knows which sequences were taken."""
        await self._end(entry, commit=False)
        if not self.flow.epochs:
            await self._init()

    async def _add_partitions(self, entry: Entry) -> None:
        producer_id, epoch = self.session
        request = SimpleNamespace(
            v3_and_below_transactional_id=self.copier.name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[SimpleNamespace(name=LEDGER, partitions=list(entry.rows))],
        )
        await self._insist(
            "AddPartitionsToTxn",
            lambda: self._coordinate(self.flow.add_partitions, request),
            lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )

    async def _commit_offset(self, end: int) -> None:
        if not self.flow.epochs:
            await self._add_offsets()
        one = SimpleNamespace(
            partition_index=INPUT[1], committed_offset=end, committed_leader_epoch=-1, committed_metadata=""
        )
        group = {"group_id": self.copier.group, "generation_id": -1, "member_id": "", "group_instance_id": None}
        request = self._signed(**group, topics=[SimpleNamespace(name=INPUT[0], partitions=[one])])
        await self._insist(
            "TxnOffsetCommit",
            lambda: self.copier.call(
                self.copier.coordinator(OFFSETS_TOPIC, self.copier.group), self.flow.commit_offsets, request
            ),
            lambda answer: answer.topics[0].partitions[0].error_code,
            attempts_max=DELIVERY_ATTEMPTS_MAX,
        )

    async def _add_offsets(self) -> None:
        request = self._signed(group_id=self.copier.group)
        await self._insist(
            "AddOffsetsToTxn",
            lambda: self._coordinate(self.flow.add_offsets, request),
            lambda answer: answer.error_code,
        )

    async def _produce(self, entry: Entry, partition: int, numbers: Sequence[int]) -> None:
        """In one batch or two, one after the other."""
        cut = self.random.randint(1, len(numbers))
        for chunk in (numbers[:cut], numbers[cut:]):
            if chunk:
                await self._send(partition, [entry.value(number) for number in chunk])

    async def _send(self, partition: int, values: Sequence[bytes]) -> None:
        sequence = self._sequences.get(partition, 0)
        rows = [Record(each, WALL_MS_AT_START, None, value) for each, value in enumerate(values)]
        data = records.encode(rows, producer=(*self.session, sequence), is_transactional=True)

        def send() -> Awaitable[Any]:
            part = SimpleNamespace(index=partition, records=memoryview(bytearray(data)))
            request = SimpleNamespace(
                acks=-1,
                timeout=REQUEST_TIMEOUT_MS,
                transactional_id=self.copier.name,
                topic_data=[SimpleNamespace(name=LEDGER, partition_data=[part])],
            )
            return self.copier.call(self.copier.find(LEDGER, partition), self.flow.produce, request)

        await self._insist(
            "Produce",
            send,
            lambda answer: answer.responses[0].partition_responses[0].error_code,
            attempts_max=DELIVERY_ATTEMPTS_MAX,
        )
        self._sequences[partition] = sequence + len(values)

    async def _end(self, entry: Entry, *, commit: bool) -> None:
        fenced_before, is_certain = self.is_fenced, True
        entry.may_show = commit
        while True:
            answer = await self._coordinate(self.flow.end, self._signed(committed=commit))
            if answer is not None:
                code = answer.error_code
                if code not in AGAIN and code != Code.none and is_certain:
                    entry.may_show = False
                self._refuse(code, "EndTxn", fenced_before=fenced_before)
                if code == Code.none:
                    break
            is_certain = False
            await self._pause()
        entry.is_committed = commit
        self.copier.referee.note(f"{self} has {'committed' if commit else 'aborted'} {entry.serial}: {entry.rows}")
        if self.flow.epochs:
            self.session = (answer.producer_id, answer.producer_epoch)
            self._sequences.clear()
