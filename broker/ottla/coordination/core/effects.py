"""Effects: what the state machines of groups, transactions and share states return. Pure values.

A state machine is pure. It takes a request, or the time, and returns effects; `coordination.runner` performs them in
order.

    Reply     answers a waiting request
    Write     appends records: all of them or none
    Wake      requests a call at a time
    Send      sends a message to other brokers
    Compute   runs work in a thread that would hold the loop
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ottla.coordination.core.records import Record
from ottla.errors import Code

__all__ = ["Compute", "Effect", "Effects", "Record", "Reply", "Send", "Wake", "Write"]


class Reply(NamedTuple):
    """Answer a request. `to` came with the request; it is opaque to the state machine."""

    to: Any
    answer: Any


class Write(NamedTuple):
    """Append all of these records or none.

    `on_appended` is called with the last offset as soon as the records are appended; there the state machine changes
    its state. `then` is called with NONE when they are committed, or with an error code when this broker cannot commit
    them. Without `then`, an append that is refused raises its KafkaError out of `perform`.
    """

    records: Sequence[Record]
    then: "Callable[[Code, float], Effects] | None" = None
    on_appended: Callable[[int], None] | None = None


class Wake(NamedTuple):
    """Call `tick` at this time or soon after. An earlier time that is set already stays: an early call does no harm."""

    at: float


class Send(NamedTuple):
    """Send this message to other brokers once everything that the state machine has written is committed."""

    message: Any


class Compute(NamedTuple):
    """Run work in a thread.

    `begin` is called on the loop when the thread is free. It returns the work, which reads immutable values only, or
    None if nothing is left to do. `then` is called with the result: None without work, and when the work failed.
    """

    begin: "Callable[[], Callable[[], Any] | None]"
    then: "Callable[[Any, float], Effects]"


Effect: TypeAlias = Reply | Wake | Write | Send | Compute
Effects: TypeAlias = list[Effect]
