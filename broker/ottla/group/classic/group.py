"""A group of the JoinGroup protocol. Pure: what happens is a method, what follows is returned as effects.

The group knows members, generations and who waits for what; how partitions are spread is the members' own business,
so eager and cooperative rebalancing look the same from here. Timers are deadlines in the data (`join_deadline`,
`sync_deadline`, a deadline per member and per pending id); `tick` does what is due.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.errors import Code, KafkaError
from ottla.group.classic import joining, leaving, rebalancing, syncing
from ottla.group.classic.member import NEVER, Join, Joined, Leave, Member, Sync, Synced
from ottla.group.classic.protocols import CONSUMER, subscribed_topics
from ottla.group.classic.records import group_tombstone
from ottla.group.classic.states import NEXT, Event, State
from ottla.group.contract.effects import Effects, Record, Reply, Wake

__all__ = ["ClassicGroup", "Rules"]


class Rules(NamedTuple):
    """What holds for all classic groups of this broker, and where ids and the wall clock's time come from."""

    new_id: Callable[[], str]
    wall_ms: Callable[[], int]
    initial_delay_ms: int = 3000
    members_max: int = 2**31 - 1
    first_answer_s_max: float = 300.0  # how long a new member is waited for while it waits for its first answer


class ClassicGroup:
    """Invariants: `leader` is a member unless there are none; `instances` maps to members; Empty has no members."""

    type = "classic"

    def __init__(self, group_id: str, rules: Rules) -> None:
        self.group_id = group_id
        self.rules = rules
        self.current = State.EMPTY
        self.previous = State.DEAD
        self.generation = 0
        self.protocol_type = ""  # of a simple group: it has offsets and never had members
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}  # instance id → member id
        self.pending: dict[str, float] = {}  # ids given out and not used yet → until when they hold
        self.missing_syncs: set[str] = set()
        self.state_since_ms: int | None = rules.wall_ms()
        self.topics: frozenset[str] | None = None  # None: not known
        self.join_deadline = NEVER
        self.sync_deadline = NEVER
        self.delay_left_s = 0.0  # by which the first rebalance may still be put off
        self.newcomers = False  # since it was last put off
        self.reason = ""

    # what it is

    @property
    def state(self) -> str:
        return self.current.value

    @property
    def story(self) -> str:
        return f"generation {self.generation}, {len(self.members)} members; {self.reason}"

    @property
    def is_empty(self) -> bool:
        return self.current is State.EMPTY

    @property
    def is_unjoined(self) -> bool:
        """It never had a member, so that the log does not know it. Ids may be given out."""
        return self.is_empty and self.generation == 0 and not self.protocol_type

    @property
    def empty_since_ms(self) -> int | None:
        return self.state_since_ms if self.is_empty and self.protocol_type else None

    @property
    def may_expire(self) -> bool:
        return True

    @property
    def offsets_may_expire(self) -> bool:
        """Those of topics that nobody consumes, once it is known which are."""
        is_known = self.current is State.STABLE and self.protocol_type == CONSUMER and self.topics is not None
        return self.is_empty or is_known

    def is_subscribed(self, topic: str) -> bool:
        return self.protocol_type == CONSUMER if self.topics is None else topic in self.topics

    def is_in(self, *states: State) -> bool:
        return self.current in states

    @property
    def rebalance_s(self) -> float:
        """The longest that any member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0) / 1000

    @property
    def waiting(self) -> int:
        return sum(member.waiting_join is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(member.waiting_join is not None for member in self.members.values())

    def all_members(self) -> list[tuple[str, str | None, bytes]]:
        return [(m.member_id, m.instance_id, m.metadata(self.protocol_name)) for m in self.members.values()]

    def joined(self, member_id: str, *, members: bool, leader: str | None = None) -> Joined:
        """The present generation as a member is told of it."""
        return Joined(
            member_id=member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=leader or self.leader or "",
            members=self.all_members() if members else (),
        )

    # what happens to it

    def enter(self, event: Event) -> None:
        self.previous, self.current = self.current, NEXT[self.current, event]
        self.state_since_ms = self.rules.wall_ms()

    def add(self, member: Member) -> None:
        if not self.members:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            del self.instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.pop(member_id, None)
        self.missing_syncs.discard(member_id)

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when another member has taken the instance's place (KIP-345)."""
        if instance_id is not None:
            known = self.instances.get(instance_id)
            if known is not None and known != member_id:
                raise KafkaError(Code.fenced_instance_id)
        if member_id not in self.members or (instance_id is not None and instance_id not in self.instances):
            raise KafkaError(Code.unknown_member_id)

    # what members ask

    def join(self, request: Join, to: Any, now: float) -> Effects:
        return joining.join(self, request, to, now)

    def sync(self, request: Sync, to: Any, now: float) -> Effects:
        return syncing.sync(self, request, to, now)

    def leave(self, members: Sequence[Leave], to: Any, now: float) -> Effects:
        return leaving.leave(self, members, to, now)

    def heartbeat(self, *, member_id: str, instance_id: str | None, generation: int, now: float) -> Effects:
        self.check_member(member_id, instance_id)
        if generation != self.generation:
            raise KafkaError(Code.illegal_generation)
        self.members[member_id].alive(now)
        if self.current is State.PREPARING:
            raise KafkaError(Code.rebalance_in_progress)
        return []

    # offsets

    def check_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, version: int, transactional: bool = False
    ) -> None:
        if generation < 0 and self.current is State.EMPTY:
            return  # an administrator, or a consumer that assigns itself
        if generation < 0 and not member_id and instance_id is None:
            raise KafkaError(Code.unknown_member_id)
        self.check_member(member_id, instance_id)
        if generation != self.generation:
            raise KafkaError(Code.illegal_generation)
        if self.current is State.COMPLETING and not transactional:
            raise KafkaError(Code.rebalance_in_progress)

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        """Anybody may read."""

    def committed(self, member_id: str, now: float) -> None:
        member = self.members.get(member_id)
        if member is not None:
            member.alive(now)

    def check_offset_delete(self) -> None:
        if not self.is_empty and self.protocol_type != CONSUMER:
            raise KafkaError(Code.non_empty_group)

    def tombstones(self) -> Sequence[Record]:
        return [group_tombstone(self.group_id)]

    # time, beginning and end

    def tick(self, now: float) -> Effects:
        effects: Effects = []
        if self.join_deadline <= now:
            rebalancing.join_time_is_over(self, now, effects)
        if self.sync_deadline <= now:
            syncing.sync_time_is_over(self, now, effects)
        for member in [member for member in self.members.values() if member.deadline <= now]:
            leaving.session_ended(self, member, now, effects)
        for member_id in [member_id for member_id, deadline in self.pending.items() if deadline <= now]:
            leaving.pending_ended(self, member_id, now, effects)
        if (due := self._next_deadline()) != NEVER:
            effects.append(Wake(due))
        return effects

    def _next_deadline(self) -> float:
        members = min((member.deadline for member in self.members.values()), default=NEVER)
        return min(members, self.join_deadline, self.sync_deadline, min(self.pending.values(), default=NEVER))

    def restore(
        self,
        members: Sequence[Member],
        *,
        generation: int,
        protocol_type: str,
        protocol_name: str | None,
        leader: str | None,
        since_ms: int | None,
    ) -> None:
        """As a record says."""
        for member in members:
            self.add(member)
        self.generation = generation
        self.protocol_type, self.protocol_name = protocol_type, protocol_name
        self.leader = leader if leader in self.members else next(iter(self.members), None)
        self.state_since_ms = since_ms
        self.current = State.STABLE if members else State.EMPTY
        self.learn_topics()

    def learn_topics(self) -> None:
        is_consumer = self.protocol_type == CONSUMER
        self.topics = subscribed_topics(self.members.values(), self.protocol_name) if is_consumer else None

    def loaded(self, now: float) -> Effects:
        """Sessions begin anew; a group that has become too large is asked to come together again."""
        for member in self.members.values():
            member.alive(now)
        effects: Effects = []
        if len(self.members) > self.rules.members_max:
            rebalancing.rebalance(self, "the group is larger than group.max.size", now, effects)
        return effects + self.tick(now)

    def unload(self) -> Effects:
        return self.send_away(Code.not_coordinator)

    def send_away(self, code: Code) -> Effects:
        """Whoever waits in the middle of a rebalance is answered so."""
        effects: Effects = []
        for member in self.members.values():
            if member.waiting_join is not None:
                effects.append(Reply(member.waiting_join, Joined(code, member_id=member.member_id)))
            if member.waiting_sync is not None:
                effects.append(Reply(member.waiting_sync, Synced(code)))
            member.waiting_join = member.waiting_sync = None
        return effects
