"""What a leader does: send entries and snapshots, count answers, commit, step down without a majority. Pure."""

from typing import TYPE_CHECKING

import msgspec

from ottla.raft.core.messages import (
    ANY_DIRECTORY,
    Append,
    AppendReply,
    EntryKind,
    InstallSnapshot,
    Join,
    Member,
    TimeoutNow,
    encode_voters,
)
from ottla.raft.core.progress import Progress, ProgressState
from ottla.raft.core.quorum import committed_index, find, is_voter, majority
from ottla.raft.core.role import Role

if TYPE_CHECKING:
    from ottla.raft.core.raft import Raft

__all__ = [
    "become_leader",
    "broadcast",
    "commit_what_a_majority_has",
    "follow_voters",
    "heir",
    "on_append_reply",
    "on_join",
    "tick",
]


def become_leader(raft: "Raft") -> None:
    raft.role, raft.leader = Role.LEADER, raft.member.id
    raft.peers.clear()
    follow_voters(raft)
    for node, peer in raft.peers.items():
        if raft.votes.get(node):
            peer.heard_at = raft.now
    raft.heartbeat_deadline = raft.now + raft.config.heartbeat_s
    raft.quorum_deadline = raft.now + raft.config.silence_s
    raft.append(EntryKind.LEADER, b"")
    raft.term_start_index = raft.log.last_index
    broadcast(raft)


def follow_voters(raft: "Raft") -> None:
    """One progress per voter. Former voters stay as observers, to learn that they are."""
    for voter in raft.log.voters:
        if voter.id != raft.member.id and voter.id not in raft.peers:
            raft.peers[voter.id] = _new_progress(raft, Member(voter.id, voter.directory))


def _new_progress(raft: "Raft", member: Member) -> Progress:
    return Progress(
        member,
        next_index=raft.log.last_index + 1,
        inflight_max=raft.config.inflight_messages_max,
    )


# -- time


def tick(raft: "Raft") -> None:
    if raft.now >= raft.quorum_deadline:
        raft.quorum_deadline = raft.now + raft.config.silence_s
        if not _hears_a_majority(raft):
            raft.become_follower(raft.term, None)
            return
        _forget_silent_observers(raft)
    if raft.now >= raft.heartbeat_deadline:
        raft.heartbeat_deadline = raft.now + raft.config.heartbeat_s
        for peer in raft.peers.values():
            _heartbeat(raft, peer)


def _hears_a_majority(raft: "Raft") -> bool:
    since = raft.now - raft.config.silence_s
    heard = sum(1 for peer in raft.peers.values() if peer.heard_at >= since and is_voter(raft.log.voters, peer.member))
    return heard + raft.is_voter >= majority(raft.log.voters)


def _forget_silent_observers(raft: "Raft") -> None:
    since = raft.now - raft.config.observer_timeout_s
    silent = [node for node, peer in raft.peers.items() if peer.heard_at < since and not find(raft.log.voters, node)]
    for node in silent:
        del raft.peers[node]


def _heartbeat(raft: "Raft", peer: Progress) -> None:
    if peer.state is ProgressState.SNAPSHOT:
        if raft.now - peer.snapshot_sent_at >= raft.config.snapshot_retry_s:
            peer.restart()
        else:
            _send_sign_of_life(raft, peer)
            return
    peer.probe_again()
    if not _send_entries(raft, peer):
        _send_append(raft, peer, last_index=peer.next - 1)


def _send_sign_of_life(raft: "Raft", peer: Progress) -> None:
    """Fits any log: it only says who leads."""
    raft.send(Append(raft.member, peer.member.id, raft.term, 0, 0, (), 0))


# -- sending


def broadcast(raft: "Raft") -> None:
    for peer in raft.peers.values():
        _send_entries(raft, peer)


def _send_entries(raft: "Raft", peer: Progress) -> bool:
    """As many messages as the member may have in flight; whether there was one."""
    sent = False
    while peer.may_send and peer.next <= raft.log.last_index:
        sent = True
        if not _send_append(raft, peer, last_index=raft.log.last_index):
            break
    return sent


def _tell(raft: "Raft", peer: Progress) -> None:
    """Entries, or at least that entries the member has are committed now."""
    if not _send_entries(raft, peer) and peer.may_send and peer.commit_sent < min(raft.log.commit, peer.match):
        _send_append(raft, peer, last_index=peer.next - 1)


def _send_append(raft: "Raft", peer: Progress, *, last_index: int) -> bool:
    log, previous = raft.log, peer.next - 1
    previous_term = log.term_at(previous)
    if previous_term is None:
        _send_snapshot_if_alive(raft, peer)
        return False
    entries = log.slice(
        start=peer.next,
        stop=last_index,
        entries_max=raft.config.entries_per_message_max,
        bytes_max=raft.config.bytes_per_message_max,
    )
    raft.send(Append(raft.member, peer.member.id, raft.term, previous, previous_term, entries, log.commit))
    peer.sent(previous + len(entries))
    peer.commit_sent = min(log.commit, previous + len(entries))
    return True


