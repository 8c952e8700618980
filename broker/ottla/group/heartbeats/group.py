"""A group whose members live by heartbeats: what consumer groups (KIP-848) and share groups (KIP-932) have in common.

Pure. Decisions are made elsewhere as entries to write; here they are put in force once they are written. Timers are
deadlines in the data: `tick` says what is due.
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
from ottla.group.heartbeats.targets import Computed, Kinds, Standing, Turn, settled
from ottla.metadata.model.image import Image

__all__ = ["MOVING_HEARTBEAT_MS", "HeartbeatGroup", "Then", "Timer", "replay_entry"]

NEVER = float("inf")
TRY_AGAIN_SECONDS = 1.0
MOVING_SECONDS = 5.0  # how long after its last change a group counts as moving
MOVING_HEARTBEAT_MS = 500


Then = Callable[[Code, float], Effects]


class Timer(Enum):
    """What the time of a member can run out for. Only members of the classic protocol have to join and sync."""

    SESSION = "its session expired"
    REBALANCE = "it did not give up its partitions in time"
    JOIN = "it did not join again in time"
    SYNC = "it did not sync in time"


class MembershipTerms(Protocol):
    """Of the settings of a group, those that say how its members live."""

    @property
    def session_timeout_ms(self) -> int: ...
    @property
    def heartbeat_interval_ms(self) -> int: ...
    @property
    def members_max(self) -> int: ...


class MembershipRules(Protocol):
    """`adopt` puts a group into the shard, in the place of one with the same id, and performs its effects."""

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
        self.written = -1  # the offset of the last entry: who reads must wait until it is committed
        self._deadlines: dict[tuple[Timer, str], float] = {}
        self._around = rules
        self._moved_at = -NEVER
        self._turn = Turn()
        self._waiting: dict[Any, Callable[[Code], Any]] = {}  # requests → how to refuse them

    # -- each type has its own

    @property
    @abstractmethod
    def terms(self) -> MembershipTerms: ...

    @abstractmethod
    def encoded(self, entry: Entry) -> Record: ...

    @abstractmethod
    def remove(self, members: Sequence[Member], now: float, then: Then) -> Write:
        """As an effect."""

    @abstractmethod
    def computation(self, standing: Standing) -> Callable[[], Computed]:
        """Work that finds out the target assignment, over values that nobody changes."""

    @abstractmethod
    def own_tombstones(self) -> list[Entry]:
        """Of what only groups of this type have."""

    def in_force(self, entry: Entry, now: float) -> None:
        """An entry is in the log and in the state: timers begin or end."""
        if entry.kind == self.kinds.member:
            self._member_came_or_went(entry, now)

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
        """Of what members have sent."""
        return sum(member.subscription.kept_bytes for member in self.log.members.values())

    @property
    def may_expire(self) -> bool:
        return True

    def committed(self, member_id: str, now: float) -> None:
        """Heartbeats alone are signs of life here."""

    def tombstones(self) -> Sequence[Record]:
        """The group's epoch is the last to go: without it there is no group."""
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
        """Entries as an effect: put in force as soon as they are appended, and the group with them if it is new.

        `examined`: what they come from. `records`: the same entries, encoded already. `before` is written
        before them, and `inherited` is performed with the group's arrival.
        """

        def in_force(offset: int) -> None:
            self.put_in_force(entries, offset=offset, now=now)
            self.has_examined(examined)
            self._around.adopt(self, inherited())

        return Write([*before, *(map(self.encoded, entries) if records is None else records)], then, in_force)

    def removed(self, removal: Removal, now: float, then: Then) -> Write:
        """Whoever comes next has a new target computed."""
        self._turn.deferred = removal.elsewhere
        return self.write(removal.entries, now, then, examined=removal.examined)

    def replay(self, entry: Entry, *, offset: int) -> None:
        """While the shard loads: no timers yet."""
        self.log.apply(entry)
        self.written = offset

    def has_examined(self, examined: Seen | None) -> None:
        """Its topics were compared with this."""
        if examined is not None:
            self.seen = examined

    def to_examine(self) -> Seen:
        return Seen(self._around.image())

    def put_in_force(self, entries: Sequence[Entry], *, offset: int, now: float) -> None:
        for entry in entries:
            self.log.apply(entry)
        self.written = offset
        self._moved_at = now
        for entry in entries:
            self.in_force(entry, now)

    # -- a target that is worked out elsewhere

    @property
    def epoch_to_reach(self) -> int:
        """Of a member that wants to be up to date. While a target is worked out elsewhere, the old one's."""
        return self.log.target_epoch if self._turn.deferred else self.log.epoch

    def compute(self, *, elsewhere: bool, now: float) -> Effects:
        """What follows from a decision: `elsewhere` when it left the target, or the comparison of topics, to others."""
        return [Compute(self._begin, self._computed)] if self._turn.take(elsewhere=elsewhere, now=now) else []

    def compute_deferred(self, now: float) -> Effects:
        """For a member that decides nothing itself, as those of the classic protocol."""
        return self.compute(elsewhere=True, now=now) if self.log.epoch > self.epoch_to_reach else []

    def _begin(self) -> Callable[[], Computed] | None:
        log = self.log
        if not log.members:
            return None
        members, targets, seen = dict(log.members), dict(log.targets), self.to_examine()
        return self.computation(
            Standing(self.group_id, log.epoch, log.metadata_hash, log.target_epoch, targets, members, seen)
        )

    def _computed(self, found: Computed | None, now: float) -> Effects:
        self._turn.end(now)
        if found is None or found.standing.target_epoch != self.log.target_epoch:
            return []  # the group has become small enough meanwhile to get its target from a heartbeat
        if not found.is_news:
            self.has_examined(found.standing.seen)
            return []
        written = settled(found, self.log, self.kinds, self.encoded)
        entries, records = [entry for entry, _ in written], [record for _, record in written]
        return [self.write(entries, now, _nothing, records=records, examined=found.standing.seen)]

    # -- time

    def set_timer(self, timer: Timer, member_id: str, at: float) -> None:
        self._deadlines[timer, member_id] = at

    def start_timer(self, timer: Timer, member_id: str, at: float) -> None:
        """Unless it runs already."""
        self._deadlines.setdefault((timer, member_id), at)

    def cancel_timer(self, timer: Timer, member_id: str) -> None:
        self._deadlines.pop((timer, member_id), None)

    def forget_timers(self, member_id: str) -> None:
        for timer in Timer:
            self.cancel_timer(timer, member_id)

    def _member_came_or_went(self, entry: Entry, now: float) -> None:
        """An entry of what a member subscribes to: its session begins, or is over with it."""
        if entry.value is None:
            self.forget_timers(entry.key[1])
        elif (Timer.SESSION, entry.key[1]) not in self._deadlines:
            self.alive(entry.key[1], now)

    def alive(self, member_id: str, now: float) -> float:
        """A sign of life; when the session ends now."""
        at = now + self.session_timeout_ms(self.log.members.get(member_id)) / 1000
        self.set_timer(Timer.SESSION, member_id, at)
        return at

    def heartbeat_interval_ms(self, now: float) -> int:
        """Shorter while a group moves: members then wait for each other's heartbeats."""
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
        """What could not be written is tried again."""
        if code is Code.none:
            return []
        again = now + TRY_AGAIN_SECONDS
        for member in members:
            self.start_timer(Timer.SESSION, member.id, again)
        return [Wake(again)]

    # -- beginning and end

    def loaded(self, now: float) -> Effects:
        """Sessions begin again."""
        for member_id in self.log.members:
            self.alive(member_id, now)
        return [Wake(self.next_deadline())] if self._deadlines else []

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
        """A heartbeat that changed something; `examined`, `before` and `inherited` as `write` takes them."""

        def then(code: Code, at: float) -> Effects:
            return [*answered(code, at), Wake(self.alive(member_id, at))]

        # It is alive now, however long the write takes: a coordinator that waits for replicas must not expire it.
        wake = [Wake(self.alive(member_id, now))] if member_id in self.log.members else []
        return [*wake, self.write(entries, now, then, examined=examined, before=before, inherited=inherited)]


def _nothing(code: Code, now: float) -> Effects:
    """Nobody waits. A target that could not be written is computed again at one of the next heartbeats."""
    return []


Group = TypeVar("Group", bound=HeartbeatGroup[Any])


def replay_entry(state: Any, entry: Entry | None, of: type[Group], new: Callable[[str], Group]) -> None:
    """Put an entry of the log in force on `state`, a shard that loads."""
    if entry is None:
        return
    group_id = entry.key[0]
    if entry.kind == of.kinds.group_epoch and entry.value is None:
        state.forget_group(group_id, of.type)
        return
    group = state.groups.get(group_id)
    if not isinstance(group, of):
        if entry.value is None:
            return
        group = new(group_id)
        state.put_group(group)
    group.replay(entry, offset=state.replayed_offset)
