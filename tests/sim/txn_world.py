"""Transactions in the simulated fleet: copiers that must be exact, beside all that goes wrong in a World.

world = TransactionWorld(seed); world.play()        raises Broken, as World does
"""

import asyncio
from collections.abc import Mapping
from typing import ClassVar

from ottla.group.offsets_topic import OFFSETS_TOPIC
from ottla.metadata.decisions.commands import Reassignment
from ottla.replica.partition import Partition
from ottla.txn.coordinator import STATE_TOPIC
from sim.coordinated_world import CoordinatedWorld, find_coordinators
from sim.faults import Faults
from sim.fetching import FetchConsumer
from sim.history import Cleanup
from sim.node import SimNode
from sim.options import WIDE, Options
from sim.topics import EQUAL_SECONDS_MAX, STAYS, Topics, Trial
from sim.txn_clients import Copier
from sim.txn_directory import LEDGER
from sim.txn_history import TxnHistory
from sim.txn_reader import Reader
from sim.txn_steps import Plan, Step, Steps, Victim
from sim.workload import Consumer
from sim.world import HEAL_SECONDS_MAX, POLL_SECONDS

__all__ = ["TransactionWorld"]

COPIERS = (2, 3)
INTERNAL_PARTITIONS = 2


class TransactionWorld(CoordinatedWorld):
    """`only`: no other faults than crashes at this step."""

    settings: ClassVar[Mapping[str, str]] = {
        "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
        "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "700",
    }
    topics: "TransactionTopics"
    faults: "TransactionFaults"

    def __init__(self, seed: int, options: Options = WIDE, *, only: Step | None = None) -> None:
        self.only = only
        super().__init__(seed, options)

    def _make_topics(self) -> "TransactionTopics":
        return TransactionTopics(self)

    def _make_faults(self) -> "TransactionFaults":
        return TransactionFaults(self)

    @property
    def steps_of_ends(self) -> Steps:
        return self.faults.steps

    @property
    def committed(self) -> int:
        return self.topics.history.committed

    async def _heal(self) -> None:
        await super()._heal()
        copiers, history = self.topics.copiers, self.topics.history
        begin = len(history.entries)

        def all_commit() -> bool:
            committed = {entry.copier for entry in history.entries[begin:] if entry.is_committed}
            return committed == {copier.name for copier in copiers}

        await self.until(all_commit, HEAL_SECONDS_MAX, "a copier cannot commit")


class TransactionFaults(Faults):
    def __init__(self, world: TransactionWorld) -> None:
        super().__init__(world)
        self.only = world.only
        self.steps = Steps(world.network, self._execute)
        self._deeds = (*self._deeds, (16, self._crash_in_an_end))

    def deed(self) -> None:
        if self.only is None:
            super().deed()
        else:
            self._crash_in_an_end()

    def _crash_in_an_end(self) -> None:
        plan = Plan(
            step=self.only or self.random.choice(list(Step)),
            victim=self.random.choice(list(Victim)),
            after=self.random.choice((0, 0, 1, 2, 5)),
            power=self.random.random() < 0.4,
        )
        self.referee.note(f"next crash of {plan.victim.value}: {plan.step.value}, after {plan.after}")
        self.steps.arm(plan)

    def _execute(self, node: SimNode, *, power: bool) -> bool:
        power = power and self._may_lose_data(node)
        if not self._may_crash(node):
            return False
        node.unclean, node.crashing = True, node.life
        assert node.life is not None
        self._end(node, node.life, power)
        self._restart_later(node)
        return True

    def end(self) -> None:
        self.steps.plan = None
        super().end()


