"""A quorum of pure Raft cores under faults, on virtual time, from one seed; checked by rules of its own.

The rules (Raft, figure 3) are checked on what the nodes show, never with the core's own arithmetic.
"""

import hashlib
import heapq
import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from ottla.raft.core.elections import Role
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import ANY_DIRECTORY, Entry, EntryKind, HardState, Member, Message, Snapshot, Voter
from ottla.raft.core.raft import NotLeader, Overloaded, Raft, RaftConfig, Ready, VoterChangeRefused

__all__ = ["Broken", "World"]


class Broken(AssertionError):
    """A rule was broken."""


@dataclass
class Faults:
    drop: float = 0.0
    duplicate: float = 0.0
    delay_max_s: float = 0.02
    persist_max_s: float = 0.005


@dataclass
class Disk:
    """What survives a crash."""

    hard_state: HardState
    snapshot: Snapshot
    offset: int = 0
    offset_term: int = 0
    entries: list[Entry] = field(default_factory=list)

    def persist(self, ready: Ready, random: Random | None = None) -> None:
        """With `random`: the power fails somewhere on the way; what was written in order stays."""
        steps: list[Callable[[], None]] = []
        if ready.hard_state is not None:
            steps.append(lambda state=ready.hard_state: setattr(self, "hard_state", state))  # type: ignore[misc]
        if ready.snapshot is not None:
            steps.append(lambda snapshot=ready.snapshot: self._install(snapshot))  # type: ignore[misc]
        if ready.entries:
            steps.append(lambda: self._cut_from(ready.entries[0].index))
        steps += [lambda entry=entry: self.entries.append(entry) for entry in ready.entries]  # type: ignore[misc]
        for step in steps[: random.randrange(len(steps) + 1) if random is not None else None]:
            step()

    def _install(self, snapshot: Snapshot) -> None:
        self.snapshot, self.offset, self.offset_term = snapshot, snapshot.index, snapshot.term
        self.entries = []

    def _cut_from(self, index: int) -> None:
        del self.entries[index - self.offset - 1 :]

    def compact(self, snapshot: Snapshot, first_needed: int) -> None:
        self.snapshot = snapshot
        while self.entries and self.entries[0].index < first_needed:
            gone = self.entries.pop(0)
            self.offset, self.offset_term = gone.index, gone.term


class Node:
    def __init__(self, world: "World", node_id: int, seed: tuple[Voter, ...]) -> None:
        self.world = world
        self.id = node_id
        self.seed = seed
        self.incarnation = 0
        self.replace_disk()
        self.raft: Raft | None = None

    def replace_disk(self) -> None:
        self.directory = uuid.UUID(int=self.world.random.getrandbits(127) + 1)
        self.disk = Disk(HardState(seed=self.seed), Snapshot(0, 0, self.seed, b""))

    def start(self) -> None:
        disk = self.disk
        config = RaftConfig(
            member=Member(self.id, self.directory),
            election_timeout_s=0.5,
            heartbeat_s=0.1,
            snapshot_retry_s=1.0,
            entries_per_message_max=4,
            inflight_messages_max=3,
            entries_kept=5,
        )
        log = RaftLog(snapshot=disk.snapshot, offset=disk.offset, offset_term=disk.offset_term, entries=disk.entries)
        self.incarnation += 1
        self.state = disk.snapshot.data
        self.writing: Ready | None = None
        self.raft = Raft(config, hard_state=disk.hard_state, log=log, random=self.world.random, now=self.world.now)
        self.world.rules.applied_snapshot(disk.snapshot)
        self.pump()
        self.wait()

    def crash(self) -> None:
        if self.raft is not None and self.writing is not None:
            self.disk.persist(self.writing, self.world.random)
        self.raft = None
        self.incarnation += 1

    # -- running

    def receive(self, message: Message) -> None:
        if self.raft is not None:
            self.raft.step(message, self.world.now)
            self.pump()

    def wait(self) -> None:
        """One timer chain per incarnation; the core tolerates early ticks."""
        assert self.raft is not None
        incarnation = self.incarnation

        def fire() -> None:
            if self.incarnation == incarnation and self.raft is not None:
                if self.world.now >= self.raft.deadline():
                    self.raft.tick(self.world.now)
                    self.pump()
                self.wait()

        pause = min(max(self.raft.deadline() - self.world.now, 0.001), 0.05)
        self.world.later(pause, fire)

    def pump(self) -> None:
        assert self.raft is not None
        self.world.rules.observe(self)
        if self.writing is not None:
            return
        ready = self.raft.ready()
        if ready is None:
            return
        self.writing, incarnation = ready, self.incarnation

        def written() -> None:
            if self.incarnation == incarnation:
                self.finish(ready)

        self.world.later(self.world.random.random() * self.world.faults.persist_max_s, written)

    def finish(self, ready: Ready) -> None:
        assert self.raft is not None
        self.disk.persist(ready)
        self.writing = None
        self.raft.advance(ready, self.world.now)
        for message in ready.messages:
            self.world.send(self.id, message)
        if ready.snapshot is not None:
            self.world.rules.applied_snapshot(ready.snapshot)
            self.state = ready.snapshot.data
        for entry in ready.committed:
            self.state = self.world.rules.applied(self, entry, self.state)
        self.pump()

    def compact(self) -> None:
        raft = self.raft
        if raft is not None and raft.applied > raft.log.snapshot.index and self.writing is None:
            snapshot = raft.compact(self.state, raft.applied)
            self.disk.compact(snapshot, raft.compacted(snapshot))


