"""Groups in the simulated fleet: a coordinator on every node, clients that commit, read and share partitions.

world = GroupWorld(seed); world.play()        raises Broken, as World does
"""

import asyncio
from typing import Any

from ottla.config import configure
from ottla.errors import KafkaError
from ottla.group.coordinator import GroupCoordinator
from ottla.group.offsets_topic import OFFSETS_TOPIC
from sim.group_clients import Committer, GroupMember, Ownership
from sim.node import Life, SimNode
from sim.virtual_loop import Process
from sim.world import HEAL_SECONDS_MAX, LOOK_SECONDS, NODES, START_SECONDS_MAX, TOPIC, World

__all__ = ["GroupWorld"]

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "500",
    "group.min.session.timeout.ms": "100",
}


class GroupLife(Life):
    groups: GroupCoordinator

    async def _start_broker(self) -> None:
        await super()._start_broker()
        assert self.host is not None
        self.groups = GroupCoordinator(
            config=self.node.config,
            settings=self.quorum.settings,
            system=self.system,
            feed=self.quorum.feed,
            replicas=self.host,
            controller=self.controller,
        )
        self.groups.start()


class GroupNode(SimNode):
    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        given = {**self.config.explicit, **SETTINGS}
        self.config = configure(given, dict.fromkeys(given, "--set"), hostname="here")

    def start(self) -> None:
        assert self.life is None
        self.lives += 1
        self.life = GroupLife(self, Process(f"{self.id}.{self.lives}"))
        self.loop.within(self.life.process, self.life.start())


class GroupWorld(World):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for node_id in NODES:
            self.network.nodes[node_id] = GroupNode(
                node_id, ids=NODES, network=self.network, referee=self.referee, random=self._chance()
            )
        self.nodes = list(self.network.nodes.values())
        self.committers: list[Committer] = []
        self.members: list[GroupMember] = []
        self.ownership = Ownership(self.referee)

    def is_in_sync(self, node: SimNode) -> bool:
        image = self.image()
        if not super().is_in_sync(node) or image is None:
            return False
        offsets = image.topics.get(OFFSETS_TOPIC)
        return offsets is None or all(node.id in state.isr for state in offsets.partitions)

    async def _create_topic(self) -> None:
        await super()._create_topic()
        life = self.nodes[0].life
        assert isinstance(life, GroupLife)
        for _ in range(round(START_SECONDS_MAX / LOOK_SECONDS)):
            try:
                await self.loop.within(life.process, life.groups.leader_of("any"))
                return
            except KafkaError:
                await asyncio.sleep(LOOK_SECONDS)

    def _start_clients(self) -> None:
        super()._start_clients()
        for number in range(3):
            self.committers.append(Committer(f"alone-{number}", TOPIC, self.network, self.referee, self._chance()))
        for _ in range(self.random.randint(2, 3)):
            self.members.append(
                GroupMember("team", TOPIC, self.partitions, self.ownership, self.network, self._chance())
            )
        for client in (*self.committers, *self.members):
            self._run_client(client.run())

    async def _heal(self) -> None:
        await super()._heal()
        before = [committer.acknowledged for committer in self.committers]
        await self._until(
            lambda: all(c.acknowledged > had for c, had in zip(self.committers, before, strict=True)),
            HEAL_SECONDS_MAX,
            "a group cannot commit",
        )
        await self._until(self._team_is_whole, HEAL_SECONDS_MAX, "the members of a group do not settle")

    def _team_is_whole(self) -> bool:
        """All members in one generation, every partition owned once."""
        generations = {member.generation for member in self.members}
        owned = [partition for member in self.members for partition in member.owned]
        return len(generations) == 1 and sorted(owned) == list(range(self.partitions))

    async def _judge(self) -> None:
        for client in (*self.committers, *self.members):
            client.stopping = True
        await super()._judge()
        for committer in self.committers:
            await self._until_read(committer)

    async def _until_read(self, committer: Committer) -> None:
        deadline = self.loop.time() + HEAL_SECONDS_MAX
        while not await committer.read():
            if self.loop.time() > deadline:
                self.referee.object(f"the offset of {committer.group} cannot be read at the end")
                return
            await asyncio.sleep(LOOK_SECONDS)

    def _no_loose_ends(self) -> None:
        """An answer with Kafka's code that a process did not live to read is no failure."""
        self.loop.failures = [
            context for context in self.loop.failures if not isinstance(context.get("exception"), KafkaError)
        ]
        super()._no_loose_ends()
