"""Simulated members of KIP-848 groups, through the broker's own handlers."""

import asyncio
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

from ottla.errors import Code
from sim.fetching import handled
from sim.group_clients import GroupClient, Ownership
from sim.network import Network
from sim.node import SimNode
from sim.workload import Disconnected

__all__ = ["ConsumerMember", "Holdings"]

HEARTBEAT = (68, 1)
SESSION_MS = 5000
REBALANCE_MS = 60_000  # never the reason to be shut out: who is too slow to let go is overtaken, as in Kafka
BELIEVED_S = 4.8  # of these, as the coordinator's clock may run
PAUSE_S = 0.6
JOINING, LEAVING = 0, -1
AGAIN = (Code.not_coordinator, Code.coordinator_load_in_progress, Code.coordinator_not_available)


class Holdings:
    """Who holds what now: no partition is with two members that both heard from their coordinator within their session.

    `is_current`: a broker that is cut off goes on answering for groups that another one has taken over, as Kafka's do;
    what it says counts for nothing here.
    """

    def __init__(self, ownership: Ownership, is_current: Callable[[SimNode, str], bool]) -> None:
        self.ownership, self.is_current = ownership, is_current
        self.members: list[ConsumerMember] = []

    def check(self, now: float) -> None:
        holders: dict[int, str] = {}
        for member in self.members:
            if now - member.confirmed_at < BELIEVED_S:
                for partition in member.owned:
                    other = holders.setdefault(partition, member.member_id)
                    if other != member.member_id:
                        self.ownership.referee.object(f"{other} and {member.member_id} both hold {partition}")


class ConsumerMember(GroupClient):
    """Joins, takes and gives up partitions as assigned; now and then it leaves, or dies and comes again."""

    def __init__(self, group: str, topic: str, holdings: Holdings, network: Network, random: Random) -> None:
        super().__init__(group, topic, network, holdings.ownership.referee, random)
        self.holdings = holdings
        self._lives, self._topic_id = 0, bytes(16)
        self._begin()
        holdings.members.append(self)

    def _begin(self) -> None:
        self._lives += 1
        self.member_id = f"{self.group}-{self.random.getrandbits(32):08x}-{self._lives}"
        self.epoch = JOINING
        self.owned: frozenset[int] = frozenset()
        self.confirmed_at = float("-inf")
        self._tells_all = True

    async def run(self) -> None:
        while not self.stopping:
            await self._beat(self.epoch)
            fate = self.random.random()
            if fate < 0.01:
                self.referee.note(f"{self.member_id} dies")
                self._begin()
            elif fate < 0.02 and self.epoch > 0:
                self.owned = frozenset()  # as clients do: first they let go, then they say so
                await self._beat(LEAVING)
                self._begin()
            await asyncio.sleep(self.random.random() * PAUSE_S)

    async def _beat(self, epoch: int) -> None:
        node, asked_at = self.coordinator(), self.network.loop.time()
        if node is None:
            return
        try:
            answer = await self.ask(node, handled(node, HEARTBEAT, self._request(epoch)))
        except Disconnected:
            self._tells_all = True
            return
        if answer.error_code in (Code.unknown_member_id, Code.fenced_member_epoch):
            self.referee.note(f"{self.member_id} is shut out")
            self.epoch, self.owned, self._tells_all = JOINING, frozenset(), True
        elif answer.error_code not in (Code.none, *AGAIN):
            self.referee.object(f"{self.member_id} gets {Code(answer.error_code).name}")
        elif answer.error_code == Code.none and epoch != LEAVING:
            self._heard(node, answer, asked_at)

    def _request(self, epoch: int) -> SimpleNamespace:
        everything = self._tells_all or epoch == JOINING
        topics = [SimpleNamespace(topic_id=self._topic_id, partitions=sorted(self.owned))] if self.owned else []
        return SimpleNamespace(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=None,
            rack_id=None,
            rebalance_timeout=REBALANCE_MS if everything else -1,
            subscribed_topic_names=[self.topic] if everything else None,
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=topics,
        )

    def _heard(self, node: SimNode, answer: Any, asked_at: float) -> None:
        self.epoch, self._tells_all = answer.member_epoch, False
        if self.holdings.is_current(node, self.group):
            self.confirmed_at = asked_at
        if answer.assignment is not None:
            topics = answer.assignment.topic_partitions
            self._topic_id = topics[0].topic_id.bytes if topics else self._topic_id
            owned = frozenset(index for topic in topics for index in topic.partitions)
            if owned != self.owned:
                self.owned = owned
                self.holdings.ownership.take(self.member_id, self.epoch, sorted(owned))
        self.holdings.check(self.network.loop.time())
