"""Groups in the simulated fleet: clients that commit, read and share partitions, beside all that a World does.

world = GroupWorld(seed); world.play()        raises Broken, as World does
"""

import asyncio
from collections.abc import Mapping
from typing import ClassVar

from ottla.coordination.core.partitioning import partition_of
from ottla.group.offsets_topic import OFFSETS_TOPIC
from sim.consumer_clients import SESSION_MS, ConsumerMember, Holdings
from sim.coordinated_world import CoordinatedWorld, find_coordinators
from sim.group_clients import Committer, GroupMember, Ownership
from sim.node import SimNode
from sim.topics import STAYS, Topics
from sim.world import HEAL_SECONDS_MAX, POLL_SECONDS, World

__all__ = ["GroupWorld"]

COMMITTERS = 3
MIN_ISR = 2  # as SimNode sets it
OFFSETS_PARTITIONS = 2


class GroupWorld(CoordinatedWorld):
    settings: ClassVar[Mapping[str, str]] = {
        "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
        "group.initial.rebalance.delay.ms": "500",
        "group.min.session.timeout.ms": "100",
        "group.consumer.min.session.timeout.ms": "100",
        "group.consumer.session.timeout.ms": str(SESSION_MS),
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "500",
    }
    topics: "GroupTopics"

    def _make_topics(self) -> "GroupTopics":
        return GroupTopics(self)

    async def _heal(self) -> None:
        await super()._heal()
        committers = self.topics.committers
        before = [committer.acknowledged for committer in committers]
        await self.until(
            lambda: all(c.acknowledged > had for c, had in zip(committers, before, strict=True)),
            HEAL_SECONDS_MAX,
            "a group cannot commit",
        )
        await self.until(self.topics.team_is_whole, HEAL_SECONDS_MAX, "the members of a group do not settle")
        await self.until(self.topics.crew_is_whole, HEAL_SECONDS_MAX, "the members of a KIP-848 group do not settle")


class GroupTopics(Topics):
    """With the offsets topic, and with groups as its clients."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._place = (world.network, world.referee)
        self.committers: list[Committer] = []
        self.members: list[GroupMember] = []
        self.ownership = Ownership(world.referee)
        self.crew: list[ConsumerMember] = []
        self._holdings = Holdings(Ownership(world.referee), self._coordinates)

    async def begin(self) -> None:
        await super().begin()
        await find_coordinators(self._world, "groups")

    def start_clients(self) -> None:
        super().start_clients()
        world = self._world
        for number in range(COMMITTERS):
            self.committers.append(Committer(f"alone-{number}", STAYS, *self._place, world.chance()))
        for _ in range(self.random.randint(2, 3)):
            place = (self.partitions, self.ownership, world.network)
            self.members.append(GroupMember("team", STAYS, *place, world.chance()))
        for _ in range(self.random.randint(2, 3)):
            self.crew.append(ConsumerMember("crew", STAYS, self._holdings, world.network, world.chance()))
        alone, together = [one.run() for one in self.committers], [one.run() for one in self.members]
        for running in (*alone, *together, *(one.run() for one in self.crew)):
            self.run(running)

    def _coordinates(self, node: SimNode, group: str) -> bool:
        """By the newest metadata, and able to commit.

        A coordinator with fewer than min.insync.replicas in sync still answers heartbeats, as Kafka's does. If it dies,
        a replica from the ELR may lead next, whose log ends differently: there the same member may have expired.
        """
        image = self._world.image()
        state = image.partition(OFFSETS_TOPIC, partition_of(group, OFFSETS_PARTITIONS)) if image is not None else None
        return state is not None and state.leader == node.id and len(state.isr) >= MIN_ISR

    def crew_is_whole(self) -> bool:
        """All members in one epoch, every partition held once."""
        held = [partition for member in self.crew for partition in member.owned]
        return len({member.epoch for member in self.crew}) == 1 and sorted(held) == list(range(self.partitions))

    def team_is_whole(self) -> bool:
        """All members in one generation, every partition owned once."""
        generations = {member.generation for member in self.members}
        owned = [partition for member in self.members for partition in member.owned]
        return len(generations) == 1 and sorted(owned) == list(range(self.partitions))

    async def judge(self) -> None:
        for client in (*self.committers, *self.members, *self.crew):
            client.stopping = True
        await super().judge()
        for committer in self.committers:
            await self._until_read(committer)

    async def _until_read(self, committer: Committer) -> None:
        deadline = self._world.loop.time() + HEAL_SECONDS_MAX
        while not await committer.read():
            if self._world.loop.time() > deadline:
                self._world.referee.object(f"the offset of {committer.group} cannot be read at the end")
                return
            await asyncio.sleep(POLL_SECONDS)
