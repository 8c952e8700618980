"""The common part of consumer groups (KIP-848) and share groups (KIP-932): members, timers, entries. Pure.

The packages of the two types decide and return entries; here they are written, and applied once they are appended.
Timers are deadlines in the data; `tick` handles those that are due.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ottla.coordination.core.effects import Compute, Effects, Record, Reply, Wake, Write
from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import Member
from ottla.group.consumer.state import GroupState
from ottla.group.heartbeats.entries import Entry
from ottla.group.heartbeats.epochs import Removal, Seen
from ottla.group.heartbeats.targets import ComputationSchedule, Kinds, TargetInput, TargetResult, entries_to_write
from ottla.metadata.model.image import Image

__all__ = ["MOVING_HEARTBEAT_MS", "HeartbeatGroup", "Then", "Timer", "replay_entry"]

NEVER = float("inf")
TRY_AGAIN_SECONDS = 1.0
MOVING_SECONDS = 5.0  # how long after its last change a group has the shorter heartbeat interval
MOVING_HEARTBEAT_MS = 500


Then = Callable[[Code, float], Effects]


class Timer(Enum):
    """Why a member may time out. Only members of the classic protocol have to join and sync."""

    SESSION = "its session expired"
    REBALANCE = "it did not revoke its partitions in time"
    JOIN = "it did not rejoin in time"
    SYNC = "it did not sync in time"


class MembershipTerms(Protocol):
    """The settings of a group that concern its members' heartbeats."""

    @property
    def session_timeout_ms(self) -> int: ...
    @property
    def heartbeat_interval_ms(self) -> int: ...
    @property
    def members_max(self) -> int: ...


class MembershipRules(Protocol):
    """`adopt` puts a group into the shard, replacing one with the same id, and performs its effects."""

    @property
    def image(self) -> Callable[[], Image]: ...
    @property
    def adopt(self) -> Callable[[Any, Effects], None]: ...


State = TypeVar("State", bound=GroupState)


