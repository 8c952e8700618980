"""A consumer group (KIP-848): what the log says of it, and the deadlines of its members. Pure.

Decisions are made elsewhere (`consumer_heartbeat`, `consumer_classic`) as entries to write; here they are put in force
once they are written. Timers are deadlines in the data: `tick` says what is due.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ottla.errors import Code, KafkaError
from ottla.group import consumer_classic, consumer_migration
from ottla.group.classic import ClassicGroup
from ottla.group.consumer_advance import Seen, removal
from ottla.group.consumer_member import Member, MemberState
from ottla.group.consumer_records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    REGEX,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    Entry,
    encode,
)
from ottla.group.consumer_state import GroupState, topics_of
from ottla.group.consumer_timers import Timer
from ottla.group.effects import Effects, Record, Reply, Wake, Write
from ottla.metadata.image import Image

__all__ = ["MOVING_HEARTBEAT_MS", "ConsumerGroup", "ConsumerRules", "Terms"]

NEVER = float("inf")
TRY_AGAIN_SECONDS = 1.0
OFFSET_COMMIT_WITH_EPOCHS = 9
MOVING_SECONDS = 5.0  # how long after its last change a group counts as moving
MOVING_HEARTBEAT_MS = 500


Then = Callable[[Code, float], Effects]


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one group."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5000
    members_max: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")


class ConsumerRules(msgspec.Struct, frozen=True):
    """What holds for all consumer groups of a shard, and where ids, time and metadata come from.

    `policy` is group.consumer.migration.policy in capitals. `adopt` puts a group into the shard, in the place of one
    with the same id, and performs its effects.
    """

    new_id: Callable[[], str]
    wall_ms: Callable[[], int]
    image: Callable[[], Image]
    terms: Callable[[str], Terms]
    policy: Callable[[], str]
    classic_members_max: Callable[[], int]
    new_classic_group: Callable[[str], ClassicGroup]
    adopt: Callable[[Any, Effects], None]


class ConsumerGroup:
    type = "consumer"
    protocol_type = "consumer"
    empty_since_ms = None

    def __init__(self, group_id: str, rules: ConsumerRules) -> None:
        self.group_id = group_id
        self.rules = rules
        self.log = GroupState(group_id)
        self.seen = Seen()
        self.written = -1  # the offset of the last entry: who reads must wait until it is committed
        self.deadlines: dict[tuple[Timer, str], float] = {}
        self._moved_at = -NEVER
        self._waiting: dict[Any, Callable[[Code], Any]] = {}  # requests → how to refuse them

    @property
    def terms(self) -> Terms:
        return self.rules.terms(self.group_id)

    # -- as the shard sees it

    @property
    def state(self) -> str:
        return self.log.name

    @property
    def story(self) -> str:
        return f"epoch {self.log.epoch}, {len(self.log.members)} members"

    @property
    def is_empty(self) -> bool:
        return not self.log.members

    @property
    def offsets_may_expire(self) -> bool:
        return True

    def is_subscribed(self, topic: str) -> bool:
        return any(topic in topics_of(m.subscription, self.log.regexes) for m in self.log.members.values())

    def check_offset_delete(self) -> None:
        """Always possible; topics that are subscribed to are refused one by one."""

    def check_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, version: int, transactional: bool = False
    ) -> None:
        """Without members anybody may commit: an administrator, or a consumer that assigns itself.

        `version` is OffsetCommit's: in a transaction every version tells epochs.
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

    def _check_epoch(self, member: Member, told: int) -> None:
        expected = member.position.epoch
        if told != expected:
            code = Code.illegal_generation if member.uses_classic else Code.stale_member_epoch
            raise KafkaError(code, f"The received member epoch {told} does not match the expected one, {expected}.")

    def committed(self, member_id: str, now: float) -> None:
        """Heartbeats alone are signs of life here."""

    def tombstones(self) -> Sequence[Record]:
        members, key = self.log.members, (self.group_id,)
        gone = [Entry(CURRENT_ASSIGNMENT, (*key, each), None) for each in members]
        gone += [Entry(TARGET_ASSIGNMENT, (*key, each), None) for each in self.log.targets]
        gone.append(Entry(TARGET_EPOCH, key, None))
        gone += [Entry(MEMBER, (*key, each), None) for each in members]
        gone += [Entry(REGEX, (*key, each), None) for each in self.log.regexes]
        gone.append(Entry(GROUP_EPOCH, key, None))
        return [encode(entry) for entry in gone]

    # -- members

    def member(self, member_id: str) -> Member:
        known = self.log.members.get(member_id)
        if known is None:
            raise KafkaError(Code.unknown_member_id, f"Member {member_id} is not a member of group {self.group_id}.")
        return known

    def check_size(self, member_id: str) -> None:
        members_max = self.terms.members_max
        if len(self.log.members) >= members_max and member_id not in self.log.members:
            raise KafkaError(
                Code.group_max_size_reached,
                f"The consumer group has reached its maximum capacity of {members_max} members.",
            )

    def remove(self, members: Sequence[Member], now: float, then: Then) -> Write:
        """As an effect. When only classic members are left, the group becomes a classic one."""
        if consumer_migration.may_downgrade(self, members):
            return consumer_migration.downgrade(self, {member.id for member in members}, now, then=then)
        return self.write(removal(self.log, members, image=self.rules.image()), now, then)

    # -- the log

    def write(
        self,
        entries: Sequence[Entry],
        now: float,
        then: Then,
        *,
        instead_of: ClassicGroup | None = None,
    ) -> Write:
        """Entries as an effect: put in force as soon as they are appended, and the group with them if it is new."""
        seen = Seen(self.rules.image())

        def in_force(offset: int) -> None:
            self.put_in_force(entries, offset=offset, seen=seen, now=now)
            self.rules.adopt(self, consumer_migration.waiting_ones(instead_of) if instead_of else [])

        old = instead_of.tombstones() if instead_of is not None else ()
        return Write([*old, *map(encode, entries)], then, in_force)

    def put_in_force(self, entries: Sequence[Entry], *, offset: int, seen: Seen, now: float) -> None:
        for entry in entries:
            self.log.apply(entry)
        self.written = offset
        self.seen = seen
        self._moved_at = now
        for entry in entries:
            if entry.kind == CURRENT_ASSIGNMENT and entry.value is not None:
                self._time_revocation(entry.key[1], now)
            elif entry.kind == MEMBER and entry.value is None:
                self.forget_timers(entry.key[1])
            elif entry.kind == MEMBER and (Timer.SESSION, entry.key[1]) not in self.deadlines:
                self.alive(entry.key[1], now)

    # -- time

    def set_timer(self, timer: Timer, member_id: str, at: float) -> None:
        self.deadlines[timer, member_id] = at

    def cancel_timer(self, timer: Timer, member_id: str) -> None:
        self.deadlines.pop((timer, member_id), None)

    def alive(self, member_id: str, now: float) -> float:
        """A sign of life; when the session ends now."""
        member = self.log.members.get(member_id)
        classic = member.subscription.classic if member is not None else None
        timeout_ms = classic.session_timeout_ms if classic is not None else self.terms.session_timeout_ms
        at = now + timeout_ms / 1000
        self.set_timer(Timer.SESSION, member_id, at)
        return at

    def heartbeat_interval_ms(self, now: float) -> int:
        """While a group moves, members wait for each other: they shall not wait longer than they must."""
        normal = self.terms.heartbeat_interval_ms
        return min(normal, MOVING_HEARTBEAT_MS) if now - self._moved_at < MOVING_SECONDS else normal

    def next_deadline(self) -> float:
        return min(self.deadlines.values(), default=NEVER)

    def _time_revocation(self, member_id: str, now: float) -> None:
        """Members of the classic protocol have to join and sync in time instead."""
        member = self.log.members.get(member_id)
        if member is None or member.uses_classic:
            return
        if member.position.state is MemberState.UNREVOKED_PARTITIONS:
            self.set_timer(Timer.REBALANCE, member_id, now + member.subscription.rebalance_timeout_ms / 1000)
        else:
            self.cancel_timer(Timer.REBALANCE, member_id)

    def forget_timers(self, member_id: str) -> None:
        for timer in Timer:
            self.cancel_timer(timer, member_id)

    def tick(self, now: float) -> Effects:
        due = [key for key, at in self.deadlines.items() if at <= now]
        late = {member_id: timer for timer, member_id in due}
        members = [self.log.members[each] for each in late if each in self.log.members]
        for key in due:
            del self.deadlines[key]
        effects: Effects = []
        if members:
            effects.append(self.remove(members, now, lambda code, at: self._removed(members, code, at)))
        if (due_at := self.next_deadline()) != NEVER:
            effects.append(Wake(due_at))
        return effects

    def _removed(self, members: Sequence[Member], code: Code, now: float) -> Effects:
        """What could not be written is tried again."""
        if code is Code.none:
            return []
        again = now + TRY_AGAIN_SECONDS
        for member in members:
            self.deadlines.setdefault((Timer.SESSION, member.id), again)
        return [Wake(again)]

    # -- beginning and end

    def loaded(self, now: float) -> Effects:
        """Sessions begin anew."""
        for member_id in self.log.members:
            self.alive(member_id, now)
            self._time_revocation(member_id, now)
        return [Wake(self.next_deadline())] if self.deadlines else []

    def unload(self) -> Effects:
        waiting, self._waiting = self._waiting, {}
        return [Reply(to, refused(Code.not_coordinator)) for to, refused in waiting.items()]

    def answering(self, to: Any, answer: Any, refused: Callable[[Code], Any]) -> Then:
        """Answer this request when what is written for it is committed."""
        self._waiting[to] = refused

        def then(code: Code, now: float) -> Effects:
            self._waiting.pop(to, None)
            return [Reply(to, answer if code is Code.none else refused(code))]

        return then

    # -- members that still use the classic protocol

    def join(self, request: Any, to: Any, now: float) -> Effects:
        return consumer_classic.join(self, request, to, now)

    def sync(self, request: Any, to: Any, now: float) -> Effects:
        return consumer_classic.sync(self, request, to, now)

    def heartbeat(self, *, member_id: str, instance_id: str | None, generation: int, now: float) -> Effects:
        return consumer_classic.heartbeat(self, member_id, instance_id, generation, now)

    def leave(self, members: Sequence[Any], to: Any, now: float) -> Effects:
        return consumer_classic.leave(self, members, to, now)
