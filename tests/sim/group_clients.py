"""Simulated clients of groups, through the broker's own handlers: committers, and members that share partitions."""

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

from ottla.coordination.core.partitioning import partition_of
from ottla.errors import Code
from ottla.group.offsets_topic import OFFSETS_TOPIC
from ottla.wire.offset_commit import CommitRequest
from sim.fetching import handled
from sim.invariants import Referee
from sim.network import Network
from sim.node import SimNode
from sim.workload import Client, Disconnected

__all__ = ["Committer", "GroupMember", "Ownership"]

COMMIT, FETCH, JOIN, HEARTBEAT, LEAVE, SYNC = (8, 9), (9, 9), (11, 9), (12, 4), (13, 5), (14, 5)
PAUSE_S = 0.3
SESSION_MS, REBALANCE_MS = 3000, 3000


class GroupClient(Client):
    def __init__(self, group: str, topic: str, network: Network, referee: Referee, random: Random) -> None:
        super().__init__(network, referee, random)
        self.group, self.topic = group, topic
        self.stopping = False

    def coordinator(self) -> SimNode | None:
        """As some node's metadata says. What is older than what was heard before is not believed: a broker that is cut
        off goes on answering for groups that another one has taken over, as Kafka's do."""
        image = self.some_image()
        topic = image.topics.get(OFFSETS_TOPIC) if image is not None else None
        if topic is None:
            return None
        return self.believed(topic.partitions[partition_of(self.group, len(topic.partitions))])

    async def call(self, api_key: tuple[int, int], request: Any) -> Any | None:
        """None when nobody answers."""
        node = self.coordinator()
        if node is None:
            return None
        try:
            return await self.ask(node, handled(node, api_key, request))
        except Disconnected:
            return None


class Committer(GroupClient):
    """Commits growing offsets and reads them: what was acknowledged is never lost, what was read never goes back."""

    acknowledged = attempted = seen = -1

    async def run(self) -> None:
        while not self.stopping:
            if self.random.random() < 0.6:
                await self._commit()
            else:
                await self.read()
            await asyncio.sleep(self.random.random() * PAUSE_S)

    async def _commit(self) -> None:
        self.attempted += 1
        request = CommitRequest(self.group, -1, "", None, [(self.topic, [(0, self.attempted, -1, "")])])
        answer = await self.call(COMMIT, request)
        if answer is not None and answer.topics[0].partitions[0].error_code == Code.none:
            self.acknowledged = self.attempted

    async def read(self) -> bool:
        at_least = max(self.acknowledged, self.seen)
        topic = SimpleNamespace(name=self.topic, partition_indexes=[0])
        group = SimpleNamespace(group_id=self.group, member_id=None, member_epoch=-1, topics=[topic])
        answer = await self.call(FETCH, SimpleNamespace(groups=[group], require_stable=True))
        if answer is None or answer.groups[0].error_code != Code.none:
            return False
        found = answer.groups[0].topics[0].partitions[0].committed_offset
        if not at_least <= found <= self.attempted:
            self.referee.object(f"{self.group} reads {found}, after {at_least} was answered and {self.attempted} tried")
        self.seen = found
        return True


class Ownership:
    """Who owns what in which generation: no partition twice."""

    def __init__(self, referee: Referee) -> None:
        self.referee = referee
        self._owners: dict[tuple[int, int], str] = {}

    def take(self, member_id: str, generation: int, partitions: list[int]) -> None:
        self.referee.note(f"{member_id} owns {partitions} in generation {generation}")
        for partition in partitions:
            owner = self._owners.setdefault((generation, partition), member_id)
            if owner != member_id:
                self.referee.object(f"{owner} and {member_id} own {partition} in generation {generation}")


class GroupMember(GroupClient):
    """Joins, takes its share, beats, joins again when it must; now and then it leaves or falls silent."""

    def __init__(
        self, group: str, topic: str, partitions: int, ownership: Ownership, network: Network, random: Random
    ) -> None:
        super().__init__(group, topic, network, ownership.referee, random)
        self.partitions, self.ownership = partitions, ownership
        self.member_id, self.generation = "", -1
        self.owned: list[int] = []

    async def run(self) -> None:
        while not self.stopping:
            joined = await self._join()
            if joined is not None and await self._sync(joined):
                await self._live()
            self.owned = []
            await asyncio.sleep(self.random.random() * PAUSE_S)

    async def _join(self) -> Any | None:
        request = SimpleNamespace(
            group_id=self.group,
            session_timeout=SESSION_MS,
            rebalance_timeout=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[SimpleNamespace(name="range", metadata=b"")],
            reason=None,
        )
        answer = await self.call(JOIN, request)
        if answer is None:
            return None
        if answer.error_code == Code.member_id_required:
            self.member_id = answer.member_id
        elif answer.error_code in (Code.unknown_member_id, Code.fenced_instance_id):
            self.member_id = ""
        return answer if answer.error_code == Code.none else None

    async def _sync(self, joined: Any) -> bool:
        assignments = []
        if joined.leader == joined.member_id:
            ids = [member.member_id for member in joined.members]
            assignments = [
                SimpleNamespace(member_id=one, assignment=bytes(range(at, self.partitions, len(ids))))
                for at, one in enumerate(ids)
            ]
        request = SimpleNamespace(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        answer = await self.call(SYNC, request)
        if answer is None or answer.error_code != Code.none:
            return False
        self.generation, self.owned = joined.generation_id, list(answer.assignment)
        self.ownership.take(self.member_id, self.generation, self.owned)
        return True

    async def _live(self) -> None:
        while not self.stopping:
            await asyncio.sleep(0.5)
            answer = await self.call(
                HEARTBEAT,
                SimpleNamespace(
                    group_id=self.group,
                    generation_id=self.generation,
                    member_id=self.member_id,
                    group_instance_id=None,
                ),
            )
            if answer is None or answer.error_code in (Code.not_coordinator, Code.coordinator_load_in_progress):
                continue
            if answer.error_code in (Code.unknown_member_id, Code.illegal_generation):
                self.member_id = ""
            if answer.error_code != Code.none:
                return
