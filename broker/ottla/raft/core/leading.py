"""A leader's work: sends entries and snapshots, counts answers, commits, steps down without a majority. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ottla.raft.core.config import RaftConfig
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import (
    ANY_DIRECTORY,
    Append,
    AppendReply,
    Entry,
    EntryKind,
    InstallSnapshot,
    Member,
    Message,
    TimeoutNow,
    Voters,
    encode_voters,
)
from ottla.raft.core.progress import Progress, ProgressState
from ottla.raft.core.quorum import committed_index, find, is_voter, majority

__all__ = ["Leadership"]


class Leadership:
    """One term of leadership. Invariant: every other voter and every observer has a Progress in `peers`.

    `send` sends a message to another member. `on_loss` is called with a member that lost acknowledged entries, and with
    the index of the last one.
    """

    def __init__(
        self,
        config: RaftConfig,
        *,
        term: int,
        log: RaftLog,
        send: Callable[[Message], None],
        on_loss: Callable[[int, int], None],
        now: float,
    ) -> None:
        self.peers: dict[int, Progress] = {}
        self.term_start_index = log.last_index + 1
        self._config = config
        self._member = config.member
        self._term = term
        self._log = log
        self._send = send
        self._on_loss = on_loss
        self._heartbeat_deadline = now + config.heartbeat_s
        self._quorum_deadline = now + config.silence_s

    def begin(self, votes: Mapping[int, bool], now: float) -> None:
        """Called after the election; members that voted for this one count as heard now."""
        self._follow_voters()
        for node, peer in self.peers.items():
            if votes.get(node):
                peer.heard(now)
        self._append(EntryKind.LEADER, b"")
        self._broadcast(now)

    # -- proposals

    def propose(self, batches: Sequence[bytes], now: float) -> None:
        for data in batches:
            self._append(EntryKind.DATA, data)
        self._broadcast(now)

    def change_voters(self, voters: Voters, now: float) -> None:
        self._append(EntryKind.VOTERS, encode_voters(voters))
        self._follow_voters()
        self._broadcast(now)

    def hand_over(self, node_id: int) -> bool:
        """Ask a voter with the whole log to stand for election at once; False if the node is none."""
        peer = self.peers.get(node_id)
        if peer is None or not is_voter(self._log.voters, peer.member) or peer.match < self._log.last_index:
            return False
        self._send(TimeoutNow(self._member, node_id, self._term))
        return True

    def successor(self) -> Progress | None:
        """The other voter with the most complete log; of several, the one heard last."""
        others = [peer for peer in self.peers.values() if is_voter(self._log.voters, peer.member)]
        return max(others, key=lambda peer: (peer.match, peer.heard_at), default=None)

    def _append(self, kind: EntryKind, data: bytes) -> None:
        self._log.append(Entry(self._log.last_index + 1, self._term, kind, data))

    def _follow_voters(self) -> None:
        """Keep one Progress per voter. Removed voters stay as observers, so that they learn of the removal."""
        for voter in self._log.voters:
            if voter.id != self._member.id and voter.id not in self.peers:
                self.peers[voter.id] = self._new_progress(Member(voter.id, voter.directory))

    def _new_progress(self, member: Member) -> Progress:
        return Progress(member, next_index=self._log.last_index + 1, inflight_max=self._config.inflight_messages_max)

    # -- time

    def deadline(self) -> float:
        return min(self._heartbeat_deadline, self._quorum_deadline) if self.peers else math.inf

    def tick(self, now: float) -> bool:
        """False when the leader has not heard a majority and has to step down."""
        if now >= self._quorum_deadline:
            self._quorum_deadline = now + self._config.silence_s
            if not self._hears_majority(now):
                return False
            self._forget_silent_observers(now)
        if now >= self._heartbeat_deadline:
            self._heartbeat_deadline = now + self._config.heartbeat_s
            for peer in self.peers.values():
                self._heartbeat(peer, now)
        return True

    def _hears_majority(self, now: float) -> bool:
        since, voters = now - self._config.silence_s, self._log.voters
        heard = sum(1 for peer in self.peers.values() if peer.heard_at >= since and is_voter(voters, peer.member))
        return heard + self._is_voter >= majority(voters)

    @property
    def _is_voter(self) -> bool:
        return is_voter(self._log.voters, self._member)

    def _forget_silent_observers(self, now: float) -> None:
        since, voters = now - self._config.observer_timeout_s, self._log.voters
        silent = [node for node, peer in self.peers.items() if peer.heard_at < since and not find(voters, node)]
        for node in silent:
            del self.peers[node]

    def _heartbeat(self, peer: Progress, now: float) -> None:
        if peer.state is ProgressState.SNAPSHOT:
            if now - peer.snapshot_sent_at >= self._config.snapshot_retry_s:
                peer.restart()
            else:
                self._send_empty_append(peer)
                return
        peer.probe_again()
        if not self._send_entries(peer, now):
            self._send_append(peer, now, last_index=peer.next - 1)

    def _send_empty_append(self, peer: Progress) -> None:
        """An Append that matches any log: it only names the leader."""
        self._send(Append(self._member, peer.member.id, self._term, 0, 0, (), 0))

    # -- sending

    def _broadcast(self, now: float) -> None:
        for peer in self.peers.values():
            self._send_entries(peer, now)

    def _send_entries(self, peer: Progress, now: float) -> bool:
        """Send as many messages as may be in flight. Returns whether any was sent."""
        sent = False
        while peer.may_send and peer.next <= self._log.last_index:
            sent = True
            if not self._send_append(peer, now, last_index=self._log.last_index):
                break
        return sent

    def _send_updates(self, peer: Progress, now: float) -> None:
        """Send new entries, or else the new commit index."""
        if self._send_entries(peer, now) or not peer.may_send:
            return
        if peer.commit_sent < min(self._log.commit, peer.match):
            self._send_append(peer, now, last_index=peer.next - 1)

    def _send_append(self, peer: Progress, now: float, *, last_index: int) -> bool:
        log, previous = self._log, peer.next - 1
        previous_term = log.term_at(previous)
        if previous_term is None:
            self._send_snapshot_if_alive(peer, now)
            return False
        entries = log.slice(
            start=peer.next,
            stop=last_index,
            entries_max=self._config.entries_per_message_max,
            bytes_max=self._config.bytes_per_message_max,
        )
        self._send(Append(self._member, peer.member.id, self._term, previous, previous_term, entries, log.commit))
        peer.sent(previous + len(entries))
        peer.sent_commit(min(log.commit, previous + len(entries)))
        return True

    def _send_snapshot_if_alive(self, peer: Progress, now: float) -> None:
        """Snapshots are large: a silent member gets an empty message first."""
        if self._is_silent(peer, now):
            self._send_empty_append(peer)
            peer.sent(peer.next - 1)
            return
        snapshot = self._log.snapshot
        self._send(InstallSnapshot(self._member, peer.member.id, self._term, snapshot))
        peer.sent_snapshot(snapshot.index, now)

    def _is_silent(self, peer: Progress, now: float) -> bool:
        return now - peer.heard_at >= self._config.silence_s

    # -- answers. False: the leader has removed itself from the voters, and has to step down

    def on_append_reply(self, message: AppendReply, now: float) -> bool:
        peer = self._peer_of(message.source)
        if peer is None:
            return True
        if peer.state is ProgressState.SNAPSHOT and self._is_silent(peer, now):
            # It was down, and the snapshot was lost.
            peer.restart()
        peer.heard(now)
        if message.accepted:
            return self._on_accepted(peer, message, now)
        resume_after, _ = self._log.last_at_most(message.hint_index, message.hint_term)
        known = peer.forgot
        if peer.refused(message.index, resume_after):
            if peer.forgot > known:
                self._on_loss(peer.member.id, peer.forgot)
            self._send_append(peer, now, last_index=self._log.last_index)
        return True

    def _on_accepted(self, peer: Progress, message: AppendReply, now: float) -> bool:
        is_news = peer.accepted(message.index)
        if peer.match >= self._log.commit:
            peer.caught_up(now)
        stays = not is_news or not is_voter(self._log.voters, peer.member) or self.commit(now)
        self._send_updates(peer, now)
        return stays

    def _peer_of(self, source: Member) -> Progress | None:
        """None for an unknown node. A node that returned with another directory starts with an empty log."""
        peer = self.peers.get(source.id)
        if peer is None or peer.member == source:
            return peer
        if peer.member.directory == ANY_DIRECTORY:
            peer.set_directory(source)
        else:
            peer = self.peers[source.id] = self._new_progress(source)
        return peer

    def welcome(self, member: Member, now: float) -> None:
        """Send the log to a member that has no leader."""
        if member.id == self._member.id:
            return
        if member.id not in self.peers:
            if len(self.peers) >= self._config.observers_max:
                return
            self.peers[member.id] = self._new_progress(member)
        peer = self._peer_of(member)
        assert peer is not None
        if not is_voter(self._log.voters, member):
            # A voter that does not hear us does not support us, so only observers count as heard.
            peer.heard(now)
        if peer.state is not ProgressState.SNAPSHOT:
            peer.probe_again()
            self._send_append(peer, now, last_index=self._log.last_index)

    # -- commit

    def commit(self, now: float) -> bool:
        """Commit what a majority has. Only entries of the leader's term are counted; older ones are committed with them
        (Raft, 5.4.2). False as above."""
        index = committed_index(self._log.voters, self._matches())
        if index <= self._log.commit or self._log.term_at(index) != self._term:
            return True
        self._log.commit_to(index)
        for peer in self.peers.values():
            self._send_updates(peer, now)
        if self._log.voters_index <= self._log.commit:
            if not self._is_voter:
                self._hand_over_to_successor()
                return False
            self._record_directories(now)
        return True

    def _matches(self) -> dict[int, int]:
        voters = self._log.voters
        matches = {node: peer.match for node, peer in self.peers.items() if is_voter(voters, peer.member)}
        if self._is_voter:
            matches[self._member.id] = self._log.stable
        return matches

    def _hand_over_to_successor(self) -> None:
        """Ask a remaining voter to stand for election at once."""
        if (successor := self.successor()) is not None:
            self._send(TimeoutNow(self._member, successor.member.id, self._term))

    def _record_directories(self, now: float) -> None:
        """Seed voters have a node id only; once their directories are known, write them to the log."""
        if self._log.commit < self.term_start_index:
            return
        known = {node: peer.member.directory for node, peer in self.peers.items()}
        known[self._member.id] = self._member.directory
        named = tuple(
            msgspec.structs.replace(voter, directory=known.get(voter.id, ANY_DIRECTORY))
            if voter.directory == ANY_DIRECTORY
            else voter
            for voter in self._log.voters
        )
        if named != self._log.voters:
            self._append(EntryKind.VOTERS, encode_voters(named))
            self._broadcast(now)
