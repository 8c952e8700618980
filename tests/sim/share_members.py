"""Members of a share group: they join by heartbeats, fetch from the leaders of what they are assigned, and acknowledge.

What is checked: every acknowledged record of a producer is delivered to some member; what was accepted, and confirmed
so, is not delivered again. A leader that was replaced and does not know it yet may still deliver it (KIP-932: only its
acknowledgements are fenced), so a delivery counts by the leader epoch in which it was made.
"""

import asyncio
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from ottla.errors import Code
from sim.fetching import handled
from sim.group_clients import GroupClient
from sim.invariants import Referee
from sim.network import Network
from sim.node import Life, SimNode
from sim.workload import Disconnected

__all__ = ["Deliveries", "ShareMember"]

HEARTBEAT, SHARE_FETCH = (76, 1), (78, 1)
JOINING, LEAVING = 0, -1
PAUSE_S = 0.3
ACCEPT, RELEASE = 1, 2
FIRST_EPOCH = 0
AGAIN = frozenset(
    {Code.coordinator_not_available, Code.coordinator_load_in_progress, Code.not_coordinator, Code.request_timed_out}
)
SHUT_OUT = frozenset({Code.unknown_member_id, Code.fenced_member_epoch, Code.group_id_not_found})


@dataclass
class Deliveries:
    """Of one share-partition. `accepted`: offset → the leader epoch and the time in which it was confirmed."""

    referee: Referee
    index: int
    delivered: set[int] = field(default_factory=set)
    accepted: dict[int, tuple[int, float]] = field(default_factory=dict)

    def deliver(self, offset: int, *, epoch: int, asked_at: float) -> None:
        self.delivered.add(offset)
        in_epoch, at = self.accepted.get(offset, (epoch + 1, 0.0))
        if epoch >= in_epoch and asked_at > at:
            self.referee.object(f"record {offset} of {self.index} is delivered again after it was accepted")


class ShareMember(GroupClient):
    def __init__(
        self,
        group: str,
        topic: str,
        topic_id: UUID,
        deliveries: list[Deliveries],
        network: Network,
        referee: Referee,
        random: Random,
    ) -> None:
        super().__init__(group, topic, network, referee, random)
        self.topic_id, self.deliveries = topic_id, deliveries
        self._lives = 0
        self.releases = 0.2
        self._begin()

    def _begin(self) -> None:
        self._lives += 1
        self.member_id = str(UUID(int=self.random.getrandbits(128), version=4))
        self.epoch = JOINING
        self.assigned: frozenset[int] = frozenset()
        self._sessions: dict[str, int] = {}  # process → the epoch of the next request
        self._held: dict[str, dict[int, list[tuple[int, int]]]] = {}  # process → partition → what it was given

    async def run(self) -> None:
        while not self.stopping:
            await self._beat(self.epoch)
            for _ in range(self.random.randint(1, 3)):
                await asyncio.sleep(self.random.random() * PAUSE_S)
                await self._poll()
            fate = self.random.random()
            if fate < 0.01:
                self.referee.note(f"{self.member_id} dies")
                self._begin()
            elif fate < 0.02 and self.epoch > 0:
                await self._beat(LEAVING)
                self._begin()

    # -- membership

    async def _beat(self, epoch: int) -> None:
        request = SimpleNamespace(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=[self.topic] if epoch == JOINING else None,
        )
        answer = await self.call(HEARTBEAT, request)
        if answer is None or epoch == LEAVING:
            return
        if answer.error_code in SHUT_OUT:
            self.referee.note(f"{self.member_id} is shut out")
            self._begin()
        elif answer.error_code == Code.none:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                topics = answer.assignment.topic_partitions
                self.assigned = frozenset(index for topic in topics for index in topic.partitions)
        elif answer.error_code not in AGAIN:
            self.referee.object(f"{self.member_id} gets {Code(int(answer.error_code)).name}")

    # -- delivery

    async def _poll(self) -> None:
        image = self.some_image()
        topic = image.topics_by_id.get(self.topic_id) if image is not None else None
        if topic is None or not self.assigned:
            return
        leaders = {index: topic.partitions[index].leader for index in sorted(self.assigned)}
        node = self.network.nodes.get(self.random.choice(list(leaders.values())))
        if node is None or node.life is None:
            return
        wanted = [index for index, leader in leaders.items() if leader == node.id]
        await self._fetch(node, node.life, wanted)

    async def _fetch(self, node: SimNode, life: Life, wanted: list[int]) -> None:
        process, asked_at = life.process.name, self.network.loop.time()
        epoch = self._sessions.pop(process, FIRST_EPOCH)
        held = self._held.pop(process, {})
        given = {} if epoch == FIRST_EPOCH else {index: self._judged(rows) for index, rows in held.items()}
        epochs: dict[int, tuple[int, int]] = {}
        try:
            answer = await self.ask(node, self._asking(node, life, self._request(epoch, wanted, given), epochs))
        except Disconnected:
            return
        if answer.error_code != Code.none:
            return  # the session is gone: what was acquired is released there
        self._sessions[process] = epoch + 1
        for part in (part for topic in answer.responses for part in topic.partitions):
            self._take(process, part, given.get(part.partition_index, []), epochs, asked_at)

    async def _asking(self, node: SimNode, life: Life, request: Any, epochs: dict[int, tuple[int, int]]) -> Any:
        """Within the node. Before and after it is noted in which epochs this node leads."""
        before = self._epochs_of(life)
        answer = await handled(node, SHARE_FETCH, request)
        epochs.update({index: (before.get(index, -1), epoch) for index, epoch in self._epochs_of(life).items()})
        return answer

    def _epochs_of(self, life: Life) -> dict[int, int]:
        if life.host is None:
            return {}
        found = (life.host.find(self.topic_id.bytes, each.index) for each in self.deliveries)
        return {one.index: one.leader_epoch for one in found if one is not None}

    def _judged(self, rows: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
        """(first, last, what becomes of them)"""
        return [(*row, RELEASE if self.random.random() < self.releases else ACCEPT) for row in rows]

    def _request(self, epoch: int, wanted: list[int], given: dict[int, list[tuple[int, int, int]]]) -> Any:
        parts = [
            SimpleNamespace(
                partition_index=index,
                acknowledgement_batches=[
                    SimpleNamespace(first_offset=first, last_offset=last, acknowledge_types=[kind])
                    for first, last, kind in given.get(index, [])
                ],
            )
            for index in sorted({*wanted, *given})
        ]
        return SimpleNamespace(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=epoch,
            max_wait=self.random.choice((0, 300)),
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=self.random.choice((3, 500)),
            batch_size=500,
            topics=[SimpleNamespace(topic_id=self.topic_id.bytes, partitions=parts)],
            forgotten_topics_data=[],
        )

    def _take(
        self,
        process: str,
        part: Any,
        given: list[tuple[int, int, int]],
        epochs: dict[int, tuple[int, int]],
        asked_at: float,
    ) -> None:
        deliveries, now = self.deliveries[part.partition_index], self.network.loop.time()
        before, after = epochs.get(part.partition_index, (-1, 1 << 30))
        rows = [(one.first_offset, one.last_offset) for one in part.acquired_records]
        for first, last in rows:
            for offset in range(first, last + 1):
                deliveries.deliver(offset, epoch=before, asked_at=asked_at)
        if rows:
            self._held.setdefault(process, {})[part.partition_index] = rows
        if part.acknowledge_error_code == Code.none:
            for first, last, kind in given:
                if kind == ACCEPT:
                    deliveries.accepted |= dict.fromkeys(range(first, last + 1), (after, now))
