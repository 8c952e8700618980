"""What every handler gets besides the request: the call. What else it needs, it names (see `binding`)."""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.api.allowances import Allowance
from ottla.api.change_outcomes import Outcomes
from ottla.api.client import Client
from ottla.api.pacing import LongWork, Turn
from ottla.errors import KafkaError
from ottla.ports import Part

if TYPE_CHECKING:
    from ottla.api.registry import Api

__all__ = ["Answer", "Call", "Deferred"]

Answer = list[Part] | None
"""The parts of a response frame, some perhaps to be read when they are sent; None when the protocol wants no answer."""

RESPONSE_HEADER = struct.Struct(">ii")


class Deferred(ABC):
    """An answer that comes later. It goes out in the very turn of the loop in which it is made: a future would take
    turn after turn, and acks=all waits for every one of them."""

    __slots__ = ("_deliver", "is_over")

    def __init__(self) -> None:
        self.is_over = False
        self._deliver: Callable[[], None] | None = None

    @abstractmethod
    def make(self) -> Answer:
        """Called once, after `finish`. Raises what a handler may raise."""

    def close(self) -> None:  # noqa: B027 - nothing to give back is the plain case
        """The waiting is over, or never began: stop timers, leave lists."""

    def begin_waiting(self) -> None:  # noqa: B027 - one that others settle needs nothing
        """Start timers, watch what it waits for. Called once, by `start`."""

    def start(self, deliver: Callable[[], None]) -> None:
        """Somebody waits from now on: `deliver` is called when the answer can be made."""
        if self.is_over:
            deliver()
        else:
            self._deliver = deliver
            self.begin_waiting()

    def finish(self) -> None:
        if not self.is_over:
            deliver = self._deliver
            self.cancel()
            if deliver is not None:
                deliver()

    def cancel(self) -> None:
        """Nobody wants it any longer."""
        self.is_over = True
        self._deliver = None  # which refers to this answer: a cycle per request would keep the collector busy
        self.close()


class Call:
    """One request on its way: who asks, in which version, and how to answer.

    `allowance` is there only for clients that have a quota; then `throttle_ms` says, once the answer is made, how long
    the connection has to pause.
    """

    __slots__ = (
        "allowance",
        "api",
        "client",
        "client_id",
        "correlation_id",
        "counted_bytes",
        "is_large",
        "is_under_way",
        "kept_bytes",
        "long_work",
        "made_bytes",
        "on_close",
        "outcomes",
        "refused",
        "request_bytes",
        "spent_s",
        "throttle_ms",
        "turn",
        "version",
    )

    request_bytes: int  # these two only with an allowance
    spent_s: Callable[[], float]

    def __init__(
        self,
        long_work: LongWork,
        api: "Api",
        version: int,
        correlation_id: int,
        client_id: str | None,
        client: Client,
        on_close: dict[object, Callable[[], None]] | None = None,
    ) -> None:
        self.long_work = long_work
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.client = client
        self.on_close = on_close
        """Called when the client's connection ends; None where there is no connection."""
        self.allowance: Allowance | None = None
        self.refused: set[str] | None = None
        """Resources that the client may not use, as the audit trail names them."""
        self.outcomes: Outcomes | None = None
        """Of a change that the audit trail tells of: what the answer says."""
        self.throttle_ms = 0
        self.is_large = False
        """More elements than are handled at once: the handler has to work in slices."""
        self.turn: Turn | None = None
        """Of a large request, already taken, or of a long one; the handler may give it back before its end."""
        self.is_under_way = False
        """It had a slice."""
        self.made_bytes = 0
        """Of the answer, by a handler that works in slices."""
        self.counted_bytes = 0
        """Of these, in the memory of answers."""
        self.kept_bytes = 0
        """Of the request, that the handler copied to have them until the answer: counted until then."""

    def forget_made(self) -> None:
        """What was made of the answer is gone, or somebody else counts it from now on."""
        if self.counted_bytes:
            self.long_work.answers.change(-self.counted_bytes)
        self.made_bytes = self.counted_bytes = 0

    def close(self) -> None:
        """The handler is through: give back what it worked with."""
        self.forget_made()
        if self.turn is not None:
            self.turn.give_back()

    def reply(self, **fields: Any) -> Answer:
        """The response in this call's version from keyword fields, as wire.writer describes."""
        if self.allowance is not None:
            fields["throttle_time"] = self.settle()
        if self.outcomes is not None:
            self.outcomes.answered(fields)
        parts: list[bytes] = []
        self.api.writer(self.version)(parts, fields)
        return self.frame(parts)

    def settle(self, throttle_ms: int = 0) -> int:
        """The throttle time for the answer: the longer of what the API's own quota and the request quota ask for."""
        request = self.allowance.request if self.allowance is not None else None
        if request is not None:
            throttle_ms = max(throttle_ms, request.charge(self.spent_s() * 100.0))
        self.throttle_ms = max(self.throttle_ms, throttle_ms)
        return self.throttle_ms

    def frame(self, parts: Sequence[Part]) -> Answer:
        """The response frame around an encoded body."""
        flexible = self.api.flexible_response_header(self.version)
        size = 4 + flexible + sum(map(len, parts))
        head = RESPONSE_HEADER.pack(size, self.correlation_id)
        return [head + b"\0" if flexible else head, *parts]

    def failure(self, error: KafkaError) -> Answer:
        """The answer to a request that failed as a whole; None where the response has no place for an error."""
        if not self.api.has_error_code(self.version):
            return None
        return self.reply(error_code=error.code, error_message=error.message)