def _send_snapshot_if_alive(raft: "Raft", peer: Progress) -> None:
    """Snapshots are large: a member that does not answer gets a word first."""
    if _is_silent(raft, peer):
        _send_sign_of_life(raft, peer)
        peer.sent(peer.next - 1)
        return
    snapshot = raft.log.snapshot
    raft.send(InstallSnapshot(raft.member, peer.member.id, raft.term, snapshot))
    peer.sent_snapshot(snapshot.index, raft.now)


def _is_silent(raft: "Raft", peer: Progress) -> bool:
    return raft.now - peer.heard_at >= raft.config.silence_s


# -- answers


def on_append_reply(raft: "Raft", message: AppendReply) -> None:
    peer = _peer_of(raft, message.source)
    if peer is None:
        return
    if peer.state is ProgressState.SNAPSHOT and _is_silent(raft, peer):
        # It was away, and the snapshot went nowhere.
        peer.restart()
    peer.heard_at = raft.now
    if message.accepted:
        _on_accepted(raft, peer, message)
        return
    resume_after, _ = raft.log.last_at_most(message.hint_index, message.hint_term)
    known = peer.forgot
    if peer.refused(message.index, resume_after):
        if peer.forgot > known:
            raft.forgetful[peer.member.id] = peer.forgot
        _send_append(raft, peer, last_index=raft.log.last_index)


def _on_accepted(raft: "Raft", peer: Progress, message: AppendReply) -> None:
    is_news = peer.accepted(message.index)
    if peer.match >= raft.log.commit:
        peer.caught_up_at = raft.now
    if is_news and is_voter(raft.log.voters, peer.member):
        commit_what_a_majority_has(raft)
    _tell(raft, peer)


def _peer_of(raft: "Raft", source: Member) -> Progress | None:
    """None for a stranger. A node that came back with another directory starts from nothing."""
    peer = raft.peers.get(source.id)
    if peer is None or peer.member == source:
        return peer
    if peer.member.directory == ANY_DIRECTORY:
        peer.member = source
    else:
        peer = raft.peers[source.id] = _new_progress(raft, source)
    return peer


def on_join(raft: "Raft", message: Join) -> None:
    welcome(raft, message.source)


def welcome(raft: "Raft", member: Member) -> None:
    """Begin, or go on, to send the log to a member that hears no leader."""
    if member.id == raft.member.id:
        return
    if member.id not in raft.peers:
        if len(raft.peers) >= raft.config.observers_max:
            return
        raft.peers[member.id] = _new_progress(raft, member)
    peer = _peer_of(raft, member)
    assert peer is not None
    if not is_voter(raft.log.voters, member):
        # A voter that does not hear us is no support, so only observers count as heard.
        peer.heard_at = raft.now
    if peer.state is not ProgressState.SNAPSHOT:
        peer.probe_again()
        _send_append(raft, peer, last_index=raft.log.last_index)


# -- commit


def commit_what_a_majority_has(raft: "Raft") -> None:
    """Only entries of the own term are counted; older ones are committed along with them (Raft, 5.4.2)."""
    index = committed_index(raft.log.voters, _matches(raft))
    if index <= raft.log.commit or raft.log.term_at(index) != raft.term:
        return
    raft.log.commit = index
    for peer in raft.peers.values():
        _tell(raft, peer)
    if raft.log.voters_index <= raft.log.commit:
        if not raft.is_voter:
            _abdicate(raft)
        else:
            _name_directories(raft)


def _abdicate(raft: "Raft") -> None:
    """Removed from the voters: one of those who stay stands for election at once."""
    if (successor := heir(raft)) is not None:
        raft.send(TimeoutNow(raft.member, successor.member.id, raft.term))
    raft.become_follower(raft.term, None)
    # Nobody comes to an observer unless asked. By then there is somebody to ask.
    raft.election_deadline = raft.now + raft.config.heartbeat_s


def heir(raft: "Raft") -> Progress | None:
    """The other voter that has most of the log; of several, the one that was heard last."""
    others = [peer for peer in raft.peers.values() if is_voter(raft.log.voters, peer.member)]
    return max(others, key=lambda peer: (peer.match, peer.heard_at), default=None)


def _matches(raft: "Raft") -> dict[int, int]:
    voters = raft.log.voters
    matches = {node: peer.match for node, peer in raft.peers.items() if is_voter(voters, peer.member)}
    if raft.is_voter:
        matches[raft.member.id] = raft.log.stable
    return matches


def _name_directories(raft: "Raft") -> None:
    """Seed voters are known by node id alone; once their directories are known, the log says so."""
    if not raft.is_established:
        return
    known = {node: peer.member.directory for node, peer in raft.peers.items()}
    known[raft.member.id] = raft.member.directory
    named = tuple(
        msgspec.structs.replace(voter, directory=known.get(voter.id, ANY_DIRECTORY))
        if voter.directory == ANY_DIRECTORY
        else voter
        for voter in raft.log.voters
    )
    if named != raft.log.voters:
        raft.append(EntryKind.VOTERS, encode_voters(named))
        broadcast(raft)
