"""Scripts (`golden.scripts`) of a quorum of Raft cores: they print what happens, like a cluster's log.

Nothing is persisted, sent or applied before `stabilize` or `pass`.

    > cluster voters=1,2,3 observers=4    nodes with empty logs; seeds name only the voters
    > timeout 1                           node 1's deadline passes
    > propose 1 TEXT                      node 1 is asked to append
    > voters 1 +4 | -3                    node 1 is asked to add or remove a voter
    > pass 5                              five seconds go by; only changes of role are shown
    > stabilize                           persist, send, apply until nothing is left to do
    > cut 3 | heal                        no messages from and to node 3 | all again
    > compact 1                           a snapshot of what node 1 applied; the log before it goes
    > restart 1                           node 1 comes back with what it persisted
    > status                              one line per node
"""

import uuid
from collections.abc import Callable
from random import Random

from ottla.raft.core import messages as m
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import Entry, HardState, Member, Message, Snapshot, Voter
from ottla.raft.core.raft import NotLeader, Raft, RaftConfig, Ready, VoterChangeRefused


class Script:
    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self.nodes: dict[int, Raft] = {}
        self.disks: dict[int, tuple[HardState, Snapshot, list[Entry]]] = {}
        self.cut_off: set[int] = set()
        self.mail: list[Message] = []
        self.roles: dict[int, str] = {}

    def run(self, line: str) -> list[str]:
        self.lines = []
        name, *arguments = line.split()
        command: Callable[..., None] = getattr(self, f"do_{name}")
        command(*arguments)
        self.note_roles()
        return self.lines

    # -- commands

    def do_cluster(self, *options: str) -> None:
        given = dict(option.split("=") for option in options)
        voters = tuple(Voter(int(each), _directory(int(each))) for each in given["voters"].split(","))
        observers = [int(each) for each in given.get("observers", "").split(",") if each]
        for node in [voter.id for voter in voters] + observers:
            self.disks[node] = (HardState(seed=voters), Snapshot(0, 0, voters, b""), [])
            self.boot(node)

    def boot(self, node: int) -> None:
        state, snapshot, entries = self.disks[node]
        log = RaftLog(
            snapshot=snapshot,
            offset=entries[0].index - 1 if entries else snapshot.index,
            offset_term=snapshot.term,
            entries=entries,
        )
        config = RaftConfig(member=Member(node, _directory(node)), entries_kept=0)
        self.nodes[node] = Raft(config, hard_state=state, log=log, random=Random(node), now=self.now)
        self.roles[node] = "follower"

    def do_timeout(self, node: str) -> None:
        raft = self.nodes[int(node)]
        self.now = max(self.now, raft.deadline())
        raft.tick(self.now)

    def do_pass(self, seconds: str) -> None:
        end = self.now + float(seconds)
        self.do_stabilize()
        while min(raft.deadline() for raft in self.nodes.values()) <= end:
            node = min(self.nodes, key=lambda each: self.nodes[each].deadline())
            self.do_timeout(str(node))
            self.note_roles()
            self.do_stabilize()
        self.now = end
        self.lines = [line for line in self.lines if " is " in line]

    def do_propose(self, node: str, *words: str) -> None:
        try:
            self.nodes[int(node)].propose([" ".join(words).encode()], self.now)
        except NotLeader as refused:
            self.say(f"{node} refuses: {refused}")

    def do_voters(self, node: str, change: str) -> None:
        raft, other = self.nodes[int(node)], int(change[1:])
        if change[0] == "+":
            voters = (*raft.log.voters, Voter(other, _directory(other)))
        else:
            voters = tuple(voter for voter in raft.log.voters if voter.id != other)
        try:
            raft.change_voters(voters, self.now)
        except (NotLeader, VoterChangeRefused) as refused:
            self.say(f"{node} refuses: {refused}")

    def do_cut(self, node: str) -> None:
        self.cut_off.add(int(node))

    def do_heal(self) -> None:
        self.cut_off.clear()

    def do_compact(self, node: str) -> None:
        raft = self.nodes[int(node)]
        snapshot = raft.compact(f"everything up to {raft.applied}".encode(), raft.applied)
        first = raft.compacted(snapshot)
        state, _, entries = self.disks[int(node)]
        self.disks[int(node)] = (state, snapshot, [entry for entry in entries if entry.index >= first])

    def do_restart(self, node: str) -> None:
        self.boot(int(node))

    def do_status(self) -> None:
        for node, raft in self.nodes.items():
            voters = ",".join(str(voter.id) for voter in raft.log.voters)
            log = raft.log
            self.say(
                f"{node} {raft.role.value} term {raft.term} leader {raft.leader or '-'} "
                f"log {log.offset + 1}..{log.last_index} commit {log.commit} applied {raft.applied} voters {voters}"
            )

    def do_stabilize(self) -> None:
        busy = True
        while busy:
            busy = sum(map(self.settle, self.nodes)) > 0
            mail, self.mail = self.mail, []
            for message in mail:
                self.deliver(message)
                busy = True

    # -- effects

    def settle(self, node: int) -> bool:
        raft = self.nodes[node]
        self.note_roles()
        ready = raft.ready()
        if ready is None:
            return False
        self.persist(node, ready)
        raft.advance(ready, self.now)
        self.mail += ready.messages
        for entry in ready.committed:
            self.say(f"{node} applies {_entry(entry)}")
        return True

    def persist(self, node: int, ready: Ready) -> None:
        state, snapshot, entries = self.disks[node]
        if ready.hard_state is not None:
            state = ready.hard_state
            self.say(f"{node} persists term {state.term} vote {state.vote.id if state.vote else '-'}")
        if ready.snapshot is not None:
            snapshot, entries = ready.snapshot, []
            self.say(f"{node} persists snapshot {snapshot.index}@{snapshot.term} {snapshot.data.decode()!r}")
        if ready.entries:
            entries = [entry for entry in entries if entry.index < ready.entries[0].index] + list(ready.entries)
            self.say(f"{node} persists {', '.join(map(_entry, ready.entries))}")
        self.disks[node] = (state, snapshot, entries)

    def deliver(self, message: Message) -> None:
        lost = {message.source.id, message.target} & self.cut_off
        self.say(f"{message.source.id} -> {message.target} {_describe(message)}{' (lost)' if lost else ''}")
        if not lost:
            self.nodes[message.target].step(message, self.now)
            self.note_roles()

    def note_roles(self) -> None:
        for node, raft in self.nodes.items():
            if self.roles[node] != raft.role.value:
                self.roles[node] = raft.role.value
                self.say(f"{node} is {raft.role.value} in term {raft.term}")

    def say(self, line: str) -> None:
        self.lines.append(line)


