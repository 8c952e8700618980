"""The steps from one set of voters to another, one voter at a time. Pure."""

import msgspec

from ottla.raft.messages import Member, Voter, Voters
from ottla.raft.quorum import find

__all__ = ["steps_to_add", "steps_to_remove"]


def steps_to_add(voters: Voters, member: Member, endpoint: str) -> list[Voters]:
    """A node that came back with another directory loses its old vote first: that one's promises are gone."""
    known = find(voters, member.id)
    added = Voter(member.id, member.directory, endpoint)
    if known is None:
        return [(*voters, added)]
    if known.is_member(member):
        named = msgspec.structs.replace(known, directory=member.directory)
        return [] if known == named else [tuple(named if voter == known else voter for voter in voters)]
    others = tuple(voter for voter in voters if voter.id != member.id)
    return [others, (*others, added)]


def steps_to_remove(voters: Voters, node_id: int) -> list[Voters]:
    left = tuple(voter for voter in voters if voter.id != node_id)
    return [left] if len(left) < len(voters) else []
