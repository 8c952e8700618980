"""Denials and failures beyond so many lines in a minute are counted, and told in one line. Pure."""

from collections.abc import Callable

from ottla.security.core.audit import AuditEvent
from ottla.security.core.principals import ANONYMOUS

__all__ = ["Surplus"]

WINDOW_MS = 60_000
TOLD_APART_MAX = 10_000  # addresses and names

Told = tuple[AuditEvent, int]


class Surplus:
    """`one` says what an event counts for, besides all together. Changes are never left out."""

    def __init__(
        self, *, lines_max: int, lines_of_one_max: int, one: Callable[[AuditEvent], str], window_ms: int = WINDOW_MS
    ) -> None:
        self._lines_max = lines_max
        self._lines_of_one_max = lines_of_one_max
        self._one = one
        self._window_ms = window_ms
        self._began_ms: int | None = None
        self._lines: dict[str, int] = {}
        self._total = 0
        self._left_out = 0
        self._denials = 0
        self._hosts: set[str] = set()
        self._names: set[str] = set()
        self._over: list[Told] = []

    def admits(self, event: AuditEvent, now_ms: int, count: int = 1) -> bool:
        """Whether there is a line for it. Otherwise `count` such events are counted."""
        if event.verdict == "allowed":
            return True
        self._move(now_ms)
        one = self._one(event)
        lines = self._lines.get(one, 0)
        if self._total < self._lines_max and lines < self._lines_of_one_max:
            self._lines[one] = lines + 1
            self._total += 1
            return True
        self._leave_out(event, count)
        return False

    def _leave_out(self, event: AuditEvent, count: int) -> None:
        self._left_out += count
        self._denials += event.verdict == "denied"
        for seen, what in ((self._hosts, event.host), (self._names, str(event.principal))):
            if len(seen) < TOLD_APART_MAX:
                seen.add(what)

    def _move(self, now_ms: int) -> None:
        if self._began_ms is None or not 0 <= now_ms - self._began_ms < self._window_ms:
            self._end()
            self._began_ms = now_ms

    def _end(self) -> None:
        if self._left_out:
            self._over.append((self._summary(), self._left_out))
        self._began_ms, self._total, self._left_out, self._denials = None, 0, 0, 0
        self._lines, self._hosts, self._names = {}, set(), set()

    def _summary(self) -> AuditEvent:
        hosts, names = _number(self._hosts, "address", "addresses"), _number(self._names, "name", "names")
        return AuditEvent(
            principal=ANONYMOUS,
            host=next(iter(self._hosts)) if len(self._hosts) == 1 else "",
            listener="",
            action="many",
            resource="",
            verdict="denied" if self._denials else "failed",
            reason=f"{self._left_out} more from {hosts} under {names}",
        )

    def ended(self, now_ms: int) -> list[Told]:
        """What is to be said of minutes that are over, with how many events each leaves out."""
        if self._began_ms is not None and not 0 <= now_ms - self._began_ms < self._window_ms:
            self._end()
        over, self._over = self._over, []
        return over

    def all_left_out(self) -> list[Told]:
        self._end()
        return self.ended(0)


def _number(of: set[str], one: str, several: str) -> str:
    more = " or more" if len(of) >= TOLD_APART_MAX else ""
    return f"{len(of)}{more} {one if len(of) == 1 else several}"
