"""The audit trail in files: a line of JSON per denial, per change of an administrator and per login that failed.

    {"time":"2026-11-19T04:05:06.789Z","principal":"User:ann","host":"10.0.0.7","listener":"SASL","action":"produce",
     "resource":"Topic:orders","verdict":"denied","reason":"WRITE"}

Strangers have a file of their own beside it (STRANGERS): whoever reaches a port can fail as often as they like, and
must not push out what users and administrators did. Each file has a thread, a queue and a rotation.

What comes again within a minute is counted: one line then says how many more there were (`repeated`); so is what comes
beyond the lines of a minute, from one address or user, or from all. When lines come faster than the disk takes them,
some are dropped: the next line that is written says how many (`dropped`).
"""

import contextlib
import json
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ottla.errors import Refusal
from ottla.ports import Clock
from ottla.security.core.audit import TEXT_CHARACTERS_MAX, AuditEvent
from ottla.security.core.principals import Principal
from ottla.security.core.repetition import Repetition
from ottla.security.core.surplus import Surplus
from ottla.security.rotated_file import RotatedFile

__all__ = ["STRANGERS", "AuditFile", "AuditFiles"]

log = logging.getLogger("ottla.audit")

LINES_WAITING_MAX = 10_000
FLUSH_SECONDS = 1.0
STOP_SECONDS = 5.0
STRANGERS = ".strangers"
"""Behind the name of the trail: the name of theirs."""
# Lines of denials and failures in a minute, some 250 bytes each: ten files of 100 MiB hold two days of them.
USERS_LINES_MAX, USER_LINES_MAX = 1_200, 300
STRANGERS_LINES_MAX, ADDRESS_LINES_MAX = 600, 60

Line = tuple[int, AuditEvent, int]
"""When, in ms; what; how many such were left out, or 0 for one that was not."""

Counts = Callable[[int], list[tuple[AuditEvent, int]]]
"""At a time in ms: events, and how many such were left out."""


class AuditFiles:
    """Begins to write at once. Refusal when the trail cannot be opened; where strangers cannot have a file of
    their own, they are in it, too."""

    def __init__(self, path: str, *, size_bytes_max: int, files_max: int, clock: Clock) -> None:
        def opened(name: str, surplus: Surplus) -> AuditFile:
            return AuditFile(RotatedFile(Path(name), size_bytes_max, files_max), surplus, clock)

        of_users = Surplus(
            lines_max=USERS_LINES_MAX, lines_of_one_max=USER_LINES_MAX, one=lambda event: str(event.principal)
        )
        of_strangers = Surplus(
            lines_max=STRANGERS_LINES_MAX, lines_of_one_max=ADDRESS_LINES_MAX, one=lambda event: event.host
        )
        try:
            self.users = self.strangers = opened(path, of_users)
        except OSError as error:
            raise Refusal(f"ottla.audit.log.file={path}: {error.strerror}") from None
        try:
            self.strangers = opened(path + STRANGERS, of_strangers)
        except OSError as error:  # a folder where only the trail may be written: the broker ran so before
            log.error("%s%s: %s; failures of strangers are in the trail itself", path, STRANGERS, error.strerror)

    def record(self, event: AuditEvent) -> None:
        (self.strangers if event.is_of_stranger else self.users).record(event)

    def close(self) -> None:
        """What was recorded before is in the files afterwards, unless their disk hangs."""
        self.users.close()
        if self.strangers is not self.users:
            self.strangers.close()


class AuditFile:
    """One of them."""

    def __init__(self, file: RotatedFile, surplus: Surplus, clock: Clock) -> None:
        self._file = file
        self._surplus = surplus
        self._clock = clock
        self._repetition = Repetition()
        self._lock = threading.Lock()
        self._lines: queue.Queue[Line] = queue.Queue(LINES_WAITING_MAX)
        self._dropped = 0
        self._said_dropped = 0
        self._is_failing = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="audit", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Lines that nobody will read."""
        return self._dropped

    def record(self, event: AuditEvent) -> None:
        now_ms, event = self._clock.wall_ms(), _bounded(event)
        with self._lock:
            left_out = self._repetition.left_out(event, now_ms)
            told = () if left_out is None else (left_out, 0) if left_out else (0,)
            counts = [count for count in told if self._surplus.admits(event, now_ms, count or 1)]
        for count in counts:
            self._put((now_ms, event, count))

    def _put(self, line: Line) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        self._closed.set()
        self._thread.join(STOP_SECONDS)

    # in the thread

    def _write_all(self) -> None:
        while not self._closed.is_set():
            self._write(self._some())
            now_ms = self._clock.wall_ms()
            self._write_counts(now_ms, self._repetition.ended, self._surplus.ended)
        self._write(list(self._rest()))
        now_ms = self._clock.wall_ms()
        self._write_counts(now_ms, lambda _: self._repetition.all_left_out(), lambda _: self._surplus.all_left_out())
        self._file.close()

    def _some(self) -> list[Line]:
        try:
            first = self._lines.get(timeout=FLUSH_SECONDS)
        except queue.Empty:
            return []
        return [first, *self._rest()]

    def _rest(self) -> Iterator[Line]:
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._lines.get_nowait()

    def _write_counts(self, now_ms: int, repeated: Counts, surplus: Counts) -> None:
        with self._lock:
            counts = [each for each in repeated(now_ms) if self._surplus.admits(each[0], now_ms, each[1])]
            counts += surplus(now_ms)
        self._write([(now_ms, event, count) for event, count in counts])

    def _write(self, lines: list[Line]) -> None:
        if not lines:
            return
        try:
            self._file.write(b"".join(self._encoded(line) for line in lines))
            self._is_failing = False
        except OSError as error:
            self._dropped += len(lines)
            if not self._is_failing:
                self._is_failing = True
                log.error("the audit trail cannot be written: %s; lines are dropped until it can", error)

    def _encoded(self, line: Line) -> bytes:
        now_ms, event, left_out = line
        when = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields: dict[str, Any] = {
            "time": when,
            "principal": str(event.principal),
            "host": event.host,
            "listener": event.listener,
            "action": event.action,
            "resource": event.resource,
            "verdict": event.verdict,
            "reason": event.reason,
        }
        if left_out:
            fields["repeated"] = left_out
        if self._dropped > self._said_dropped:
            fields["dropped"], self._said_dropped = self._dropped - self._said_dropped, self._dropped
        # Only ASCII: no text of a client's can end the line, or turn the direction of a terminal.
        return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _bounded(event: AuditEvent) -> AuditEvent:
    texts = (event.principal.name, event.host, event.resource, event.reason)
    if all(len(text) <= TEXT_CHARACTERS_MAX for text in texts):
        return event
    return msgspec.structs.replace(
        event,
        principal=Principal(event.principal.kind, _cut(event.principal.name)),
        host=_cut(event.host),
        resource=_cut(event.resource),
        reason=_cut(event.reason),
    )


def _cut(text: str) -> str:
    left_out = len(text) - TEXT_CHARACTERS_MAX
    return text if left_out <= 0 else f"{text[:TEXT_CHARACTERS_MAX]}… {left_out} more characters"
