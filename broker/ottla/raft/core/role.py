"""The roles of a member; `core` draws how they follow each other."""

from enum import Enum

__all__ = ["Role"]


class Role(Enum):
    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"