def _directory(node: int) -> uuid.UUID:
    return uuid.UUID(int=node)


def _entry(entry: Entry) -> str:
    kind = entry.kind.name.lower()
    if entry.kind is m.EntryKind.VOTERS:
        return f"{entry.index}@{entry.term} voters {','.join(str(voter.id) for voter in entry.voters())}"
    return f"{entry.index}@{entry.term} {kind}" + (f" {entry.data.decode()!r}" if entry.data else "")


def _describe(message: Message) -> str:
    name = f"{type(message).__name__} term {message.term}"
    match message:
        case m.VoteRequest():
            return f"{name}{' pre' if message.pre else ''} last {message.last_index}@{message.last_term}"
        case m.VoteReply():
            return f"{name}{' pre' if message.pre else ''} {'granted' if message.granted else 'refused'}"
        case m.Append():
            entries = f" [{', '.join(map(_entry, message.entries))}]" if message.entries else ""
            return f"{name} after {message.previous_index}@{message.previous_term}{entries} commit {message.commit}"
        case m.AppendReply(accepted=True):
            return f"{name} accepted up to {message.index}"
        case m.AppendReply():
            return f"{name} refused at {message.index}, try {message.hint_index}@{message.hint_term}"
        case m.InstallSnapshot():
            return f"{name} {message.snapshot.index}@{message.snapshot.term}"
        case m.LeaderHint():
            return f"{name} leader {message.leader}"
    return name
