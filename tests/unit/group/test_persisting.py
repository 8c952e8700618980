"""States of share-partitions: begun when members need them, ended with topics, offsets and groups, whatever fails."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.group.persisting import StateReconciler
from ottla.group.share.initialization import partitions_in, start_deleting, start_initializing
from ottla.group.share.records import StatePartitions
from ottla.share.core.messages import UNINITIALIZED, ShareKey, Summary
from support.consumer_groups import GROUP, topic_id
from support.share_groups import ShareClient, ShareShard
from support.share_memory import MemoryPersister

T, U = topic_id("t"), topic_id("u")


class Unreliable(MemoryPersister):
    """`lost`: partitions of which nothing can be begun or deleted now."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: set[int] = set()

    def _check(self, key: ShareKey) -> None:
        if key.partition in self.lost:
            raise KafkaError(Code.coordinator_not_available)

    async def initialize(self, key: ShareKey, *, state_epoch: int, start: int) -> None:
        self._check(key)
        await super().initialize(key, state_epoch=state_epoch, start=start)

    async def delete(self, key: ShareKey) -> None:
        self._check(key)
        await super().delete(key)


class Place:
    def __init__(self) -> None:
        self.shard: Any = ShareShard({"t": 2, "u": 1})
        self.persister = Unreliable()
        self._tasks: set[asyncio.Task[None]] = set()
        self.reconciler = StateReconciler(self.persister, image=lambda: self.shard.image, keep=self._tasks.add)
        self.member = ShareClient(self.shard, "a", ["t"])

    @property
    def group(self) -> Any:
        return self.shard.share_group

    @property
    def states(self) -> StatePartitions:
        states: StatePartitions = self.group.log.states
        return states

    @property
    def kept(self) -> set[tuple[str, int]]:
        """Of which topic and partition the persister has a state."""
        names = {T: "t", U: "u"}
        return {(names[key.topic_id], key.partition) for key in self.persister.states}

    async def reconcile(self) -> None:
        self.reconciler.reconcile(self.shard, self.group)
        while self._tasks:
            await self._tasks.pop()

    async def begin(self) -> None:
        self.member.beat()
        await self.reconcile()
        self.member.beat()


def played(play: Callable[[Place], Awaitable[None]]) -> Callable[[], None]:
    def test() -> None:
        asyncio.run(play(Place()))  # type: ignore[arg-type]

    test.__name__, test.__doc__ = play.__name__, play.__doc__
    return test


@played
async def test_states_begin_in_the_groups_epoch(place: Place) -> None:
    await place.begin()
    assert place.kept == {("t", 0), ("t", 1)}
    assert await place.persister.summary(ShareKey(GROUP, T, 0)) == Summary(1, UNINITIALIZED, 0)
    assert partitions_in(place.states.initialized) == place.member.held
    assert not place.states.initializing
    written = len(place.shard.written)
    await place.reconcile()
    assert len(place.shard.written) == written, "once is enough"


@played
async def test_what_could_not_be_begun_is_begun_later(place: Place) -> None:
    place.persister.lost = {1}
    await place.begin()
    assert place.member.held == {(T.bytes, 0)}, "what is ready is handed out"
    assert partitions_in(place.states.initializing) == {(T.bytes, 1)}
    place.persister.lost = set()
    await place.reconcile()
    place.member.beat()
    assert place.member.held == {(T.bytes, 0), (T.bytes, 1)}


@played
async def test_whoever_coordinates_next_finishes_it(place: Place) -> None:
    place.member.beat()
    missing = frozenset({(T.bytes, 0), (T.bytes, 1)})
    place.shard.keep(start_initializing(place.states, missing, place.shard.image))
    await place.reconcile()
    assert partitions_in(place.states.initialized) == missing


@played
async def test_states_go_with_their_topic(place: Place) -> None:
    await place.begin()
    place.shard.set_topics({"u": 1})
    place.persister.lost = {0}
    await place.reconcile()
    assert place.kept == {("t", 0)}
    assert partitions_in(place.states.initialized), "still recorded: the deletion is not done"
    place.persister.lost = set()
    await place.reconcile()
    assert (place.kept, place.states) == (set(), StatePartitions())


@played
async def test_offsets_are_altered_and_deleted_while_nobody_reads(place: Place) -> None:
    await place.begin()
    refused = place.reconciler.alter(place.shard, place.group, {(T.bytes, 0): 7})
    with pytest.raises(KafkaError, match="not empty"):
        await refused
    place.member.leave()
    epoch = place.group.log.epoch
    outcomes = await place.reconciler.alter(place.shard, place.group, {(T.bytes, 0): 7, (U.bytes, 0): 9})
    assert set(outcomes.values()) == {Code.none}
    assert await place.persister.summary(ShareKey(GROUP, T, 0)) == Summary(epoch + 1, 7, 0)
    assert partitions_in(place.states.initialized) == {(T.bytes, 0), (T.bytes, 1), (U.bytes, 0)}
    await place.reconciler.delete(place.shard, place.group, [T.bytes])
    assert place.kept == {("u", 0)}
    assert partitions_in(place.states.initialized) == {(U.bytes, 0)} and not place.states.deleting


@played
async def test_a_deletion_that_was_cut_short_is_finished(place: Place) -> None:
    await place.begin()
    place.member.leave()
    after, _ = start_deleting(place.states, [T.bytes], place.shard.image)
    place.shard.keep(after)
    await place.reconcile()
    assert (place.kept, place.states) == (set(), StatePartitions())


@played
async def test_a_group_goes_with_all_its_states(place: Place) -> None:
    await place.begin()
    with pytest.raises(KafkaError, match="not empty"):
        await place.reconciler.delete_group(place.shard, place.group)
    place.member.leave()
    place.persister.lost = {1}
    with pytest.raises(KafkaError):
        await place.reconciler.delete_group(place.shard, place.group)
    assert GROUP in place.shard.groups
    place.persister.lost = set()
    await place.reconciler.delete_group(place.shard, place.group)
    assert (place.kept, GROUP in place.shard.groups) == (set(), False)


@played
async def test_a_broker_that_leads_no_longer_writes_nothing(place: Place) -> None:
    place.member.beat()
    place.shard.leads = False
    written = len(place.shard.written)
    await place.reconcile()
    assert len(place.shard.written) == written
