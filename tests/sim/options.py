"""What a history contains beside the first simulator's faults.

A kept seed names its options, so that what is added later stays off for it. Whatever belongs to an option is drawn from
a random stream of its own (`World.stream`): with the option off, the other draws are those of before it existed.
"""

from dataclasses import dataclass

__all__ = ["NARROW", "WIDE", "Options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    fetching: bool = False
    """Consumers ask through the Fetch API; what they get is read from the files when it is sent."""
    cleaning: bool = False
    """Compaction, retention and DeleteRecords; small segments of internal topics."""
    cold: bool = False
    """Reads that are not in memory."""
    pauses: bool = False
    """Whole processes that do not run for a while, and data loops that take their time."""
    blackouts: bool = False
    """In some histories every append is flushed before it counts; then any number of nodes lose power at once."""


NARROW = Options()
WIDE = Options(fetching=True, cleaning=True, cold=True, pauses=True, blackouts=True)
