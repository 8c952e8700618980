"""What the automata of coordinators ask for: the one vocabulary of groups, transactions and share states. Pure values.

An automaton is pure. It gets a request, or the time, and returns effects; `coordination.runner` performs them in order.

    Reply   answers a request that waits
    Write   appends records: all of them or none
    Wake    asks to be called at a time
    Send    gives a message to other brokers
    Compute has something worked out that would hold the loop
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ottla.coordination.core.records import Record
from ottla.errors import Code

__all__ = ["Compute", "Effect", "Effects", "Record", "Reply", "Send", "Wake", "Write"]


class Reply(NamedTuple):
    """Answer a request. `to` came with the request; it is opaque to the automaton."""

    to: Any
    answer: Any


class Write(NamedTuple):
    """Append all of these records or none.

    `in_force` is called with the last offset as soon as the records are appended: the automaton changes there, at once,
    for whoever asks next. `then` is called with NONE when they are committed, or with the code of the reason why they
    never will be here; an automaton that has not changed by `in_force` must bear either. Without `then` nobody waits,
    and an append that is refused raises its KafkaError out of `perform`.
    """

    records: Sequence[Record]
    then: "Callable[[Code, float], Effects] | None" = None
    in_force: Callable[[int], None] | None = None


class Wake(NamedTuple):
    """Call `tick` at this time or soon after. Earlier times stay: waking too early does no harm."""

    at: float


class Send(NamedTuple):
    """Give this message to other brokers once everything that the automaton has written is committed."""

    message: Any


class Compute(NamedTuple):
    """Work something out away from the loop.

    `begin` is called on the loop when the turn has come, and gives work over values that nobody changes; None: there is
    nothing left to do. `then` is called with its result, also with None, and also when the work failed.
    """

    begin: "Callable[[], Callable[[], Any] | None]"
    then: "Callable[[Any, float], Effects]"


Effect: TypeAlias = Reply | Wake | Write | Send | Compute
Effects: TypeAlias = list[Effect]
