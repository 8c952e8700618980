"""What is recorded again and again is told once in a while, with a count. Pure."""

from ottla.security.core.audit import AuditEvent

__all__ = ["Repetition"]

WINDOW_MS = 60_000
KNOWN_MAX = 10_000

LeftOut = tuple[AuditEvent, int]


class Repetition:
    """Denials and failures only: every change is told."""

    def __init__(self, *, window_ms: int = WINDOW_MS, known_max: int = KNOWN_MAX) -> None:
        self._window_ms = window_ms
        self._known_max = known_max
        self._known: dict[AuditEvent, tuple[int, int]] = {}  # when it was told, and how many were left out since
        self._crowded_out: list[LeftOut] = []

    def left_out(self, event: AuditEvent, now_ms: int) -> int | None:
        """None: it need not be told now. Otherwise how many such were left out before it."""
        if event.verdict == "allowed":
            return 0
        told_ms, count = self._known.get(event, (None, 0))
        if told_ms is not None and 0 <= now_ms - told_ms < self._window_ms:
            self._known[event] = told_ms, count + 1
            return None
        if told_ms is None and len(self._known) >= self._known_max:
            self._crowd_out()
        self._known[event] = now_ms, 0
        return count

    def _crowd_out(self) -> None:
        event, (_, count) = next(iter(self._known.items()))
        del self._known[event]
        if count:
            self._crowded_out.append((event, count))

    def ended(self, now_ms: int) -> list[LeftOut]:
        """Windows that are over, with how many were left out in them."""
        over = [event for event, (told, _) in self._known.items() if not 0 <= now_ms - told < self._window_ms]
        return self._told([(event, self._known.pop(event)[1]) for event in over])

    def all_left_out(self) -> list[LeftOut]:
        found = [(event, count) for event, (_, count) in self._known.items()]
        self._known.clear()
        return self._told(found)

    def _told(self, found: list[LeftOut]) -> list[LeftOut]:
        crowded_out, self._crowded_out = self._crowded_out, []
        return crowded_out + [(event, count) for event, count in found if count]