class Rules:
    """What must hold at every moment."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.entries: dict[tuple[int, int], tuple[int | None, EntryKind, bytes]] = {}
        self.committed: dict[int, Entry] = {}
        self.states: dict[int, bytes] = {0: b""}

    def observe(self, node: Node) -> None:
        raft = node.raft
        assert raft is not None
        if raft.role is Role.LEADER and self.leaders.get(raft.term) != raft.member.id:
            self._one_leader(raft)
            self._leader_is_complete(raft)
        self._logs_match(raft)

    def _one_leader(self, raft: Raft) -> None:
        first = self.leaders.setdefault(raft.term, raft.member.id)
        if first != raft.member.id:
            raise Broken(f"term {raft.term} is led by {first} and by {raft.member.id}")

    def _leader_is_complete(self, raft: Raft) -> None:
        for index in range(raft.log.offset + 1, max(self.committed, default=0) + 1):
            if index in self.committed and raft.log.term_at(index) != self.committed[index].term:
                raise Broken(f"leader {raft.member.id} of term {raft.term} lacks committed entry {index}")

    def _logs_match(self, raft: Raft) -> None:
        """Same index and term means same entry and same entry before it; by induction the logs agree up to there.

        Only what is on disk: a sole voter may lose a term that nobody heard of, and begin it again.
        """
        log = raft.log
        for entry in log.slice(start=log.offset + 1, stop=log.stable, entries_max=10_000, bytes_max=1 << 40):
            seen = (log.term_at(entry.index - 1), entry.kind, entry.data)
            first = self.entries.setdefault((entry.index, entry.term), seen)
            if first != seen:
                raise Broken(f"entry {entry.index} of term {entry.term} is {first} and, on {raft.member.id}, {seen}")

    def applied(self, node: Node, entry: Entry, state: bytes) -> bytes:
        first = self.committed.setdefault(entry.index, entry)
        if first != entry:
            raise Broken(f"committed entry {entry.index} was {first}, node {node.id} applied {entry}")
        new_state = hashlib.blake2b(state + entry.data, digest_size=8).digest()
        if self.states.setdefault(entry.index, new_state) != new_state:
            raise Broken(f"node {node.id} skipped or repeated an entry before {entry.index}")
        return new_state

    def applied_snapshot(self, snapshot: Snapshot) -> None:
        if self.states.get(snapshot.index) != snapshot.data:
            raise Broken(f"the snapshot at {snapshot.index} is not what was committed up to there")


class World:
    def __init__(self, seed: int, *, voters: int, observers: int = 0, named_directories: bool = False) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.faults = Faults()
        self.rules = Rules()
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._cut: set[tuple[int, int]] = set()
        seeds = tuple(Voter(number, ANY_DIRECTORY) for number in range(voters))
        self.nodes = {number: Node(self, number, seeds) for number in range(voters + observers)}
        if named_directories:
            named = tuple(Voter(number, self.nodes[number].directory) for number in range(voters))
            for node in self.nodes.values():
                node.seed = named
                node.disk = Disk(HardState(seed=named), Snapshot(0, 0, named, b""))
        self.proposed = 0
        for node in self.nodes.values():
            node.start()

    # -- time and network

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), action))

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            if until():
                return True
            self.now, _, action = heapq.heappop(self._events)
            action()
        self.now = end
        return until()

    def send(self, source: int, message: Message) -> None:
        copies = 1 + (self.random.random() < self.faults.duplicate)
        for _ in range(copies):
            if self.random.random() >= self.faults.drop:
                self.later(self.random.random() * self.faults.delay_max_s, lambda: self._deliver(source, message))

    def _deliver(self, source: int, message: Message) -> None:
        if (source, message.target) not in self._cut:
            self.nodes[message.target].receive(message)

    # -- faults

    def step(self) -> None:
        """One random deed, and some time."""
        deeds = (
            (8, self.propose),
            (2, self.partition),
            (2, self.heal_network),
            (2, self.crash_one),
            (3, self.restart_one),
            (2, self.compact_one),
            (1, self.change_voters),
            (1, self.hand_over),
            (1, self.new_weather),
        )
        self.random.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]()
        self.run(self.random.choice((0.0, 0.01, 0.1, 0.5, 2.0)))

    def leaders(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.raft is not None and node.raft.role is Role.LEADER]

    def propose(self) -> None:
        for node in self.leaders():
            assert node.raft is not None
            batches = [f"command {self.proposed + number}".encode() for number in range(self.random.randint(1, 5))]
            self.proposed += len(batches)
            try:
                node.raft.propose(batches, self.now)
            except (NotLeader, Overloaded):
                continue
            node.pump()

    def partition(self) -> None:
        group = {number for number in self.nodes if self.random.random() < 0.5}
        one_way = self.random.random() < 0.3
        for a, b in itertools.permutations(self.nodes, 2):
            if a in group and b not in group:
                self._cut |= {(a, b)} if one_way else {(a, b), (b, a)}

    def heal_network(self) -> None:
        self._cut.clear()

    def crash_one(self) -> None:
        self.random.choice(list(self.nodes.values())).crash()

    def restart_one(self) -> None:
        node = self.random.choice(list(self.nodes.values()))
        node.crash()
        node.start()

    def compact_one(self) -> None:
        self.random.choice(list(self.nodes.values())).compact()

    def change_voters(self) -> None:
        for node in self.leaders():
            assert node.raft is not None
            voters = node.raft.log.voters
            chosen = self.random.choice(list(self.nodes.values()))
            if any(voter.id == chosen.id for voter in voters):
                changed = tuple(voter for voter in voters if voter.id != chosen.id)
            else:
                changed = (*voters, Voter(chosen.id, chosen.directory))
            try:
                node.raft.change_voters(changed, self.now)
            except VoterChangeRefused:
                continue
            node.pump()

    def hand_over(self) -> None:
        for node in self.leaders():
            assert node.raft is not None
            try:
                node.raft.hand_over(self.random.choice(list(self.nodes)), self.now)
            except VoterChangeRefused:
                continue
            node.pump()

    def new_weather(self) -> None:
        self.faults = Faults(
            drop=self.random.choice((0.0, 0.05, 0.3)),
            duplicate=self.random.choice((0.0, 0.1)),
            delay_max_s=self.random.choice((0.005, 0.05, 0.4)),
            persist_max_s=self.random.choice((0.001, 0.02, 0.2)),
        )

    # -- the end

    def heal(self) -> None:
        self.faults = Faults()
        self.heal_network()
        for node in self.nodes.values():
            if node.raft is None:
                node.start()

    def is_in_agreement(self) -> bool:
        """Somebody leads, and every node has applied all of its log."""
        established = [node.raft for node in self.leaders() if node.raft is not None and node.raft.is_established]
        if len(established) != 1:
            return False
        last = established[0].log.last_index
        return all(node.raft is not None and node.raft.applied == last for node in self.nodes.values())

    def check_progress(self) -> None:
        """After healing: agreement, a new entry, agreement again."""
        self.heal()
        if not self.run(60, until=self.is_in_agreement):
            raise Broken("no agreement a minute after all faults ended")
        before = max(self.rules.committed)
        self.propose()
        if not self.run(10, until=lambda: self.is_in_agreement() and max(self.rules.committed) > before):
            raise Broken("a healthy quorum commits nothing")
