"""One history: three or four nodes, clients, faults by the seed, healing, and the judgement.

world = World(seed); world.play()        raises Broken; world.referee.trace has what happened
"""

import asyncio
import gc
from collections.abc import Callable, Mapping
from random import Random
from typing import ClassVar

from ottla.metadata.model.image import Image
from ottla.metadata.model.state import PartitionState
from sim.disk import Crash
from sim.faults import Faults
from sim.invariants import Broken, Referee
from sim.network import Network
from sim.node import SimNode
from sim.options import WIDE, Options
from sim.topics import Topics
from sim.virtual_loop import VirtualLoop

__all__ = ["World"]

VOTERS = (1, 2, 3)
OBSERVER = 4  # a broker that is no voter
START_SECONDS_MAX = 60.0
HEAL_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05
ALL_DURABLE = 0.35  # of the histories
DURABLE = {"log.flush.interval.messages": "1"}
CLEANING = {
    "log.cleaner.backoff.ms": "700",
    "log.retention.check.interval.ms": "1500",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "1000",
}


class World:
    settings: ClassVar[Mapping[str, str]] = {}

    def __init__(self, seed: int, options: Options = WIDE) -> None:
        self.seed = seed
        self.options = options
        self.random = Random(seed)
        self.all_durable = options.blackouts and self.stream("blackouts").random() < ALL_DURABLE
        self.loop = VirtualLoop()
        self.referee = self._make_referee()
        self.network = Network(self.loop, self.chance())
        for node_id in (*VOTERS, OBSERVER) if self.random.random() < 0.4 else VOTERS:
            self.network.nodes[node_id] = SimNode(
                node_id,
                voters=VOTERS,
                network=self.network,
                referee=self.referee,
                random=self.chance(),
                settings=self._settings(),
                cleaning=options.cleaning,
            )
        self.nodes = list(self.network.nodes.values())
        if options.cold:
            self._cool_down(self.stream("cold"))
        self.steps = self.random.randint(4, 14)
        self.topics = self._make_topics()
        self.faults = self._make_faults()

    def _make_referee(self) -> Referee:
        return Referee(self.loop)

    def _make_faults(self) -> Faults:
        return Faults(self)

    def _make_topics(self) -> Topics:
        return Topics(self)

    def _settings(self) -> dict[str, str]:
        more = CLEANING if self.options.cleaning else {}
        return {**more, **self.settings, **(DURABLE if self.all_durable else {})}

    def _cool_down(self, random: Random) -> None:
        for node in self.nodes:
            node.platter.coldness = random.choice((0.0, 0.0, 0.05, 0.6))
            node.platter.cold_random = Random(random.getrandbits(64))

    def stream(self, name: str) -> Random:
        """What is drawn here changes no other draw: see sim.options."""
        return Random(f"{self.seed} {name}")

    def chance(self) -> Random:
        return Random(self.random.getrandbits(64))

    def play(self) -> None:
        """Without the collector: half of what it examines are the modules, and it finds nothing before the end."""
        gc.disable()
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._history())
        finally:
            asyncio.set_event_loop(None)
            for node in self.nodes:
                if node.life is not None:
                    node.life.process.alive, node.life.disk.is_gone = False, True
            self.loop.dispose()
            gc.enable()

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
            await asyncio.sleep(POLL_SECONDS)
            self.referee.observe(self.nodes)
            for node in self.nodes:
                if (node.unclean or node.power_lost) and node.life is not node.crashing and self.is_in_sync(node):
                    node.unclean = node.power_lost = False

    async def _play(self) -> None:
        for node in self.nodes:
            node.start()
        await self.until(self._all_serve, START_SECONDS_MAX, "the fleet does not start")
        await self.topics.begin()
        await self.until(self.is_healthy, START_SECONDS_MAX, "the new topics are not replicated")
        self.topics.start_clients()
        for _ in range(self.steps):
            self.faults.deed()
            await asyncio.sleep(self.random.choice((0.05, 0.3, 1.0, 3.0, 6.0)))
        await self._heal()
        await self.topics.judge()

    # -- what is the case

    def image(self) -> Image | None:
        """Of the active controller."""
        lives = [node.life for node in self.nodes if node.life is not None and node.life.hears]
        active = [life for life in lives if life.quorum.controller.is_active]
        newest = max(active, key=lambda life: life.quorum.driver.term, default=None)
        return newest.quorum.feed.image if newest is not None else None

    def is_in_sync(self, node: SimNode) -> bool:
        """In every in-sync set that it should be in."""
        image = self.image()
        if node.life is None or not node.life.serves or image is None:
            return False
        own = image.brokers.get(node.id)
        current = own is not None and own.is_active and own.epoch == node.life.broker_epoch
        return current and all(node.id in state.isr for state in partitions(image) if node.id in state.replicas)

    def _all_serve(self) -> bool:
        return all(node.life is not None and node.life.serves for node in self.nodes) and self.image() is not None

    def is_healthy(self) -> bool:
        """All are back, nothing is on the move, and every replica is in sync."""
        image = self.image()
        return (
            image is not None
            and self._all_serve()
            and all(self.is_in_sync(node) for node in self.nodes)
            and not any(state.adding or state.removing or state.lost for state in partitions(image))
        )

    def _nobody_is_crashing(self) -> bool:
        return not any(node.life is not None and node.life is node.crashing for node in self.nodes)

    async def until(self, condition: Callable[[], bool], seconds: float, problem: str) -> None:
        deadline = self.loop.time() + seconds
        while not condition():
            if self.loop.time() > deadline:
                raise Broken(f"{problem} within {seconds:.0f} s")
            await asyncio.sleep(POLL_SECONDS)

    # -- the end

    async def _heal(self) -> None:
        self.referee.note("faults end")
        self.faults.end()
        await self.until(self._nobody_is_crashing, HEAL_SECONDS_MAX, "what was begun before does not end")
        self.faults.start_all()
        await self.until(self.topics.is_settled, HEAL_SECONDS_MAX, "topics are not deleted and made")
        await self.until(self.is_healthy, HEAL_SECONDS_MAX, "not every replica is in sync")
        producers = self.topics.producers
        before = [len(producer.acknowledged) for producer in producers]
        await self.until(
            lambda: all(len(p.acknowledged) > had for p, had in zip(producers, before, strict=True)),
            HEAL_SECONDS_MAX,
            "a producer gets nothing acknowledged",
        )

    def _no_loose_ends(self) -> None:
        """Nothing of the broker failed unseen."""
        for context in self.loop.failures:
            error = context.get("exception")
            if not isinstance(error, Crash):
                self.referee.object(f"unhandled: {context.get('message')}: {error!r}")
        for error in self.loop.unseen_errors():
            self.referee.object(f"unhandled in a task: {error!r}")

    @property
    def acknowledged(self) -> int:
        return self.topics.acknowledged


def partitions(image: Image) -> list[PartitionState]:
    return [state for topic in image.topics.values() for state in topic.partitions]
