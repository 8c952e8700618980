"""What the time of a consumer group's member can run out for. Pure."""

from enum import Enum

__all__ = ["Timer"]


class Timer(Enum):
    """Only members of the classic protocol have to join and sync."""

    SESSION = "its session expired"
    REBALANCE = "it did not give up its partitions in time"
    JOIN = "it did not join again in time"
    SYNC = "it did not sync in time"
