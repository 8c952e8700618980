"""A reader of committed records, from any replica, which filters what was aborted as a client's library does."""

import asyncio
from random import Random
from types import SimpleNamespace

from ottla.errors import Code
from ottla.wire import batch as batches
from ottla.wire import records
from sim.node import SimNode
from sim.txn_directory import LEDGER, Directory
from sim.txn_history import Seen, TxnHistory
from sim.txn_steps import Steps

__all__ = ["Reader"]

FETCH = (1, 12)
READ_COMMITTED = 1
PAUSE_S = 1.8
ABORT_KEY = b"\0\0\0\0"


class Reader(Directory):
    """Goes on where it was, on whatever replica it finds."""

    def __init__(self, partition: int, history: TxnHistory, steps: Steps, random: Random) -> None:
        super().__init__(history, steps, random)
        self.partition = partition
        self.offset = 0
        self.seen: list[Seen] = []

    async def run(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self.random.random() * PAUSE_S)
            await self.read(self._any_replica())

    def _any_replica(self) -> SimNode | None:
        leader = self.find(LEDGER, self.partition)
        if leader is None or self.random.random() < 0.5:
            return leader
        return self.random.choice(list(self.network.nodes.values()))

    async def read(self, node: SimNode | None) -> None:
        wanted = SimpleNamespace(
            partition=self.partition,
            fetch_offset=self.offset,
            partition_max_bytes=self.random.choice((200, 1 << 16)),
            current_leader_epoch=-1,
            last_fetched_epoch=-1,
        )
        request = SimpleNamespace(
            max_wait=0,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=READ_COMMITTED,
            session_id=0,
            session_epoch=-1,
            topics=[SimpleNamespace(topic=LEDGER, partitions=[wanted])],
            forgotten_topics_data=[],
            rack_id="",
        )
        answer = await self.call(node, FETCH, request)
        if answer is None or not answer.responses:
            return
        (found,) = answer.responses[0].partitions
        if found.error_code == Code.none and found.records:
            self._take(
                bytes(found.records), [(one.first_offset, one.producer_id) for one in found.aborted_transactions]
            )

    def _take(self, data: bytes, aborted: list[tuple[int, int]]) -> None:
        """As a client's library filters it: by the list of what was aborted, up to each abort's marker."""
        waiting, dropped = sorted(aborted), set[int]()
        for batch in batches.iterate(data):
            while waiting and waiting[0][0] <= batch.last_offset:
                dropped.add(waiting.pop(0)[1])
            if batch.is_control:
                (marker,) = records.iterate(batch)
                if marker.key == ABORT_KEY:
                    dropped.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in dropped):
                self._show(batch)
            self.offset = max(self.offset, batch.last_offset + 1)

    def _show(self, batch: batches.Batch) -> None:
        for record in records.iterate(batch):
            if record.offset >= self.offset:
                value = (record.value or b"").decode()
                self.history.shown(self.partition, value)
                self.seen.append((record.offset, value))
