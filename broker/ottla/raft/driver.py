"""Runs one member of the quorum: core + store + transport on an asyncio loop, real or virtual.

One task repeats: take what is ready, persist it in a thread, send, apply. Proposals that arrive while the disk is busy
go into the next round together (group commit).
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ottla.errors import Refusal
from ottla.raft.core.elections import Role
from ottla.raft.core.messages import Append, Entry, InstallSnapshot, Message, Snapshot, Voters
from ottla.raft.core.quorum_state import QuorumState, ReplicaState, describe
from ottla.raft.core.raft import NotLeader, Raft, RaftConfig, Ready
from ottla.raft.store import RaftStore
from ottla.system import System

__all__ = ["Proposal", "QuorumState", "RaftDriver", "ReplicaState", "SnapshotLimits", "StateMachine", "Transport"]

log = logging.getLogger("ottla.quorum")

REFUSALS_NOTED_MAX = 100  # nodes


class Transport(Protocol):
    def send(self, message: Message) -> None:
        """Does not block. Messages may be lost, delayed and reordered."""


class StateMachine(Protocol):
    """Committed entries are applied to it, on the loop and in order."""

    def apply(self, entries: Sequence[Entry]) -> None: ...
    def restore(self, snapshot: Snapshot) -> None: ...
    def capture(self) -> Callable[[], bytes]:
        """Capture the current state. The result encodes it, in a thread."""

    def leadership(self, *, leads: bool) -> None:
        """Established leadership started (everything committed before is applied) or ended."""


class SnapshotLimits(msgspec.Struct, frozen=True):
    """Take a snapshot after this much of the log."""

    bytes_max: int = 8 << 20
    entries_max: int = 50_000


class Proposal(msgspec.Struct, frozen=True):
    index: int
    term: int
    # Done when the entry is committed and applied here. NotLeader: leadership was lost first, the outcome is unknown.
    done: "asyncio.Future[None]"


class RaftDriver:
    def __init__(
        self,
        config: RaftConfig,
        *,
        store: RaftStore,
        system: System,
        machine: StateMachine,
        seed: Voters,
        transport: Transport | None = None,
        snapshot_limits: SnapshotLimits | None = None,
        unreadable: Callable[[Sequence[Entry]], str | None] | None = None,
        unreadable_snapshot: Callable[[Snapshot], str | None] | None = None,
    ) -> None:
        """`unreadable` returns why the state machine cannot apply entries, or None; `unreadable_snapshot` why it cannot
        restore a snapshot."""
        self._config = config
        self._store = store
        self._system = system
        self._machine = machine
        self._seed = seed
        self._transport = transport
        self._snapshot_limits = snapshot_limits or SnapshotLimits()
        self._unreadable = unreadable
        self._unreadable_snapshot = unreadable_snapshot
        self._refused: dict[int, str] = {}  # the last reason by node
        self._raft: Raft | None = None
        self._wake = asyncio.Event()
        self._changed = asyncio.Condition()
        self._waiting: dict[int, Proposal] = {}
        self._led_in_term = 0
        self._task: asyncio.Task[None] | None = None
        self._encoding: asyncio.Task[None] | None = None
        self._encoded: tuple[int, bytes] | None = None
        self._stopping = False
        # Fails when the disk failed: the node must stop then.
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # -- start and stop

    async def start(self) -> None:
        try:
            stored = await self._system.threads.run(self._store.load, self._seed)
        except OSError as error:
            raise Refusal(f"the metadata log in {self._store.folder} cannot be used: {error}") from error
        self._raft = Raft(
            self._config,
            hard_state=stored.hard_state,
            log=stored.raft_log(),
            random=self._system.random,
            now=self._now(),
        )
        if stored.snapshot.index:
            self._machine.restore(stored.snapshot)
        self._task = asyncio.create_task(self._run(), name="raft")

    async def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._encoding is not None:
            await asyncio.wait([self._encoding])
        await self._system.threads.run(self._store.close)

    # -- requests

    @property
    def raft(self) -> Raft:
        assert self._raft is not None, "start first"
        return self._raft

    @property
    def leader_id(self) -> int | None:
        return self.raft.leader

    @property
    def term(self) -> int:
        return self.raft.term

    @property
    def leads(self) -> bool:
        """Established, and everything committed before its term is applied here."""
        raft = self.raft
        return self._led_in_term == raft.term and raft.role is Role.LEADER and not self.closed.done()

    @property
    def next_index(self) -> int:
        return self.raft.log.last_index + 1

    async def until_leader_known(self) -> None:
        """Wait until there is a leader; if it is this node, until it is established. Raises the error of a closed
        driver."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self.closed.done() or self.leads or self.leader_id not in (None, self._config.member.id)
            )
        if self.closed.done():
            self.closed.result()

    async def propose(self, batches: Sequence[bytes]) -> int:
        proposal = self.submit(batches)
        await proposal.done
        return proposal.index

    def submit(self, batches: Sequence[bytes]) -> Proposal:
        """Appends at once, so that the index is known; commits later. NotLeader, Overloaded or TooLarge if refused."""
        if self._stopping or self.closed.done():
            raise NotLeader(None)
        index = self.raft.propose(batches, self._now())
        proposal = Proposal(index, self.raft.term, asyncio.get_running_loop().create_future())
        self._waiting[index] = proposal
        self._wake.set()
        return proposal

    async def change_voters(self, voters: Voters) -> None:
        index = self.raft.change_voters(voters, self._now())
        proposal = Proposal(index, self.raft.term, asyncio.get_running_loop().create_future())
        self._waiting[index] = proposal
        self._wake.set()
        await proposal.done

    def receive(self, message: Message) -> None:
        if self._stopping or self.closed.done():
            return
        refusal = self._unreadable_part(message) or self.raft.step(message, self._now())
        if refusal is None:
            self._wake.set()
        else:
            self._log_refusal(message.source.id, refusal)

    def _unreadable_part(self, message: Message) -> str | None:
        """Entries in the log are applied eventually: one that cannot be would stop this node then, and at every start.
        The same holds for a snapshot, which replaces the log. Entries that are in the log already were checked before,
        and those of an unknown sender are not decoded at all."""
        if not isinstance(message, Append | InstallSnapshot) or not self.raft.may_lead(message.source, message.term):
            return None
        if isinstance(message, InstallSnapshot):
            return self._snapshot_problem(message.snapshot)
        if self._unreadable is None:
            return None
        news = [entry for entry in message.entries if self.raft.log.term_at(entry.index) != entry.term]
        return self._unreadable(news) if news else None

    def _snapshot_problem(self, snapshot: Snapshot) -> str | None:
        if snapshot.index <= self.raft.log.commit:
            return None  # it changes nothing
        if not snapshot.voters:
            return f"metadata snapshot {snapshot.index} has no voters"
        return self._unreadable_snapshot(snapshot) if self._unreadable_snapshot is not None else None

    def _log_refusal(self, node_id: int, refusal: str) -> None:
        """Messages are repeated: log one line whenever the reason changes."""
        words = refusal.partition(" is ")[0]
        if self._refused.get(node_id) != words and len(self._refused) < REFUSALS_NOTED_MAX:
            self._refused[node_id] = words
            log.error("dropped what node %d sent: %s", node_id, refusal)

    def leader_gone(self, node_id: int) -> None:
        """That node's process has ended; if it was the leader, an election starts at once."""
        self.raft.leader_gone(node_id, self._now())
        self._wake.set()

    def hand_over(self) -> None:
        """Before a leader stops: ask a voter with the whole log to stand for election. Does nothing without one."""
        raft = self.raft
        successor = raft.successor()
        if successor is not None and successor.match == raft.log.last_index:
            raft.hand_over(successor.member.id, self._now())
            self._wake.set()

    async def until_another_leads(self) -> None:
        async with self._changed:
            await self._changed.wait_for(
                lambda: self.closed.done() or self.leader_id not in (None, self._config.member.id)
            )

    def voters_heard(self) -> set[int]:
        """Voters that the leader has heard recently, including itself."""
        raft = self.raft
        since = self._now() - raft.config.silence_s
        heard = {peer.member.id for peer in raft.peers.values() if peer.heard_at >= since} | {raft.member.id}
        return heard & {voter.id for voter in raft.log.voters}

    def describe(self) -> QuorumState:
        return describe(self.raft, now=self._now(), wall_ms=self._system.clock.wall_ms())

    # -- the loop

    async def _run(self) -> None:
        try:
            while not self._stopping:
                await self._round()
        except Exception as error:
            self.closed.set_exception(error)
            self.closed.exception()  # mark the exception as retrieved
        else:
            self.closed.set_result(None)
        finally:
            self._fail_waiting()
            await self._notify()

    async def _round(self) -> None:
        await self._save_encoded_snapshot()
        if self._now() >= self.raft.deadline():
            # In every round, not only when idle: heartbeats are due under load too.
            self.raft.tick(self._now())
        ready = self.raft.ready()
        if ready is None:
            await self._sleep_until(self.raft.deadline())
            return
        if ready.must_persist:
            await self._system.threads.run(self._store.persist, ready.hard_state, ready.snapshot, ready.entries)
        self.raft.advance(ready, self._now())
        self._perform(ready)
        await self._notify()

    def _perform(self, ready: Ready) -> None:
        if self._transport is not None:
            for message in ready.messages:
                self._transport.send(message)
        if ready.snapshot is not None:
            self._machine.restore(ready.snapshot)
        if ready.committed:
            self._machine.apply(ready.committed)
        self._note_leadership()
        self._note_losses()
        self._answer(ready.committed)
        self._snapshot_if_due()

    def _note_leadership(self) -> None:
        raft = self.raft
        if raft.has_applied_own_term:
            if self._led_in_term != raft.term:
                self._led_in_term = raft.term
                self._machine.leadership(leads=True)
        elif self._led_in_term:
            self._led_in_term = 0
            self._machine.leadership(leads=False)

    def _note_losses(self) -> None:
        for node, index in self.raft.take_losses().items():
            log.error(
                "node %d acknowledged metadata entries up to %d and no longer has all of them: its disk lost "
                "synced data. They are sent to it again; check the disk, or give the node an empty one",
                node,
                index,
            )

    def _answer(self, committed: Sequence[Entry]) -> None:
        for entry in committed if self._waiting else ():
            proposal = self._waiting.pop(entry.index, None)
            if proposal is None or proposal.done.done():
                continue
            if entry.term == proposal.term:
                proposal.done.set_result(None)
            else:
                proposal.done.set_exception(NotLeader(self.leader_id))
        if self.raft.role is not Role.LEADER:
            # Proposals are answered when applied, also by a leader that has removed itself.
            self._fail_waiting(kept=range(self.raft.applied + 1, self.raft.log.commit + 1))

    def _fail_waiting(self, kept: range = range(0)) -> None:
        for index in [index for index in self._waiting if index not in kept]:
            proposal = self._waiting.pop(index)
            if not proposal.done.done():
                proposal.done.set_exception(NotLeader(self.leader_id))

    async def _sleep_until(self, deadline: float) -> None:
        seconds = None if deadline == math.inf else max(deadline - self._now(), 0)
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _now(self) -> float:
        return self._system.clock.monotonic()

    # -- snapshots

    def _snapshot_if_due(self) -> None:
        entries = self.raft.applied - self.raft.log.snapshot.index
        limits = self._snapshot_limits
        due = entries > 0 and (self._store.bytes_since_snapshot >= limits.bytes_max or entries >= limits.entries_max)
        if due and self._encoding is None:
            self._encoding = asyncio.create_task(self._encode(self._machine.capture(), self.raft.applied))

    async def _encode(self, encode: Callable[[], bytes], index: int) -> None:
        """Encode in a thread; entries are committed meanwhile."""
        self._encoded = index, await self._system.threads.run(encode)
        self._wake.set()

    async def _save_encoded_snapshot(self) -> None:
        if self._encoding is not None and self._encoding.done():
            self._encoding.result()
            self._encoding = None
        if self._encoded is None:
            return
        index, data = self._encoded
        self._encoded = None
        if index <= self.raft.log.snapshot.index:
            return  # the leader sent a newer one
        snapshot = self.raft.compact(data, index)
        await self._system.threads.run(self._store.save_snapshot, snapshot)
        await self._system.threads.run(self._store.drop_before, self.raft.compacted(snapshot))
