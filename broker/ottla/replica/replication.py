"""Replication of this broker: follows leaders as the image says, and maintains the in-sync sets of its own
partitions."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Protocol

from ottla.metadata.model.image import Image
from ottla.metadata.model.state import NO_LEADER
from ottla.replica.follower_stream import FollowerStream
from ottla.replica.isr_changes import Controller, IsrChanges
from ottla.replica.partition import Partition
from ottla.replica.streams import Connect
from ottla.system import System
from ottla.wire.replication import Hello

__all__ = ["Replication"]

log = logging.getLogger("ottla.replica")

NO_BROKER_EPOCH = -1
CUTS_AT_ONCE_MAX = 4  # each may block a thread for seconds; reads and flushes need the others (RealThreads: 8)


class ReplicationHost(Protocol):
    node_id: int

    @property
    def image(self) -> Image: ...
    def __iter__(self) -> Iterator[Partition]: ...


class Replication:
    def __init__(
        self, host: ReplicationHost, *, connect: Connect, controller: Controller, system: System, lag_max_s: float
    ) -> None:
        self._host = host
        self._connect = connect
        self._system = system
        self._links: dict[int, FollowerStream] = {}
        self._cutting = asyncio.Semaphore(CUTS_AT_ONCE_MAX)
        self._followed: dict[Partition, tuple[int, int]] = {}  # leader, leader epoch
        self._isr_changes = IsrChanges(
            node_id=host.node_id, epoch=self._broker_epoch, controller=controller, system=system
        )
        self._checking = asyncio.ensure_future(self._check_lag(lag_max_s / 2))

    async def stop(self) -> None:
        self._checking.cancel()
        await asyncio.gather(self._isr_changes.stop(), *(link.stop() for link in self._links.values()))

    # following

    def follow_leader(self, partition: Partition) -> None:
        """Follow the partition's leader, if that is another broker."""
        leader = partition.leader_id
        follows = not partition.is_leader and leader not in (NO_LEADER, self._host.node_id)
        wanted = (leader, partition.leader_epoch) if follows else None
        if self._followed.get(partition) == wanted:
            return
        self.unfollow(partition)
        if wanted is not None:
            self._followed[partition] = wanted
            self._link(leader).follow(partition)

    def unfollow(self, partition: Partition) -> None:
        if (before := self._followed.pop(partition, None)) is not None:
            self._links[before[0]].leave(partition)

    def _link(self, leader: int) -> FollowerStream:
        link = self._links.get(leader)
        if link is None:
            link = self._links[leader] = FollowerStream(
                leader, connect=self._connect, address=self._address, hello=self._hello, cutting=self._cutting
            )
        return link

    def _address(self, broker_id: int) -> str | None:
        broker = self._host.image.brokers.get(broker_id)
        return broker.peer_address or None if broker is not None else None

    def _hello(self) -> Hello:
        return Hello(self._host.image.cluster_id, self._host.node_id, self._broker_epoch())

    def _broker_epoch(self) -> int:
        broker = self._host.image.brokers.get(self._host.node_id)
        return broker.epoch if broker is not None else NO_BROKER_EPOCH

    # in-sync sets

    def follower_progressed(self, partition: Partition) -> None:
        if partition.view is not None and not partition.view.is_complete:
            self._isr_changes.consider((partition,))

    def brokers_changed(self) -> None:
        """A broker was fenced, unfenced or registered again: in-sync sets and epochs may change."""
        for link in self._links.values():
            link.brokers_changed()
        self._check()

    def _check(self) -> None:
        for partition in self._host:
            if partition.view is not None and not partition.view.is_alone:
                partition.refresh()
                self._isr_changes.consider((partition,))

    async def _check_lag(self, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                self._check()
            except Exception:
                log.exception("checking for lagging followers failed; retrying")
