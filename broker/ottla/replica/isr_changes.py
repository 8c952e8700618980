"""Requests changes of in-sync sets from the controller: one in flight per partition, all waiting ones in one
request."""

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from typing import Any, Protocol

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AlterPartition, Command, IsrChange
from ottla.replica.partition import Partition
from ottla.system import System

__all__ = ["Controller", "IsrChanges"]

log = logging.getLogger("ottla.replica")

CHANGES_AT_ONCE = 1_000
RETRY_S = 0.2
REFUSED_PAUSE_S = 1.0  # before a refused set is requested again

UNCERTAIN = frozenset({Code.not_controller, Code.fenced_leader_epoch, Code.invalid_update_version})
"""This broker or the controller is behind: the next image resolves it. Until then both sets count."""


class Controller(Protocol):
    def submit(self, command: Command[Any], /) -> Awaitable[Any]: ...


class BrokerEpoch(Protocol):
    def __call__(self) -> int: ...


class IsrChanges:
    def __init__(self, *, node_id: int, epoch: BrokerEpoch, controller: Controller, system: System) -> None:
        self._node_id = node_id
        self._epoch = epoch
        self._controller = controller
        self._system = system
        self._waiting: dict[Partition, IsrChange] = {}
        self._not_before: dict[Partition, float] = {}
        self._awake = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    def consider(self, partitions: Iterable[Partition]) -> None:
        """Request the wanted in-sync set where it differs from the current one."""
        now = self._system.clock.monotonic()
        for partition in partitions:
            view = partition.view
            if view is None or now < self._not_before.get(partition, now) or (wanted := view.wanted_isr(now)) is None:
                continue
            self._not_before.pop(partition, None)
            log.info("%s: in sync are %s, should be %s", partition, sorted(view.isr), sorted(wanted))
            members = view.propose(wanted, now=now)
            self._waiting[partition] = IsrChange(
                partition.topic_id, partition.index, partition.leader_epoch, partition.partition_epoch, members
            )
            self._awake.set()

    def _reconsider(self, partition: Partition) -> None:
        if not self._task.done():
            self._not_before.pop(partition, None)
            self.consider((partition,))

    async def _run(self) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            while self._waiting:
                batch = dict(list(self._waiting.items())[:CHANGES_AT_ONCE])
                if not await self._ask(batch):
                    await asyncio.sleep(RETRY_S)

    async def _ask(self, batch: dict[Partition, IsrChange]) -> bool:
        """False when the outcome is unknown and the request has to be repeated."""
        self._drop_outdated(batch)
        if not batch:
            return True
        changes = list(batch.values())
        try:
            outcomes = await self._controller.submit(AlterPartition(self._node_id, self._epoch(), changes))
        except KafkaError as error:
            log.warning("the controller did not change %d in-sync sets: %s; asking again", len(batch), error)
            return False
        except Exception:
            log.exception("asking the controller to change in-sync sets failed; asking again")
            return False
        settled = [self._settle(*pair, outcome) for pair, outcome in zip(batch.items(), outcomes, strict=True)]
        return all(settled)

    def _drop_outdated(self, batch: dict[Partition, IsrChange]) -> None:
        """Drop changes whose partition has a newer state: that has ended the proposal."""
        for partition, change in list(batch.items()):
            same_epochs = (partition.leader_epoch, partition.partition_epoch) == (
                change.leader_epoch,
                change.partition_epoch,
            )
            if partition.view is None or partition.view.pending is None or not same_epochs:
                del batch[partition]
                self._forget(partition, change)
                self.consider((partition,))

    def _forget(self, partition: Partition, change: IsrChange) -> None:
        if self._waiting.get(partition) is change:
            del self._waiting[partition]

    def _settle(self, partition: Partition, change: IsrChange, outcome: Any) -> bool:
        if outcome.code is Code.none:
            self._forget(partition, change)
            partition.isr_committed(outcome.value)
            self.consider((partition,))  # a follower that caught up meanwhile may not send another acknowledgement
            return True
        if outcome.code in UNCERTAIN:
            return False
        log.warning("%s: the controller refuses its in-sync set: %s", partition, outcome.code.name)
        self._forget(partition, change)
        self._not_before[partition] = self._system.clock.monotonic() + REFUSED_PAUSE_S
        asyncio.get_running_loop().call_later(REFUSED_PAUSE_S, self._reconsider, partition)
        if change.leader_epoch == partition.leader_epoch and change.partition_epoch == partition.partition_epoch:
            partition.isr_refused()
        return True
