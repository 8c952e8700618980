"""Arithmetic of voter sets. Pure."""

from collections.abc import Mapping

from ottla.raft.core.messages import Member, Voter, Voters

__all__ = ["Tally", "change_problem", "committed_index", "find", "is_voter", "majority", "tally"]


def majority(voters: Voters) -> int:
    return len(voters) // 2 + 1


def find(voters: Voters, node_id: int) -> Voter | None:
    return next((voter for voter in voters if voter.id == node_id), None)


def is_voter(voters: Voters, member: Member) -> bool:
    return any(voter.is_member(member) for voter in voters)


def committed_index(voters: Voters, matches: Mapping[int, int]) -> int:
    """The highest index that a majority of voters has on disk. `matches`: node id → index."""
    if not voters:
        return 0
    ordered = sorted((matches.get(voter.id, 0) for voter in voters), reverse=True)
    return ordered[majority(voters) - 1]


class Tally:
    WON = "won"
    LOST = "lost"
    OPEN = "open"


def tally(voters: Voters, votes: Mapping[int, bool]) -> str:
    granted = sum(1 for voter in voters if votes.get(voter.id) is True)
    refused = sum(1 for voter in voters if votes.get(voter.id) is False)
    needed = majority(voters)
    if granted >= needed:
        return Tally.WON
    return Tally.LOST if len(voters) - refused < needed else Tally.OPEN


def change_problem(old: Voters, new: Voters) -> str | None:
    """Why `new` may not follow `old`, or None. Majorities must overlap, so one voter is added, removed or changed."""
    if not new:
        return "the quorum would have no voters"
    if len({voter.id for voter in new}) < len(new):
        return "a node id appears twice"
    before, after = {voter.id: voter for voter in old}, {voter.id: voter for voter in new}
    if len(before.keys() ^ after.keys()) > 1:
        return "voters are added and removed one at a time"
    renewed = [node for node in before.keys() & after.keys() if _is_other_member(before[node], after[node])]
    return "a voter with a new directory must be removed before it is added again" if renewed else None


def _is_other_member(old: Voter, new: Voter) -> bool:
    """Setting the directory of a seed voter does not change the member."""
    return not old.is_member(Member(new.id, new.directory))
