"""One history: three nodes, clients, faults by the seed, healing, and the judgement.

world = World(seed); world.play()        raises Broken; world.referee.trace tells what happened
"""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from ottla.metadata.commands import CreateTopics, NewTopic
from ottla.metadata.image import Image
from ottla.raft.role import Role
from ottla.replica.partition import Partition
from sim.disk import Crash
from sim.invariants import Broken, Referee
from sim.network import Network
from sim.node import SimNode
from sim.virtual_loop import VirtualLoop
from sim.workload import Consumer, Producer

__all__ = ["World"]

NODES = (1, 2, 3)
TOPIC = "orders"
START_SECONDS_MAX = 60.0
HEAL_SECONDS_MAX = 60.0
LOOK_SECONDS = 0.05


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = VirtualLoop()
        self.referee = Referee(self.loop)
        self.network = Network(self.loop, self._chance())
        for node_id in NODES:
            self.network.nodes[node_id] = SimNode(
                node_id, voters=NODES, network=self.network, referee=self.referee, random=self._chance()
            )
        self.nodes = list(self.network.nodes.values())
        self.partitions = self.random.randint(1, 3)
        self.steps = self.random.randint(4, 14)
        self.producers: list[Producer] = []

    def _chance(self) -> Random:
        return Random(self.random.getrandbits(64))

    def play(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._history())
        finally:
            asyncio.set_event_loop(None)
            for node in self.nodes:
                if node.life is not None:
                    node.life.process.alive, node.life.disk.is_gone = False, True
            self.loop.dispose()

    async def _history(self) -> None:
        watching = asyncio.ensure_future(self._watch())
        playing = asyncio.ensure_future(self._play())
        await asyncio.wait([watching, playing], return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
        playing.result()
        self._no_loose_ends()
        self.referee.raise_problems()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.referee.look(self.nodes)
            for node in self.nodes:
                if (node.unclean or node.power_lost) and node.life is not node.doomed and self.is_in_sync(node):
                    node.unclean = node.power_lost = False

    async def _play(self) -> None:
        for node in self.nodes:
            node.start()
        await self._until(self._all_serve, START_SECONDS_MAX, "the fleet does not start")
        await self._create_topic()
        await self._until(self.is_healthy, START_SECONDS_MAX, "the new topic is not replicated")
        self._start_clients()
        for _ in range(self.steps):
            self._deed()
            await asyncio.sleep(self.random.choice((0.05, 0.3, 1.0, 3.0, 6.0)))
        await self._heal()
        await self._judge()

    # -- what is the case

    def image(self) -> Image | None:
        """Of the active controller."""
        lives = [node.life for node in self.nodes if node.life is not None and node.life.hears]
        active = [life for life in lives if life.quorum.controller.is_active]
        newest = max(active, key=lambda life: life.quorum.driver.term, default=None)
        return newest.quorum.feed.image if newest is not None else None

    def is_in_sync(self, node: SimNode) -> bool:
        image = self.image()
        if node.life is None or not node.life.serves or image is None or TOPIC not in image.topics:
            return False
        own = image.brokers.get(node.id)
        current = own is not None and own.is_active and own.epoch == node.life.broker_epoch
        return current and all(node.id in state.isr for state in image.topics[TOPIC].partitions)

    def _all_serve(self) -> bool:
        return all(node.life is not None and node.life.serves for node in self.nodes) and self.image() is not None

    def is_healthy(self) -> bool:
        return self._all_serve() and all(self.is_in_sync(node) for node in self.nodes)

    def _nobody_is_doomed(self) -> bool:
        return not any(node.life is not None and node.life is node.doomed for node in self.nodes)

    def partition(self, node: SimNode, index: int) -> Partition:
        assert node.life is not None and node.life.host is not None
        return node.life.host.require(TOPIC, index)

    async def _until(self, condition: Callable[[], bool], seconds: float, problem: str) -> None:
        deadline = self.loop.time() + seconds
        while not condition():
            if self.loop.time() > deadline:
                raise Broken(f"{problem} within {seconds:.0f} s")
            await asyncio.sleep(LOOK_SECONDS)

    # -- clients

    async def _create_topic(self) -> None:
        life = self.nodes[0].life
        assert life is not None
        new = NewTopic(TOPIC, partitions=self.partitions, replication_factor=3)
        (outcome,) = await self.loop.within(life.process, life.controller.submit(CreateTopics([new])))
        if not outcome.ok:
            raise Broken(f"the topic cannot be made: {outcome}")

    def _start_clients(self) -> None:
        for number in range(self.partitions + self.random.randint(0, 2)):
            index = number % self.partitions
            self.producers.append(Producer(number, TOPIC, index, self.network, self.referee, self._chance()))
        for producer in self.producers:
            self._run_client(producer.run())
        for index in range(self.partitions):
            self._run_client(Consumer(TOPIC, index, self.network, self.referee, self._chance()).run())

    def _run_client(self, client: Coroutine[Any, Any, None]) -> None:
        def ended(task: "asyncio.Task[None]") -> None:
            if (error := task.exception()) is not None:
                self.referee.object(f"a client ends: {error!r}")

        asyncio.ensure_future(client).add_done_callback(ended)

    # -- faults

    def _deed(self) -> None:
        deeds = (
            (4, self._crash_one),
            (4, self._lose_power_of_one),
            (2, self._crash_controller),
            (4, self._partition),
            (3, self._heal_network),
            (2, self._weather),
            (2, self._slow_disk),
            (1, self._fail_syncs),
            (2, self._nothing),
        )
        self.random.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]()

    def _nothing(self) -> None:
        pass

    def _crash_one(self) -> None:
        self._crash(self.random.choice(self.nodes))

    def _crash_controller(self) -> None:
        for node in self.nodes:
            if node.life is not None and node.life.hears and node.life.quorum.driver.raft.role is Role.LEADER:
                self._crash(node)

    def _crash(self, node: SimNode) -> None:
        """Any number of nodes, but none while another has lost what it did not sync."""
        if node.life is None or any(other.power_lost for other in self.nodes if other is not node):
            return
        node.unclean, node.doomed = True, node.life
        if self.random.random() < 0.5:
            node.life.disk.crash_in = self.random.randint(1, 12)
            self.loop.later(0.5, self._end, node, node.life, False)
        else:
            self._end(node, node.life, False)
        self._restart_later(node)

    def _lose_power_of_one(self) -> None:
        node = self.random.choice(self.nodes)
        if self._may_lose_data(node):
            assert node.life is not None
            node.power_lost, node.loses_power, node.doomed = True, True, node.life
            if self.random.random() < 0.5:
                node.life.disk.crash_in = self.random.randint(1, 12)
                self.loop.later(0.5, self._end, node, node.life, True)
            else:
                self._end(node, node.life, True)
            self._restart_later(node)

    def _may_lose_data(self, node: SimNode) -> bool:
        """One replica at a time, and only while the others are whole: that is what min.insync.replicas=2 promises."""
        others = [other for other in self.nodes if other is not node]
        return node.life is not None and not any(other.unclean or other.power_lost for other in others)

    def _end(self, node: SimNode, life: object, power: bool) -> None:
        if node.life is life:
            if power:
                node.lose_power()
            else:
                node.crash("killed")

    def _restart_later(self, node: SimNode) -> None:
        def restart() -> None:
            if node.life is None:
                node.start()

        self.loop.later(0.6 + self.random.choice((0.0, 0.5, 5.0, 10.0)), restart)

    def _fail_syncs(self) -> None:
        node = self.random.choice(self.nodes)
        if self._may_lose_data(node):
            assert node.life is not None
            self.referee.note(f"fsync fails on node {node.id}")
            node.power_lost, node.life.disk.fail_syncs, node.doomed = True, True, node.life
            self.loop.later(10.0, self._end, node, node.life, True)
            self.loop.later(10.0, self._restart_later, node)

    def _slow_disk(self) -> None:
        node = self.random.choice(self.nodes)
        if node.life is not None:
            node.life.threads.delay_max_s = self.random.choice((0.01, 0.1, 0.5))
            self.referee.note(f"the disk of node {node.id} is slow")

    def _partition(self) -> None:
        node = self.random.choice(self.nodes)
        others = [other for other in self.nodes if other is not node]
        chosen = others if self.random.random() < 0.6 else [self.random.choice(others)]
        one_way = self.random.random() < 0.3
        for other in chosen:
            self.network.cut.add((node.id, other.id))
            if not one_way:
                self.network.cut.add((other.id, node.id))
        self.referee.note(f"cut: {sorted(self.network.cut)}")

    def _heal_network(self) -> None:
        self.network.cut.clear()
        self.referee.note("the network heals")

    def _weather(self) -> None:
        self.network.drop = self.random.choice((0.0, 0.01, 0.1, 0.3))
        self.network.delay_max_s = self.random.choice((0.002, 0.02, 0.2))
        self.referee.note(f"drop {self.network.drop}, delay up to {self.network.delay_max_s}")

    # -- the end

    async def _heal(self) -> None:
        self.referee.note("faults end")
        self.network.cut.clear()
        self.network.drop, self.network.delay_max_s = 0.0, 0.002
        for node in self.nodes:
            if node.life is None:
                node.start()
            elif not node.life.disk.fail_syncs:
                node.life.threads.delay_max_s = 0.001
                node.life.disk.crash_in = None
        await self._until(self._nobody_is_doomed, HEAL_SECONDS_MAX, "what was set off before does not end")
        for node in self.nodes:
            if node.life is None:
                node.start()
        await self._until(self.is_healthy, HEAL_SECONDS_MAX, "not every replica is in sync")
        before = [len(producer.acknowledged) for producer in self.producers]
        await self._until(
            lambda: all(len(p.acknowledged) > had for p, had in zip(self.producers, before, strict=True)),
            HEAL_SECONDS_MAX,
            "a producer gets nothing acknowledged",
        )

    async def _judge(self) -> None:
        for producer in self.producers:
            producer.stopping = True
        await asyncio.sleep(5.0)
        for index in range(self.partitions):
            replicas = [self.partition(node, index) for node in self.nodes]
            await self._until(
                lambda replicas=replicas: len({(p.high_watermark, p.log.end_offset) for p in replicas}) == 1,
                HEAL_SECONDS_MAX,
                f"{replicas[0]} is not the same everywhere",
            )
            self.referee.check_equal(replicas)
            for node, partition in zip(self.nodes, replicas, strict=True):
                self.referee.committed(f"node {node.id}", partition)
            told = {p.number: p.acknowledged for p in self.producers if p.index == index}
            self.referee.check_acknowledged((TOPIC, index), replicas[0], told)

    def _no_loose_ends(self) -> None:
        """Nothing of the broker failed unseen."""
        for context in self.loop.failures:
            error = context.get("exception")
            if not isinstance(error, Crash):
                self.referee.object(f"unhandled: {context.get('message')}: {error!r}")

    @property
    def acknowledged(self) -> int:
        return sum(len(producer.acknowledged) for producer in self.producers)
