"""What a group asks its shard to do. Pure values."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ottla.coordination.core.records import Record
from ottla.errors import Code

__all__ = ["Effect", "Effects", "Record", "Reply", "Wake", "Write"]


class Reply(NamedTuple):
    """Answer a request. `to` is what the shell gave with the request: the group does not look inside."""

    to: Any
    answer: Any


class Wake(NamedTuple):
    """Call `tick` at this time or soon after. Earlier wishes stay: a group forgets nothing by waking too early."""

    at: float


class Write(NamedTuple):
    """Append all of these records or none. `then` is told when they are committed, or why they never will be here.

    The group must be in a state that bears either, for others may ask it before `then` is called. A group that changes
    only by what is in the log gives `in_force`: it is called with the last offset as soon as the records are appended.
    """

    records: Sequence[Record]
    then: "Callable[[Code, float], Effects]"
    in_force: Callable[[int], None] | None = None


Effect: TypeAlias = Reply | Wake | Write
Effects: TypeAlias = list[Effect]
