"""Which nodes may be added to the voters or removed from them, and the voter sets in between. Pure.

Kafka's requests name a member: a node with its directory. Operators may name a node alone (ANY_DIRECTORY); such a
request is idempotent.
"""

import msgspec

from ottla.errors import Code, KafkaError
from ottla.ids import uuid_text
from ottla.raft.core.messages import ANY_DIRECTORY, Member, Voter, Voters
from ottla.raft.core.progress import Progress
from ottla.raft.core.quorum import find

__all__ = ["addition_waits_for", "check_addition", "check_removal", "steps_to_add", "steps_to_remove"]

# A voter that is far behind counts towards the majority but cannot acknowledge new entries.
ENTRIES_BEHIND_MAX = 1_000


def check_addition(voters: Voters, asked: Member) -> None:
    """KafkaError for a node that is a voter already; an operator may add it again, with its new directory."""
    known = find(voters, asked.id)
    if known is None or asked.directory == ANY_DIRECTORY:
        return
    problem = f"Node {asked.id} is a voter already"
    if not known.is_member(asked):
        problem += f", with directory {uuid_text(known.directory)}; remove that one first"
    raise KafkaError(Code.duplicate_voter, f"{problem}.")


def addition_waits_for(asked: Member, peer: Progress | None, *, commit: int, heard_since: float) -> str | None:
    """Why the node that follows as `peer` may not vote yet; None when it may."""
    node = f"node {asked.id}"
    if peer is None or peer.heard_at < heard_since:
        return f"{node} does not follow the metadata log"
    if asked.directory not in (ANY_DIRECTORY, peer.member.directory):
        has, wanted = uuid_text(peer.member.directory), uuid_text(asked.directory)
        return f"{node} follows the metadata log with directory {has}, not {wanted}"
    if peer.match + ENTRIES_BEHIND_MAX < commit:
        return f"{node} has not caught up with the metadata log"
    return None


def check_removal(voters: Voters, asked: Member) -> None:
    """KafkaError for a member that is no voter, and for the only voter."""
    known = find(voters, asked.id)
    if known is not None and len(voters) == 1:
        raise KafkaError(Code.voter_not_found, f"Node {asked.id} is the only voter; add another one first.")
    if asked.directory == ANY_DIRECTORY or (known is not None and known.is_member(asked)):
        return
    problem = f"Node {asked.id} with directory {uuid_text(asked.directory)} is not a voter"
    raise KafkaError(Code.voter_not_found, f"{problem}; the voters are {_listed(voters)}.")


def _listed(voters: Voters) -> str:
    return ", ".join(f"{voter.id} ({uuid_text(voter.directory)})" for voter in voters)


def steps_to_add(voters: Voters, member: Member, endpoint: str) -> list[Voters]:
    """A node that returned with another directory is removed first: the log and vote it had as a voter are lost."""
    known = find(voters, member.id)
    added = Voter(member.id, member.directory, endpoint)
    if known is None:
        return [(*voters, added)]
    if known.is_member(member):
        replaced = msgspec.structs.replace(known, directory=member.directory)
        return [] if known == replaced else [tuple(replaced if voter == known else voter for voter in voters)]
    others = tuple(voter for voter in voters if voter.id != member.id)
    return [others, (*others, added)]


def steps_to_remove(voters: Voters, node_id: int) -> list[Voters]:
    remaining = tuple(voter for voter in voters if voter.id != node_id)
    return [remaining] if len(remaining) < len(voters) else []
