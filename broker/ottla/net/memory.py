"""Bytes under way on all connections of a node, counted and bounded: of requests that arrive, of answers not yet taken.

Requests: a frame that does not fit into the shared buffer reserves its claimed size before it is read. When there is no
room its connection waits, first come, first served; one frame that is larger than the limit is let in alone.

Answers: nobody waits. When clients leave too much unread, those that take nothing lose their connections.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Protocol

__all__ = ["AnswerMemory", "Receiver", "RequestMemory", "Sender"]

LARGE_BYTES = 8 << 20  # of one frame: more than the allocator needs to keep when it is gone
PROGRESS_SECONDS = 5.0  # between two looks at frames under way
PROGRESS_BYTES_MIN = 64 * 1024  # what must have come of a frame since the last look, while others wait for memory
PLENTY_LOOK_SECONDS, PLENTY_LOOKS_MAX = 0.1, 3  # of a large answer that waits for clients to take others
STALLED_SECONDS_MAX = 1.0  # for a client that takes nothing while there is too much unread


class Receiver(Protocol):
    """A connection whose request is under way."""

    @property
    def received_bytes(self) -> int:
        """Of all requests so far."""

    def close(self, reason: str) -> None: ...


class RequestMemory:
    """Invariant: used <= limit, but for a single frame and for what `keep` was told of."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._waiting: deque[tuple[int, Receiver, Callable[[], None]]] = deque()
        self._progress: dict[Receiver, int] = {}
        self._looked_at = 0.0
        self._was_scarce = False

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    def reserve(self, size: int, receiver: Receiver, resume: Callable[[], None]) -> bool:
        """False when it has to wait: `resume` is called when it is worth to ask again."""
        if self._waiting or not self._fits(size):
            self._waiting.append((size, receiver, resume))
            return False
        self.keep(size)
        self._progress[receiver] = -1
        return True

    def was_scarce(self) -> bool:
        """As with answers."""
        was, self._was_scarce = self._was_scarce, False
        return was and self._used_bytes <= self._limit_bytes // 2

    def keep_large(self, size: int) -> None:
        """A request that is decoded into many times its size."""
        self.keep(size)
        self._was_scarce = True

    def keep(self, size: int) -> None:
        """Count what is in memory already."""
        self._used_bytes += size
        self._was_scarce |= self._used_bytes > self._limit_bytes // 2

    def release(self, size: int, receiver: Receiver | None = None) -> None:
        self._used_bytes -= size
        self._was_scarce |= size >= LARGE_BYTES
        if receiver is not None:
            self._progress.pop(receiver, None)
        self._wake()

    def forget(self, receiver: Receiver) -> None:
        """It does not wait any more."""
        if any(waiting is receiver for _, waiting, _ in self._waiting):
            self._waiting = deque(entry for entry in self._waiting if entry[1] is not receiver)
            self._wake()

    def close_the_slow(self, now: float) -> None:
        """Whoever holds memory while others wait for it must get on with its frame."""
        if now - self._looked_at < PROGRESS_SECONDS:
            return
        self._looked_at = now
        for receiver, before in list(self._progress.items()):
            received = receiver.received_bytes
            if self._waiting and before >= 0 and received - before < PROGRESS_BYTES_MIN:
                receiver.close("its request came too slowly while others waited for memory (queued.max.request.bytes)")
            else:
                self._progress[receiver] = received

    def _fits(self, size: int) -> bool:
        return self._used_bytes + size <= self._limit_bytes or self._used_bytes == 0

    def _wake(self) -> None:
        """Resuming reserves: the queue is left before, so that the one who asks again is not behind itself."""
        while self._waiting and self._fits(self._waiting[0][0]):
            size, receiver, resume = self._waiting.popleft()
            self.keep(size)
            self._progress[receiver] = -1
            resume()


class Sender(Protocol):
    """The sending side of a connection."""

    @property
    def held_bytes(self) -> int: ...
    def abort(self, reason: str) -> None: ...


class AnswerMemory:
    """What all clients together have not taken yet. The limit is soft: beyond twice as much the worst goes at once."""

    def __init__(self, limit_bytes: int, clock: Callable[[], float]) -> None:
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._stalled: dict[Sender, float] = {}
        self._was_scarce = False
        self._plenty: asyncio.Event | None = None
        self._taken_bytes = 0  # by clients, ever
        self.held_bytes = 0

    @property
    def is_scarce(self) -> bool:
        return self.held_bytes > self._limit_bytes // 2

    def was_scarce(self) -> bool:
        """Since this was asked last; then the allocator has more free memory than it will need soon."""
        was, self._was_scarce = self._was_scarce, False
        return was and not self.is_scarce

    def change(self, by_bytes: int) -> None:
        self.held_bytes += by_bytes
        self._taken_bytes -= min(by_bytes, 0)
        self._was_scarce |= self.is_scarce
        if self._plenty is not None and not self.is_scarce:
            self._plenty.set()
        if by_bytes > 0 and self.held_bytes > self._limit_bytes and self._stalled:
            self._relieve()

    async def until_plenty(self) -> None:
        """Before a large answer is made, as long as clients take others. Not for long: those behind it wait as well."""
        taken_before = -1
        for _ in range(PLENTY_LOOKS_MAX):
            if not self.is_scarce or self._taken_bytes == taken_before:
                break
            taken_before = self._taken_bytes
            self._plenty = self._plenty or asyncio.Event()
            self._plenty.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._plenty.wait(), PLENTY_LOOK_SECONDS)

    def stalled(self, sender: Sender) -> None:
        self._stalled.setdefault(sender, self._clock())

    def flowing(self, sender: Sender) -> None:
        self._stalled.pop(sender, None)

    def _relieve(self) -> None:
        now = self._clock()
        for sender in sorted(self._stalled, key=lambda each: each.held_bytes, reverse=True):
            must = self.held_bytes > 2 * self._limit_bytes
            if must or now - self._stalled[sender] >= STALLED_SECONDS_MAX:
                sender.abort("it does not take its answers, and memory for them is scarce (ottla.answers.max.bytes)")
            if self.held_bytes <= self._limit_bytes:
                break
