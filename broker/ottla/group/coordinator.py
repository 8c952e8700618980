"""The groups that this broker coordinates: a shard for every partition of the offsets topic that it leads."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TypeVar

from ottla.coordination.computing import Computing
from ottla.coordination.coordinator import Coordinator, Surroundings
from ottla.coordination.core.partitioning import partition_of
from ottla.coordination.core.records import Record
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import Rules
from ottla.group.classic.joining import check as check_join
from ottla.group.classic.member import Join, Joined, Leave, Left, Sync, Synced
from ottla.group.committing import Commit, Entries, check_commit
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.heartbeat import Heartbeat, HeartbeatAnswer, says_what_is_visible
from ottla.group.consumer.heartbeat import check as check_heartbeat
from ottla.group.consumer.member import subscribed_bytes
from ottla.group.group_memory import LIMIT, GroupMemory
from ottla.group.loading import GroupLoading
from ottla.group.member_memory import MemberMemory
from ottla.group.offsets.committed import Found
from ottla.group.offsets_topic import OFFSETS_TOPIC, OffsetsTopic
from ottla.group.persisting import StateReconciler
from ottla.group.resolving import RegexResolver
from ottla.group.settings import ConsumerSettings, ShareGroupSettings
from ottla.group.shard import Shard
from ottla.group.share.group import ShareGroup
from ottla.group.share.heartbeat import ShareHeartbeat, ShareHeartbeatAnswer
from ottla.group.share.heartbeat import check as check_share_heartbeat
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.replica.partition import Partition
from ottla.share.core.messages import Persister
from ottla.wire.markers import Marker
from ottla.wire.offset_commit import CommitRequest
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = ["GroupCoordinator"]

log = logging.getLogger("ottla.group")

Answer = TypeVar("Answer")


class GroupCoordinator(Coordinator[Shard]):
    """Every request has a method here, which returns the answer or raises KafkaError.

    The futures of waiting requests are created here and completed by the runner; groups see only an opaque `to`. A
    group with an empty id may keep offsets, as in Kafka; only members need an id.
    """

    def __init__(self, around: Surroundings, *, persister: Persister) -> None:
        topic = OffsetsTopic(config=around.config, settings=around.settings, controller=around.controller)
        super().__init__(topic, around)
        self._consumers = ConsumerSettings(around.settings, around.system, around.feed)
        self._shares = ShareGroupSettings(around.settings, around.feed)
        self.memory = MemberMemory(
            around.config["ottla.group.members.bytes.max"],
            groups=lambda: (group for shard in self._ready() for group in shard.groups.values()),
            clock=around.system.clock,
        )
        self.kept = GroupMemory(around.config[LIMIT], lambda: self.shards)
        self.states = StateReconciler(persister, image=lambda: self._feed.image, keep=self._keep)
        self._computing = Computing(around.system.threads, around.system.clock)
        self._removing = asyncio.Lock()  # all removals together write one slice per turn of the loop

    # who keeps what

    @property
    def regexes(self) -> RegexResolver:
        return self._consumers.regexes

    def shard_of(self, group_id: str) -> Shard:
        """Also KafkaError: INVALID_GROUP_ID."""
        if is_too_long(group_id):
            raise KafkaError(Code.invalid_group_id, f"a group id has at most {TEXT_BYTES_MAX} bytes")
        return self._shard_of(group_id)

    def shard_for_members(self, group_id: str) -> Shard:
        """As `shard_of`, for requests of members: the group id must not be empty."""
        if not group_id:
            raise KafkaError(Code.invalid_group_id, "members need a group.id")
        if is_too_long(group_id):
            raise KafkaError(Code.invalid_group_id, f"a group id has at most {TEXT_BYTES_MAX} bytes")
        return self._shard_of(group_id)

    async def partition_for(self, group_id: str) -> tuple[str, int]:
        """The partition of the offsets topic that keeps this group, on any broker."""
        await self.leader_of(group_id)
        topic = self._feed.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise KafkaError(Code.coordinator_not_available)
        return OFFSETS_TOPIC, partition_of(group_id, len(topic.partitions))

    # members of classic groups

    async def join(self, group_id: str, request: Join) -> Joined:
        """Answered when the rebalance is complete."""
        shard = self.shard_for_members(group_id)
        setting = self._settings.broker
        shortest, longest = setting("group.min.session.timeout.ms"), setting("group.max.session.timeout.ms")
        if not shortest <= request.session_timeout_ms <= longest:
            raise KafkaError(Code.invalid_session_timeout)
        check_join(request)
        if not request.member_id:
            self.kept.check(shard, group_id)
        self.memory.take(sum(len(name) + len(metadata) for name, metadata in request.protocols))
        answer: asyncio.Future[Joined] = asyncio.get_running_loop().create_future()
        shard.join(group_id, request, answer)
        return await answer

    async def sync(self, group_id: str, request: Sync) -> Synced:
        """Answered when the leader's assignment is committed."""
        shard = self.shard_for_members(group_id)
        shard.require_group(group_id)
        self.memory.take(sum(len(assignment) for _, assignment in request.assignments))
        answer: asyncio.Future[Synced] = asyncio.get_running_loop().create_future()
        shard.sync(group_id, request, answer)
        return await answer

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> None:
        self.shard_for_members(group_id).heartbeat(group_id, member_id, instance_id, generation)

    async def leave(self, group_id: str, members: Sequence[Leave]) -> Left:
        """Of a group that does not exist nobody is a member, and each is told so, as in Kafka."""
        shard = self.shard_for_members(group_id)
        if group_id not in shard.groups:
            return Left(members=[(one, Code.unknown_member_id) for one in members])
        answer: asyncio.Future[Left] = asyncio.get_running_loop().create_future()
        shard.leave(group_id, members, answer)
        return await answer

    # members of consumer and share groups

    async def consumer_heartbeat(self, request: Heartbeat, may_describe: Callable[[str], bool]) -> HeartbeatAnswer:
        """KIP-848. Answered when its changes, and everything else that the answer depends on, are committed.
        `may_describe`: topics by their names, which an expression must not show to others."""
        group_id = request.group_id
        shard = self.shard_of(group_id)
        check_heartbeat(request, shard.consumer_rules.terms(group_id))
        if request.joins:
            self.kept.check(shard, group_id)
        size = 0
        if request.topics is not None or request.regex is not None:
            size = subscribed_bytes(request.topics, request.regex, request.client_id)
            self.memory.take(size)
        known = shard.groups.get(group_id)
        log = known.log if isinstance(known, ConsumerGroup) else None
        own = request.regex if request.regex is not None or log is None else log.regex_of(request.member_id)
        expressions = list(log.regexes) if log is not None else []
        if request.regex:
            expressions.append(request.regex)
        if expressions:
            with self.memory.waiting(size):
                await self.regexes.resolve(expressions)
                if own and says_what_is_visible(request, log):
                    is_new = log is None or own not in log.regexes
                    await self.regexes.authorize(group_id, own, may_describe, is_new=is_new)
            shard = self.shard_of(group_id)
        answer: asyncio.Future[HeartbeatAnswer | Code] = asyncio.get_running_loop().create_future()
        group = shard.consumer_heartbeat(request, answer)
        answered = _accepted(await answer)
        await shard.until_committed(group.written)
        return answered

    async def share_heartbeat(self, request: ShareHeartbeat) -> ShareHeartbeatAnswer:
        """KIP-932. As for consumer groups; then missing states of share-partitions are initialized."""
        check_share_heartbeat(request)
        shard = self.shard_of(request.group_id)
        if request.joins:
            self.kept.check(shard, request.group_id)
        if request.topics is not None:
            self.memory.take(subscribed_bytes(request.topics, request.client_id))
        answer: asyncio.Future[ShareHeartbeatAnswer | Code] = asyncio.get_running_loop().create_future()
        group = shard.share_heartbeat(request, answer)
        answered = _accepted(await answer)
        await shard.until_committed(group.written)
        self.states.reconcile(shard, group)
        return answered

    # offsets, and groups as a whole

    def commit(
        self,
        request: CommitRequest,
        version: int,
        entries: Entries,
        records: Sequence[Record],
        then: Callable[[Code], None],
    ) -> None:
        """`records` are the encoded `entries`. `then` is called with the code for their partitions.

        A callback instead of a future, because every OffsetCommit comes here.
        """
        shard = self.shard_of(request.group_id)
        check_commit(shard, request, version)
        self.kept.check(shard, request.group_id, entries)
        shard.gather(records, Commit(shard, request.group_id, entries, then))

    async def delete_group(self, group_id: str) -> None:
        """Delete the group with its offsets, or with the states of its share-partitions."""
        shard = self.shard_of(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            raise KafkaError(Code.group_id_not_found)
        if not group.is_empty:
            raise KafkaError(Code.non_empty_group)
        if isinstance(group, ShareGroup):
            await self.states.delete_group(shard, group)
        else:
            await shard.until_committed(shard.delete_group(group))

    # shards

    def _new_shard(self, partition: Partition) -> Shard:
        self.regexes.visible.forget()
        return Shard(
            partition,
            clock=self._system.clock,
            rules=self._rules(),
            write_rules=self._write_rules(),
            consumer_rules=self._consumers.rules,
            share_rules=self._shares.rules,
            computing=self._computing,
        )

    def _loading(self, shard: Shard) -> GroupLoading:
        return GroupLoading(shard, read_bytes_max=self._settings.broker("offsets.load.buffer.size"))

    def _rules(self) -> Rules:
        return Rules(
            new_id=lambda: str(self._system.new_uuid()),
            wall_ms=self._system.clock.wall_ms,
            initial_delay_ms=self._settings.broker("group.initial.rebalance.delay.ms"),
            members_max=self._settings.broker("group.max.size"),
        )

    def _write_rules(self) -> WriteRules:
        return WriteRules(
            codec=self._settings.broker("offsets.topic.compression.codec"),
            commit_s_max=self._settings.broker("offsets.commit.timeout.ms") / 1000,
        )

    # transactions

    def marked(self, partition: Partition, marker: Marker, offset: int) -> None:
        """A marker is in the log of an offsets partition: it commits or aborts the pending offsets of its
        transaction."""
        shard = self._shards.get(partition.index) if partition.topic == OFFSETS_TOPIC else None
        if shard is not None and shard.partition is partition:
            shard.transaction_ended(marker.producer_id, commit=marker.commit, offset=offset)

    # upkeep

    def _image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        super()._image_moved(old, new, changes)
        if changes.deleted:
            self._topics_deleted({name for name in changes.deleted.values() if name not in new.topics})

    def _topics_deleted(self, topics: set[str]) -> None:
        for shard in self._ready():
            for group in shard.share_groups:
                self.states.reconcile(shard, group)
        found = [(shard, offsets) for shard in self._ready() if (offsets := shard.offsets.of_topics(topics))]
        if found:
            self._keep(asyncio.ensure_future(self._delete_offsets(found)))

    async def _delete_offsets(self, found: Sequence[tuple[Shard, Sequence[Found]]]) -> None:
        async with self._removing:
            for shard, offsets in found:
                try:
                    await shard.delete_unchanged(offsets)
                except KafkaError as error:
                    log.warning("%s: offsets of deleted topics could not be removed: %s", shard, error)

    def _upkeep(self) -> Iterable[Coroutine[None, None, None]]:
        yield self._expire_every("offsets.retention.check.interval.ms", self._expire, "offsets")

    async def _expire(self, shard: Shard) -> int:
        """Also reconciles share groups: this finishes steps that an earlier coordinator left unfinished."""
        for group in shard.share_groups:
            self.states.reconcile(shard, group)
        retention_ms = self._settings.broker("offsets.retention.minutes") * 60_000
        async with self._removing:
            return await shard.expire(now_ms=self._system.clock.wall_ms(), retention_ms=retention_ms)


def _accepted(answer: Answer | Code) -> Answer:
    """Raises KafkaError if the group answered with a code."""
    if isinstance(answer, Code):
        raise KafkaError(answer)
    return answer
