"""The members of a consumer group (KIP-848) and their deadlines. Pure.

`heartbeat`, `classic_members` and `migration` decide, and return entries to write.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from ottla.coordination.core.effects import Effects, Record
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup
from ottla.group.consumer.member import Member, MemberState
from ottla.group.consumer.records import (
    CURRENT_ASSIGNMENT,
    MEMBER,
    REGEX,
    Entry,
    encode,
)
from ottla.group.consumer.state import GroupState, topics_of
from ottla.group.consumer.targets import KINDS, compute
from ottla.group.consumer.topic_matching import TopicMatching
from ottla.group.heartbeats.group import HeartbeatGroup, Timer
from ottla.group.heartbeats.targets import TargetInput, TargetResult
from ottla.metadata.model.image import Image

__all__ = ["ConsumerMembership", "ConsumerRules", "Terms"]

OFFSET_COMMIT_WITH_EPOCHS = 9
REPEATS_MAX = 3  # of an assignment that its member has not acknowledged


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one group."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5000
    members_max: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")


class ConsumerRules(msgspec.Struct, frozen=True):
    """The rules of all consumer groups of a shard, and the sources of ids, time and metadata.

    `matching` knows which topics the expressions match. `policy` is group.consumer.migration.policy in capitals.
    `adopt` puts a group into the shard, replacing one with the same id, and performs its effects.
    """

    new_id: Callable[[], str]
    wall_ms: Callable[[], int]
    image: Callable[[], Image]
    terms: Callable[[str], Terms]
    policy: Callable[[], str]
    classic_members_max: Callable[[], int]
    new_classic_group: Callable[[str], ClassicGroup]
    adopt: Callable[[Any, Effects], None]
    matching: TopicMatching


class ConsumerMembership(HeartbeatGroup[GroupState]):
    type = "consumer"
    protocol_type = "consumer"
    kinds = KINDS

    def __init__(self, group_id: str, rules: ConsumerRules) -> None:
        super().__init__(group_id, GroupState(group_id), rules)
        self.rules = rules
        self._repeats: dict[str, int] = {}
        """By members: how often their assignment may still be repeated."""

    @property
    def terms(self) -> Terms:
        return self.rules.terms(self.group_id)

    # -- as the shard sees it

    @property
    def offsets_may_expire(self) -> bool:
        return True

    def is_subscribed(self, topic: str) -> bool:
        return any(topic in topics_of(m.subscription, self.log.regexes) for m in self.log.members.values())

    def check_offset_delete(self) -> None:
        """Always allowed; subscribed topics are refused one by one."""

    def check_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, version: int, transactional: bool = False
    ) -> None:
        """Without members any client may commit: an administrator, or a consumer with manual assignment.

        `version` is OffsetCommit's: in a transaction every version has epochs.
        """
        if generation < 0 and not self.log.members:
            return
        member = self.member(member_id)
        if not transactional and not member.uses_classic and version < OFFSET_COMMIT_WITH_EPOCHS:
            raise KafkaError(
                Code.unsupported_version,
                "OffsetCommit version 9 or above must be used by members using the modern group protocol",
            )
        self._check_epoch(member, generation)

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            self._check_epoch(self.member(member_id or ""), member_epoch)

    def _check_epoch(self, member: Member, received: int) -> None:
        expected = member.position.epoch
        if received != expected:
            code = Code.illegal_generation if member.uses_classic else Code.stale_member_epoch
            raise KafkaError(code, f"The received member epoch {received} does not match the expected one, {expected}.")

    def own_tombstones(self) -> list[Entry]:
        return [Entry(REGEX, (self.group_id, each), None) for each in self.log.regexes]

    # -- assignments that may have got lost

    def must_repeat_assignment(self, member: Member) -> bool:
        """Whether an answer with this member's assignment may have got lost.

        A client whose request timed out should send all fields again. librdkafka 2.16 does not: it would keep a
        partition that others wait for until its rebalance timeout, or never fetch one that only it may fetch. So an
        assignment is repeated until the member reports what it owns; a few times only, since not every client does. A
        coordinator that has loaded the group does not know what was acknowledged before, and repeats too.
        """
        if member.position.state is MemberState.UNREVOKED_PARTITIONS:
            return True
        return self._repeats.get(member.id, REPEATS_MAX) > 0

    def answered_assignment(self, member_id: str, *, repeated: bool) -> None:
        self._repeats[member_id] = self._repeats.get(member_id, REPEATS_MAX) - 1 if repeated else REPEATS_MAX

    def acknowledged(self, member_id: str) -> None:
        """It reported what it owns."""
        self._repeats[member_id] = 0

    # -- time and the log

    def session_timeout_ms(self, member: Member | None) -> int:
        """Members of the classic protocol choose their own."""
        classic = member.subscription.classic if member is not None else None
        return classic.session_timeout_ms if classic is not None else self.terms.session_timeout_ms

    def encoded(self, entry: Entry) -> Record:
        return encode(entry)

    def computation(self, standing: TargetInput) -> Callable[[], TargetResult]:
        return partial(compute, standing, dict(self.log.regexes), self.terms.assignors[0])

    def on_applied(self, entry: Entry, now: float) -> None:
        if entry.kind == CURRENT_ASSIGNMENT and entry.value is not None:
            self._time_revocation(entry.key[1], now)
        elif entry.kind == MEMBER and entry.value is None:
            self._repeats.pop(entry.key[1], None)
        super().on_applied(entry, now)

    def _time_revocation(self, member_id: str, now: float) -> None:
        """Not for members of the classic protocol: they have to join and sync in time instead."""
        member = self.log.members.get(member_id)
        if member is None or member.uses_classic:
            return
        if member.position.state is MemberState.UNREVOKED_PARTITIONS:
            self.set_timer(Timer.REBALANCE, member_id, now + member.subscription.rebalance_timeout_ms / 1000)
        else:
            self.cancel_timer(Timer.REBALANCE, member_id)

    def loaded(self, now: float) -> Effects:
        for member_id in self.log.members:
            self._time_revocation(member_id, now)
        return super().loaded(now)