class HeartbeatGroup(ABC, Generic[State]):
    type: ClassVar[str]
    protocol_type: ClassVar[str]
    kinds: ClassVar[Kinds]
    empty_since_ms = None

    def __init__(self, group_id: str, log: State, rules: MembershipRules) -> None:
        self.group_id = group_id
        self.log = log
        self.seen = Seen()
        self.written = -1  # the offset of the last entry: reads wait until it is committed
        self._deadlines: dict[tuple[Timer, str], float] = {}
        self._around = rules
        self._moved_at = -NEVER
        self._turn = ComputationSchedule()
        self._waiting: dict[Any, Callable[[Code], Any]] = {}  # requests → how to refuse them

    # -- each type has its own

    @property
    @abstractmethod
    def terms(self) -> MembershipTerms: ...

    @abstractmethod
    def encoded(self, entry: Entry) -> Record: ...

    @abstractmethod
    def remove(self, members: Sequence[Member], now: float, then: Then) -> Write:
        """The effect that removes these members."""

    @abstractmethod
    def computation(self, standing: TargetInput) -> Callable[[], TargetResult]:
        """The work that computes the target assignment, over immutable values."""

    @abstractmethod
    def own_tombstones(self) -> list[Entry]:
        """Tombstones of records that only this type of group has."""

    def on_applied(self, entry: Entry, now: float) -> None:
        """An entry was applied to the state: start or cancel timers."""
        if entry.kind == self.kinds.member:
            self._member_changed(entry, now)

    def session_timeout_ms(self, member: Member | None) -> int:
        return self.terms.session_timeout_ms

    # -- as the shard sees it

    @property
    def state(self) -> str:
        return self.log.name

    @property
    def summary(self) -> str:
        return f"epoch {self.log.epoch}, {len(self.log.members)} members"

    @property
    def is_empty(self) -> bool:
        return not self.log.members

    @property
    def kept_bytes(self) -> int:
        """An estimate of the memory that the members' subscriptions use."""
        return sum(member.subscription.kept_bytes for member in self.log.members.values())

    @property
    def may_expire(self) -> bool:
        return True

    def committed(self, member_id: str, now: float) -> None:
        """Does nothing: only heartbeats renew a session here."""

    def tombstones(self) -> Sequence[Record]:
        """The group's epoch comes last: without it the group does not exist."""
        members, key, kinds = self.log.members, (self.group_id,), self.kinds
        gone = [Entry(kinds.current, (*key, each), None) for each in members]
        gone += [Entry(kinds.target, (*key, each), None) for each in self.log.targets]
        gone.append(Entry(kinds.target_epoch, key, None))
        gone += [Entry(kinds.member, (*key, each), None) for each in members]
        gone += [*self.own_tombstones(), Entry(kinds.group_epoch, key, None)]
        return [self.encoded(entry) for entry in gone]

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
                f"The {self.type} group has reached its maximum capacity of {members_max} members.",
            )

    # -- the log

    def write(
        self,
        entries: Sequence[Entry],
        now: float,
        then: Then,
        *,
        examined: Seen | None = None,
        records: Sequence[Record] | None = None,
        before: Sequence[Record] = (),
        inherited: Callable[[], Effects] = list,
    ) -> Write:
        """The effect that writes these entries. They are applied when appended; a new group then enters the shard.

        `examined`: the metadata they are based on. `records`: the same entries, already encoded. `before` is written
        before them, and `inherited` is performed when the group enters the shard.
        """

        def on_appended(offset: int) -> None:
            self.apply_entries(entries, offset=offset, now=now)
            self.has_examined(examined)
            self._around.adopt(self, inherited())

        return Write([*before, *(map(self.encoded, entries) if records is None else records)], then, on_appended)

    def removed(self, removal: Removal, now: float, then: Then) -> Write:
        """The effect of a removal. The next heartbeat starts the computation of a new target."""
        self._turn.deferred = removal.in_thread
        return self.write(removal.entries, now, then, examined=removal.examined)

    def replay(self, entry: Entry, *, offset: int) -> None:
        """Apply an entry while the shard loads; timers start later."""
        self.log.apply(entry)
        self.written = offset

    def has_examined(self, examined: Seen | None) -> None:
        """Remember the metadata that the group's topics were compared with."""
        if examined is not None:
            self.seen = examined

    def to_examine(self) -> Seen:
        return Seen(self._around.image())

    def apply_entries(self, entries: Sequence[Entry], *, offset: int, now: float) -> None:
        for entry in entries:
            self.log.apply(entry)
        self.written = offset
        self._moved_at = now
        for entry in entries:
            self.on_applied(entry, now)

    # -- a target that a thread computes

    @property
    def epoch_to_reach(self) -> int:
        """The epoch that members are to reach; while a thread computes a target, that of the old one."""
        return self.log.target_epoch if self._turn.deferred else self.log.epoch

    def compute(self, *, in_thread: bool, now: float) -> Effects:
        """Compute the target in a thread. `in_thread`: the decision needs that, or a comparison of topics."""
        return [Compute(self._begin, self._computed)] if self._turn.take(in_thread=in_thread, now=now) else []

    def compute_deferred(self, now: float) -> Effects:
        """The same for requests that decide nothing, as those of the classic protocol."""
        return self.compute(in_thread=True, now=now) if self.log.epoch > self.epoch_to_reach else []

    def _begin(self) -> Callable[[], TargetResult] | None:
        log = self.log
        if not log.members:
            return None
        members, targets, seen = dict(log.members), dict(log.targets), self.to_examine()
        return self.computation(
            TargetInput(self.group_id, log.epoch, log.metadata_hash, log.target_epoch, targets, members, seen)
        )

    def _computed(self, found: TargetResult | None, now: float) -> Effects:
        self._turn.end(now)
        if found is None or found.standing.target_epoch != self.log.target_epoch:
            return []  # the group has become small meanwhile: a heartbeat computes its target
        if not found.has_changes:
            self.has_examined(found.standing.seen)
            return []
        written = entries_to_write(found, self.log, self.kinds, self.encoded)
        entries, records = [entry for entry, _ in written], [record for _, record in written]
        return [self.write(entries, now, _nothing, records=records, examined=found.standing.seen)]

    # -- time

    def set_timer(self, timer: Timer, member_id: str, at: float) -> None:
        self._deadlines[timer, member_id] = at

    def start_timer(self, timer: Timer, member_id: str, at: float) -> None:
        """Start it unless it runs."""
        self._deadlines.setdefault((timer, member_id), at)

    def cancel_timer(self, timer: Timer, member_id: str) -> None:
        self._deadlines.pop((timer, member_id), None)

    def forget_timers(self, member_id: str) -> None:
        for timer in Timer:
            self.cancel_timer(timer, member_id)

    def _member_changed(self, entry: Entry, now: float) -> None:
        """For an entry of a member's subscription: start its session, or cancel its timers if it was removed."""
        if entry.value is None:
            self.forget_timers(entry.key[1])
        elif (Timer.SESSION, entry.key[1]) not in self._deadlines:
            self.renew_session(entry.key[1], now)

    def renew_session(self, member_id: str, now: float) -> float:
        """Restart the member's session. Returns when it expires."""
        at = now + self.session_timeout_ms(self.log.members.get(member_id)) / 1000
        self.set_timer(Timer.SESSION, member_id, at)
        return at

    def heartbeat_interval_ms(self, now: float) -> int:
        """Shorter while the group changes: members then wait for each other's heartbeats."""
        normal = self.terms.heartbeat_interval_ms
        return min(normal, MOVING_HEARTBEAT_MS) if now - self._moved_at < MOVING_SECONDS else normal

    def next_deadline(self) -> float:
        return min(self._deadlines.values(), default=NEVER)

    def tick(self, now: float) -> Effects:
        due = [key for key, at in self._deadlines.items() if at <= now]
        late = {member_id: timer for timer, member_id in due}
        members = [self.log.members[each] for each in late if each in self.log.members]
        for key in due:
            del self._deadlines[key]
        effects: Effects = []
        if members:
            effects.append(self.remove(members, now, lambda code, at: self._removed(members, code, at)))
        if (due_at := self.next_deadline()) != NEVER:
            effects.append(Wake(due_at))
        return effects

    def _removed(self, members: Sequence[Member], code: Code, now: float) -> Effects:
        """If the write failed, set the timers again."""
        if code is Code.none:
            return []
        again = now + TRY_AGAIN_SECONDS
        for member in members:
            self.start_timer(Timer.SESSION, member.id, again)
        return [Wake(again)]

    # -- beginning and end

    def loaded(self, now: float) -> Effects:
        """Restart all sessions."""
        for member_id in self.log.members:
            self.renew_session(member_id, now)
        return [Wake(self.next_deadline())] if self._deadlines else []

    def unload(self) -> Effects:
        waiting, self._waiting = self._waiting, {}
        return [Reply(to, refused(Code.not_coordinator)) for to, refused in waiting.items()]

    def answering(self, to: Any, answer: Any, refused: Callable[[Code], Any]) -> Then:
        """Answer this request when its write is committed."""
        self._waiting[to] = refused

        def then(code: Code, now: float) -> Effects:
            self._waiting.pop(to, None)
            return [Reply(to, answer if code is Code.none else refused(code))]

        return then

    def answer_when_written(
        self,
        entries: Sequence[Entry],
        member_id: str,
        now: float,
        answered: Then,
        *,
        examined: Seen | None = None,
        before: Sequence[Record] = (),
        inherited: Callable[[], Effects] = list,
    ) -> Effects:
        """For a heartbeat that changed something; `examined`, `before` and `inherited` as in `write`."""

        def then(code: Code, at: float) -> Effects:
            return [*answered(code, at), Wake(self.renew_session(member_id, at))]

        # Renew the session before the write: a coordinator that waits for replicas must not expire the member.
        wake = [Wake(self.renew_session(member_id, now))] if member_id in self.log.members else []
        return [*wake, self.write(entries, now, then, examined=examined, before=before, inherited=inherited)]


def _nothing(code: Code, now: float) -> Effects:
    """No request waits. A target that could not be written is computed again at a later heartbeat."""
    return []


Group = TypeVar("Group", bound=HeartbeatGroup[Any])


def replay_entry(state: Any, entry: Entry | None, of: type[Group], new: Callable[[str], Group]) -> None:
    """Apply an entry of the log to `state`, a shard that loads."""
    if entry is None:
        return
    group_id = entry.key[0]
    if entry.kind == of.kinds.group_epoch and entry.value is None:
        state.remove_group(group_id, of.type)
        return
    group = state.groups.get(group_id)
    if not isinstance(group, of):
        if entry.value is None:
            return
        group = new(group_id)
        state.put_group(group)
    group.replay(entry, offset=state.replayed_offset)
