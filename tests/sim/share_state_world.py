"""States of share-partitions in the simulated fleet, beside all that goes wrong in a World.

world = ShareStateWorld(seed); world.play()        raises Broken, as World does
"""

import asyncio
from collections.abc import Mapping
from typing import ClassVar

from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import Reassignment
from ottla.share.coordinator import SHARE_STATE_TOPIC
from ottla.share.core.messages import ShareKey
from sim.coordinated_world import CoordinatedWorld, find_coordinators
from sim.share_claims import Claimant, KeyHistory
from sim.topics import STAYS, Topics
from sim.workload import Disconnected
from sim.world import HEAL_SECONDS_MAX, POLL_SECONDS

__all__ = ["ShareStateWorld"]

STATE_PARTITIONS = 2
KEYS = 4
RIVALS = 2


class ShareStateWorld(CoordinatedWorld):
    settings: ClassVar[Mapping[str, str]] = {
        "share.coordinator.state.topic.num.partitions": str(STATE_PARTITIONS),
        "share.coordinator.state.topic.prune.interval.ms": "700",
        "share.coordinator.cold.partition.snapshot.interval.ms": "1500",
        "share.coordinator.snapshot.update.records.per.snapshot": "3",
    }
    topics: "ShareStateTopics"

    def _make_topics(self) -> "ShareStateTopics":
        return ShareStateTopics(self)

    @property
    def answers(self) -> int:
        return sum(history.answers for history in self.topics.histories)

    async def _heal(self) -> None:
        await super()._heal()
        histories = self.topics.histories
        before = [history.answers for history in histories]
        await self.until(
            lambda: all(history.answers > had for history, had in zip(histories, before, strict=True)),
            HEAL_SECONDS_MAX,
            "the state of a share-partition cannot be written",
        )


class ShareStateTopics(Topics):
    def __init__(self, world: ShareStateWorld) -> None:
        super().__init__(world)
        self.histories: list[KeyHistory] = []
        self.claimants: list[Claimant] = []

    async def begin(self) -> None:
        await self._make(STAYS, 1)
        await find_coordinators(self._world, "share_states")

    def start_clients(self) -> None:
        world, topic_id = self._world, self._trials[STAYS].id
        self.histories = [KeyHistory(ShareKey(f"group-{number}", topic_id, 0), world.referee) for number in range(KEYS)]
        for history in self.histories:
            self.claimants += [Claimant(history, world.network, world.chance()) for _ in range(RIVALS)]
        for claimant in self.claimants:
            self.run(claimant.run())

    def move_one(self) -> None:
        replicas = self.random.sample([node.id for node in self._world.nodes], 3)
        index = self.random.randrange(STATE_PARTITIONS)
        self._world.referee.note(f"{SHARE_STATE_TOPIC}-{index} moves to {replicas}")
        self.run(self._move(Reassignment(SHARE_STATE_TOPIC, index, replicas)))

    async def judge(self) -> None:
        for claimant in self.claimants:
            claimant.stopping = True
        await asyncio.sleep(5.0)
        for claimant in self.claimants[::RIVALS]:
            await self._until_claimed(claimant)

    async def _until_claimed(self, claimant: Claimant) -> None:
        deadline = self._world.loop.time() + HEAL_SECONDS_MAX
        while not await _claimed(claimant):
            if self._world.loop.time() > deadline:
                self._world.referee.object(f"{claimant.history.key} cannot be read at the end")
                return
            await asyncio.sleep(POLL_SECONDS)


async def _claimed(claimant: Claimant) -> bool:
    try:
        return await claimant.claim()
    except (Disconnected, KafkaError):
        return False