class TransactionTopics(Topics):
    """One topic for outputs, and the two that coordinators keep."""

    def __init__(self, world: TransactionWorld) -> None:
        super().__init__(world)
        self.history = TxnHistory(world.referee)
        self.copiers: list[Copier] = []
        self.readers: list[Reader] = []

    async def begin(self) -> None:
        await self._make(STAYS, 1)
        await self._make(LEDGER, self.random.randint(2, 3))
        await find_coordinators(self._world, "groups", "transactions")

    def _choose_cleanup(self) -> Cleanup:
        """The history needs every record, so only the coordinators' topics are cleaned."""
        return Cleanup.KEEP

    def start_clients(self) -> None:
        world = self._world
        assert isinstance(world, TransactionWorld)
        steps, partitions = world.steps_of_ends, self._trials[LEDGER].partitions
        for number in range(self.random.choice(COPIERS)):
            self.copiers.append(Copier(f"copier-{number}", partitions, self.history, steps, world.chance()))
        self.readers = [Reader(index, self.history, steps, world.chance()) for index in range(partitions)]
        clients: list[Copier | Reader | Consumer | FetchConsumer] = [*self.copiers, *self.readers]
        if world.options.fetching:  # of both isolation levels, beside the readers
            self._trials[LEDGER].consumers = self._consumers(self._trials[LEDGER])
            clients += self._trials[LEDGER].consumers
        for client in clients:
            self.run(client.run())

    def move_one(self) -> None:
        """Outputs, or a coordinator."""
        places = [(LEDGER, index) for index in range(self._trials[LEDGER].partitions)]
        places += [(topic, index) for topic in (OFFSETS_TOPIC, STATE_TOPIC) for index in range(INTERNAL_PARTITIONS)]
        topic, index = self.random.choice(places)
        replicas = self.random.sample([node.id for node in self._world.nodes], 3)
        self._world.referee.note(f"{topic}-{index} moves to {replicas}")
        self.run(self._move(Reassignment(topic, index, replicas)))

    # -- the end

    async def judge(self) -> None:
        """Clients stop wherever they are: what they leave open must end by itself."""
        for client in (*self.copiers, *self.readers, *self._trials[LEDGER].consumers):
            client.stopping = True
        await asyncio.sleep(5.0)
        await self._world.until(self._nothing_is_open, HEAL_SECONDS_MAX, "a transaction stays open")
        for trial in self._trials.values():
            for index in range(trial.partitions):
                await self._judge(trial, index)
        visible = {reader.partition: await self._all_of(reader) for reader in self.readers}
        self.history.check(visible, {copier.name: await self._position(copier) for copier in self.copiers})

    async def _judge(self, trial: Trial, index: int) -> None:
        replicas = self._replicas(trial.name, index)
        await self._world.until(
            lambda: len({(p.high_watermark, p.log.end_offset) for p in replicas}) == 1,
            EQUAL_SECONDS_MAX,
            f"{replicas[0]} is not the same everywhere",
        )
        self._world.referee.check_equal(replicas)

    def _replicas(self, topic: str, index: int) -> list[Partition]:
        image = self._world.image()
        state = image.partition(topic, index) if image is not None else None
        hosts = [self._world.network.nodes[each].life for each in state.replicas] if state is not None else []
        return [life.host.require(topic, index) for life in hosts if life is not None and life.host is not None]

    def _nothing_is_open(self) -> bool:
        places = [(LEDGER, index) for index in range(self._trials[LEDGER].partitions)]
        places += [(OFFSETS_TOPIC, index) for index in range(INTERNAL_PARTITIONS)]
        partitions = [partition for place in places for partition in self._replicas(*place)]
        return all(
            partition.last_stable_offset == partition.high_watermark == partition.log.end_offset
            for partition in partitions
        )

    async def _all_of(self, reader: Reader) -> list[tuple[int, str]]:
        """What every replica shows from the beginning; what a reader saw on its way must be the beginning of it."""
        found: list[list[tuple[int, str]]] = []
        for partition in self._replicas(LEDGER, reader.partition):
            again = Reader(reader.partition, self.history, reader.steps, reader.random)
            again.loses_answers = 0.0
            await self._read_all(again, partition)
            found.append(again.seen)
        if any(each != found[0] for each in found):
            self._world.referee.object(f"replicas show different records of {reader.partition}")
        before = [row for row in found[0] if row[0] < reader.offset]
        if reader.seen != before:
            odd = sorted(set(reader.seen) ^ set(before))[:3]
            self._world.referee.object(f"a reader of {reader.partition} saw something else before: {odd}")
        return found[0]

    async def _read_all(self, reader: Reader, partition: Partition) -> None:
        nodes = self._world.nodes
        (node,) = [n for n in nodes if n.life is not None and n.life.host is not None and _is_of(n, partition)]
        deadline = self._world.loop.time() + HEAL_SECONDS_MAX
        while reader.offset < partition.high_watermark:
            await reader.read(node)
            if self._world.loop.time() > deadline:
                self._world.referee.object(f"{partition} cannot be read to its end on node {node.id}")
                return

    async def _position(self, copier: Copier) -> int:
        copier.loses_answers, deadline = 0.0, self._world.loop.time() + HEAL_SECONDS_MAX
        while (found := await copier.position()) is None:
            if self._world.loop.time() > deadline:
                self._world.referee.object(f"the offset of {copier.group} cannot be read at the end")
                return -1
            await asyncio.sleep(POLL_SECONDS)
        return found


def _is_of(node: SimNode, partition: Partition) -> bool:
    assert node.life is not None and node.life.host is not None
    return node.life.host.find(partition.topic, partition.index) is partition
