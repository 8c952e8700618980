"""Reconciles the states of share-partitions, which the persister keeps, with what share groups have recorded of them.

Each group has one reconciliation at a time. A step that fails stays recorded as unfinished, and the next reconciliation
retries it: at the next heartbeat, or when offsets are checked for expiry.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import Partition, Partitions
from ottla.group.heartbeats.entries import Entry, GroupEpoch
from ottla.group.shard import Shard
from ottla.group.share.group import ShareGroup
from ottla.group.share.initialization import (
    deleted_topics,
    finish_deleting,
    finish_initializing,
    start_deleting,
    start_initializing,
    uninitialized,
)
from ottla.group.share.records import GROUP_EPOCH, STATES, StatePartitions, encode
from ottla.metadata.model.image import Image
from ottla.share.core.messages import UNINITIALIZED, Persister, ShareKey, Summary

__all__ = ["StateReconciler"]

log = logging.getLogger("ottla.group")

AT_ONCE_MAX = 100  # requests to the persister


class Reconciled(NamedTuple):
    """The topics and the group of the last reconciliation that succeeded."""

    image: Image
    states: StatePartitions
    epoch: int

    def is_current(self, image: Image, group: ShareGroup) -> bool:
        """Images share what did not change, so comparing identities is enough."""
        log = group.log
        return self.image.topics is image.topics and self.states is log.states and self.epoch == log.epoch


class StateReconciler:
    """`keep` keeps a reference to a task until the task or the coordinator ends."""

    def __init__(
        self, persister: Persister, *, image: Callable[[], Image], keep: Callable[["asyncio.Task[None]"], None]
    ) -> None:
        self._persister = persister
        self._image = image
        self._keep = keep
        self._locks: WeakKeyDictionary[ShareGroup, asyncio.Lock] = WeakKeyDictionary()
        self._reconciled: WeakKeyDictionary[ShareGroup, Reconciled] = WeakKeyDictionary()

    # after heartbeats, and from time to time

    def reconcile(self, shard: Shard, group: ShareGroup) -> None:
        """Initialize missing states, delete unused ones. Does nothing while that is running, or if nothing changed."""
        reconciled = self._reconciled.get(group)
        if (reconciled is not None and reconciled.is_current(self._image(), group)) or self._lock(group).locked():
            return
        self._keep(asyncio.ensure_future(self._reconcile(shard, group)))

    async def _reconcile(self, shard: Shard, group: ShareGroup) -> None:
        async with self._lock(group):
            try:
                await self._delete_unused(shard, group)
                await self._initialize_new(shard, group)
            except KafkaError as error:
                log.warning("group %s: not all of its share-partitions have a state yet: %s", group.group_id, error)
            else:
                self._reconciled[group] = Reconciled(self._image(), group.log.states, group.log.epoch)

    async def _delete_unused(self, shard: Shard, group: ShareGroup) -> None:
        """States of deleted topics, and those whose deletion was started and never finished."""
        states, image = group.log.states, self._image()
        gone = deleted_topics(states, image) | frozenset(states.deleting)
        if not gone:
            return
        after, partitions = start_deleting(states, gone, image)
        await self._each(group, partitions, self._persister.delete)
        self._write(shard, group, finish_deleting(after, gone))

    async def _initialize_new(self, shard: Shard, group: ShareGroup) -> None:
        partitions = uninitialized(group.log.states, group.log.subscribed, self._image())
        if not partitions:
            return
        self._write(shard, group, start_initializing(group.log.states, partitions, self._image()))
        outcomes = await self._initialize(group, dict.fromkeys(partitions, UNINITIALIZED))
        self._write(shard, group, finish_initializing(group.log.states, _successes(outcomes)))
        if failures := [code for code in outcomes.values() if code is not Code.none]:
            raise KafkaError(failures[0], f"{len(failures)} of {len(outcomes)} could not be initialized")

    # by request

    async def alter(self, shard: Shard, group: ShareGroup, starts: Mapping[Partition, int]) -> dict[Partition, Code]:
        """Set the start offsets of these partitions. NON_EMPTY_GROUP while the group has members."""
        async with self._lock(group):
            self._check_empty(shard, group)
            if not starts:
                return {}
            partitions = frozenset(starts)
            epoch = GroupEpoch(group.log.epoch + 1, group.log.metadata_hash)
            risen = encode(Entry(GROUP_EPOCH, (group.group_id,), epoch))
            states = start_initializing(group.log.states, partitions, self._image())
            await shard.until_committed(shard.apply([risen, self._record(group, states)]))
            outcomes = await self._initialize(group, starts)
            self._write(shard, group, finish_initializing(group.log.states, _successes(outcomes)))
            await shard.until_committed(group.written)
            return outcomes

    async def delete(self, shard: Shard, group: ShareGroup, topic_ids: Iterable[bytes]) -> None:
        """Delete all states of these topics. NON_EMPTY_GROUP while the group has members."""
        async with self._lock(group):
            self._check_empty(shard, group)
            await self._delete_states(shard, group, frozenset(topic_ids))

    async def delete_group(self, shard: Shard, group: ShareGroup) -> None:
        async with self._lock(group):
            self._check_empty(shard, group)
            states = group.log.states
            await self._delete_states(
                shard, group, frozenset({*states.initializing, *states.initialized, *states.deleting})
            )
            self._check_empty(shard, group)  # a member may have joined meanwhile
            await shard.until_committed(shard.delete_group(group))

    async def _delete_states(self, shard: Shard, group: ShareGroup, topic_ids: frozenset[bytes]) -> None:
        after, partitions = start_deleting(group.log.states, topic_ids, self._image())
        self._write(shard, group, after)
        await self._each(group, partitions, self._persister.delete)
        self._write(shard, group, finish_deleting(group.log.states, topic_ids))
        await shard.until_committed(group.written)

    async def summaries(self, group_id: str, partitions: Partitions) -> dict[Partition, Summary | KafkaError]:
        """The start offset of each of them, or why it is not known."""
        found: dict[Partition, Summary | KafkaError] = {}

        async def ask(partition: Partition) -> None:
            try:
                found[partition] = await self._persister.summary(_key(group_id, partition))
            except KafkaError as error:
                found[partition] = error

        await _in_slices(partitions, ask)
        return found

    # steps

    def _lock(self, group: ShareGroup) -> asyncio.Lock:
        return self._locks.setdefault(group, asyncio.Lock())

    def _check_empty(self, shard: Shard, group: ShareGroup) -> None:
        _check_there(shard, group)
        if not group.is_empty:
            raise KafkaError(Code.non_empty_group, "The group is not empty.")

    def _record(self, group: ShareGroup, states: StatePartitions) -> tuple[bytes, bytes | None]:
        return encode(Entry(STATES, (group.group_id,), states))

    def _write(self, shard: Shard, group: ShareGroup, states: StatePartitions) -> None:
        _check_there(shard, group)
        if states != group.log.states:
            shard.apply([self._record(group, states)])

    async def _initialize(self, group: ShareGroup, starts: Mapping[Partition, int]) -> dict[Partition, Code]:
        epoch, outcomes = group.log.epoch, dict[Partition, Code]()

        async def one(partition: Partition) -> None:
            key = _key(group.group_id, partition)
            try:
                await self._persister.initialize(key, state_epoch=epoch, start=starts[partition])
            except KafkaError as error:
                outcomes[partition] = error.code
            else:
                outcomes[partition] = Code.none

        await _in_slices(starts, one)
        return outcomes

    async def _each(
        self, group: ShareGroup, partitions: Partitions, act: Callable[[ShareKey], Awaitable[None]]
    ) -> None:
        await _in_slices(partitions, lambda partition: act(_key(group.group_id, partition)))


def _key(group_id: str, partition: Partition) -> ShareKey:
    topic_id, index = partition
    return ShareKey(group_id, uuid.UUID(bytes=topic_id), index)


def _successes(outcomes: Mapping[Partition, Code]) -> Partitions:
    return frozenset(partition for partition, code in outcomes.items() if code is Code.none)


def _check_there(shard: Shard, group: ShareGroup) -> None:
    """Called again after every request to the persister: this broker may have lost the shard or the group meanwhile."""
    if not shard.leads or shard.groups.get(group.group_id) is not group:
        raise KafkaError(Code.not_coordinator)


async def _in_slices(partitions: Iterable[Partition], act: Callable[[Partition], Awaitable[None]]) -> None:
    waiting = sorted(partitions)
    for begin in range(0, len(waiting), AT_ONCE_MAX):
        await asyncio.gather(*(act(each) for each in waiting[begin : begin + AT_ONCE_MAX]))
