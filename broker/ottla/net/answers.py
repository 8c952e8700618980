"""The answers of one connection, which go out in the order of their requests."""

import asyncio
from collections import deque
from typing import Any

from ottla.api.call import Answer
from ottla.net.outbox import Outbox
from ottla.ports import Clock

__all__ = ["Answers", "Slot"]

WAITING = object()
PENDING_ANSWERS_MAX = 100
HELD_BYTES_MAX = 1024 * 1024  # of answers that are ready and wait for those before them


class Slot:
    """The place of one answer in the order of answers."""

    __slots__ = ("answer",)

    answer: Any


class Answers:
    """One that is ready waits for those before it."""

    __slots__ = ("_clock", "_held_bytes", "_outbox", "_quiet_since", "_slots", "_transport")

    def __init__(self, outbox: Outbox, transport: asyncio.Transport, clock: Clock) -> None:
        self._outbox = outbox
        self._transport = transport
        self._clock = clock
        self._slots: deque[Slot] = deque()
        self._held_bytes = 0  # of answers that are ready and wait for those before them
        self._quiet_since = clock.monotonic()

    @property
    def have_room(self) -> bool:
        """For one more, and the client takes what it gets."""
        return (
            self._outbox.is_writable
            and self._held_bytes < HELD_BYTES_MAX
            and len(self._slots) < PENDING_ANSWERS_MAX
            and not self._transport.is_closing()
        )

    @property
    def are_pending(self) -> bool:
        return bool(self._slots)

    @property
    def are_taken(self) -> bool:
        """The client has all that it asked for."""
        return not self._slots and self._outbox.is_empty

    def are_idle_since(self, deadline: float) -> bool:
        return self._quiet_since < deadline and not self._slots

    def expect(self) -> Slot:
        """A place behind all others."""
        slot = Slot()
        slot.answer = WAITING  # without a constructor, which would be one more call for every request
        self._slots.append(slot)
        return slot

    def fill(self, slot: Slot, answer: Answer) -> None:
        """Small answers are sent together when all frames at hand are handled, large ones at once."""
        slot.answer = answer
        if answer is not None:
            self._held_bytes += sum(map(len, answer))
            if self._held_bytes >= HELD_BYTES_MAX:
                self.flush()

    def flush(self) -> None:
        """Send every answer that has none before it waiting."""
        slots = self._slots
        if not slots or slots[0].answer is WAITING or self._transport.is_closing():
            return
        parts: list[Any] = []
        while slots and (answer := slots[0].answer) is not WAITING:
            slots.popleft()
            if answer:
                parts += answer
        if parts:
            self._held_bytes -= sum(map(len, parts))
            self._outbox.send(parts)
        self._quiet_since = self._clock.monotonic()

    def close(self) -> None:
        self._slots.clear()
