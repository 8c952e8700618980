"""Who leads a share-partition, as far as its state is concerned: rivals that claim it with ever higher epochs.

A claim reads; then records are delivered and acknowledged, in batches and by moving the start, until another has
claimed it. The history of a key has the answers, and so what every later reader must find.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from ottla.errors import Code, KafkaError
from ottla.share.core.messages import Delivery, Persister, ShareKey, ShareState, StateBatch
from sim.invariants import Referee
from sim.network import Network
from sim.node import SimNode
from sim.workload import Client, Disconnected

__all__ = ["Claimant", "KeyHistory"]

PAUSE_S = 0.3
WRITES_MAX = 12
RESETS = 0.05
PASSES = frozenset({Code.coordinator_not_available, Code.coordinator_load_in_progress, Code.not_coordinator})


@dataclass
class Era:
    """Of one state epoch. `acknowledged` and `start` are what was answered."""

    acknowledged: set[int] = field(default_factory=set)
    start: int = 0

    @property
    def done_below(self) -> int:
        offset = self.start
        while offset in self.acknowledged:
            offset += 1
        return offset


@dataclass
class KeyHistory:
    """`leader_epoch`: the highest that was claimed; `heard_epoch`: the highest that was answered."""

    key: ShareKey
    referee: Referee
    eras: dict[int, Era] = field(default_factory=lambda: {0: Era()})
    leader_epoch: int = 0
    heard_epoch: int = 0
    state_epoch: int = 0  # the highest that was asked for
    begun_epoch: int = -1  # the highest that was answered
    next_offset: int = 0
    answers: int = 0

    def check(self, state: ShareState, acknowledged: dict[int, set[int]], starts: dict[int, int], begun: int) -> None:
        """What is read, against what had been answered when it was asked for."""
        if state.state_epoch < begun:
            self.referee.object(f"{self.key} is read with state epoch {state.state_epoch} after {begun} began")
        if state.start < starts.get(state.state_epoch, 0):
            self.referee.object(f"{self.key} starts at {state.start}, not at {starts[state.state_epoch]}")
        done = {
            offset
            for one in state.batches
            for offset in range(one.first, one.last + 1)
            if one.delivery == Delivery.ACKNOWLEDGED
        }
        lost = {one for one in acknowledged.get(state.state_epoch, ()) if one >= state.start} - done
        if lost:
            self.referee.object(f"{self.key} has forgotten that {sorted(lost)[:5]} were acknowledged")


class Claimant(Client):
    def __init__(self, history: KeyHistory, network: Network, random: Random) -> None:
        super().__init__(network, history.referee, random)
        self.history = history
        self.epoch = 0
        self.state_epoch = -1
        self._released: StateBatch | None = None

    async def run(self) -> None:
        while not self.stopping:
            with suppress(Disconnected, KafkaError):
                await self._live()
            await asyncio.sleep(self.random.random() * PAUSE_S)

    async def _live(self) -> None:
        if self.history.begun_epoch < 0 or self.random.random() < RESETS:
            await self._begin()
        if not await self.claim():
            return
        for _ in range(self.random.randint(1, WRITES_MAX)):
            if self.stopping or not await self._write():
                return
            await asyncio.sleep(self.random.random() * PAUSE_S)

    def _persister(self) -> tuple[SimNode, Persister]:
        serving = [node for node in self.network.nodes.values() if node.life is not None and node.life.serves]
        if not serving:
            raise Disconnected
        node = self.random.choice(serving)
        assert node.life is not None and node.life.running._data is not None
        coordinators = node.life.running._data.broker._coordinators
        if coordinators is None:
            raise Disconnected
        return node, coordinators.persister

    # questions

    async def _begin(self) -> None:
        history = self.history
        if history.begun_epoch >= 0 and self.random.random() < 0.5:  # otherwise it is asked for twice
            history.state_epoch += 1
            history.eras[history.state_epoch] = Era()
        epoch = history.state_epoch
        node, persister = self._persister()
        await self.ask(node, persister.initialize(history.key, state_epoch=epoch, start=0))
        history.begun_epoch = max(history.begun_epoch, epoch)

    async def claim(self) -> bool:
        """False when another one did, with a higher epoch."""
        history = self.history
        history.leader_epoch += 1
        epoch, begun = history.leader_epoch, history.begun_epoch
        acknowledged = {each: set(era.acknowledged) for each, era in history.eras.items()}
        starts = {each: era.start for each, era in history.eras.items()}
        node, persister = self._persister()
        try:
            state = await self.ask(node, persister.read(history.key, leader_epoch=epoch))
        except KafkaError as error:
            return self._refused(error, epoch)
        history.check(state, acknowledged, starts, begun)
        history.heard_epoch = max(history.heard_epoch, epoch)
        self.epoch, self.state_epoch, self._released = epoch, state.state_epoch, None
        return True

    async def _write(self) -> bool:
        history, era = self.history, self.history.eras[self.state_epoch]
        start, batch = era.done_below if self.random.random() < 0.3 else -1, self._next()
        heard, begun = history.heard_epoch, history.begun_epoch
        try:
            await self._put(start, batch)
        except Disconnected:
            return True  # it may still be written, even after what comes next
        except KafkaError as error:
            return self._refused(error, self.epoch)
        if heard > self.epoch or begun > self.state_epoch:
            problem = f"{self.epoch} wrote after {heard}, state {self.state_epoch} after {begun}"
            history.referee.object(f"{history.key}: {problem}")
        history.answers += 1
        era.start = max(era.start, start)
        if batch.delivery == Delivery.ACKNOWLEDGED:
            era.acknowledged |= set(range(batch.first, batch.last + 1))
        return True

    def _next(self) -> StateBatch:
        """Acknowledged at once, or released first and acknowledged the next time."""
        if (released := self._released) is not None:
            self._released = None
            return StateBatch(released.first, released.last, Delivery.ACKNOWLEDGED, 2)
        first, size = self.history.next_offset, self.random.randint(1, 3)
        self.history.next_offset += size
        if self.random.random() < 0.5:
            return StateBatch(first, first + size - 1, Delivery.ACKNOWLEDGED, 1)
        self._released = StateBatch(first, first + size - 1, Delivery.AVAILABLE, 1)
        return self._released

    async def _put(self, start: int, batch: StateBatch) -> None:
        """One whose answer is lost is written again, as it is."""
        while True:
            node, persister = self._persister()
            question = persister.write(
                self.history.key, state_epoch=self.state_epoch, leader_epoch=self.epoch, start=start, batches=[batch]
            )
            try:
                return await self.ask(node, question)
            except Disconnected:
                if self.stopping or self.random.random() < 0.3:
                    raise
            await asyncio.sleep(self.random.random() * PAUSE_S)

    def _refused(self, error: KafkaError, epoch: int) -> bool:
        history, code = self.history, error.code
        replaced = code is Code.fenced_leader_epoch and history.leader_epoch > epoch
        renewed = code is Code.fenced_state_epoch and history.state_epoch > self.state_epoch
        if not (replaced or renewed or code in PASSES):
            history.referee.object(f"{history.key} in epoch {epoch}, state {self.state_epoch}: {error!r}")
        return False
