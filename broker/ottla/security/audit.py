"""The audit trail in a file: a line of JSON per denial, per change of an administrator and per login that failed.

    {"time":"2026-11-19T04:05:06.789Z","principal":"User:ann","host":"10.0.0.7","listener":"SASL","action":"produce",
     "resource":"Topic:orders","verdict":"denied","reason":"WRITE"}

A thread of its own writes them. What comes again within a minute is counted: one line then says how many more there
were (`repeated`). When lines come faster than the disk takes them, some are dropped: the next line that is written says
how many (`dropped`).
"""

import contextlib
import json
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from ottla.errors import Refusal
from ottla.ports import Clock
from ottla.security.core.audit import TEXT_CHARACTERS_MAX, AuditEvent
from ottla.security.core.principals import Principal
from ottla.security.core.repetition import Repetition

__all__ = ["AuditFile"]

log = logging.getLogger("ottla.audit")

LINES_WAITING_MAX = 10_000
FLUSH_SECONDS = 1.0
STOP_SECONDS = 5.0

Line = tuple[int, AuditEvent, int]
"""When, in ms; what; how many such were left out, or 0 for one that was not."""


class AuditFile:
    """Begins to write at once. Refusal when the file cannot be opened."""

    def __init__(self, path: str, *, size_bytes_max: int, files_max: int, clock: Clock) -> None:
        self._file = _Rotated(Path(path), size_bytes_max, files_max)
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
        if left_out is None:
            return
        if left_out:
            self._put((now_ms, event, left_out))
        self._put((now_ms, event, 0))

    def _put(self, line: Line) -> None:
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """What was recorded before is in the file afterwards, unless its disk hangs."""
        self._closed.set()
        self._thread.join(STOP_SECONDS)

    # in the thread

    def _write_all(self) -> None:
        while not self._closed.is_set():
            self._write(self._some())
            self._write_counts(self._repetition.ended)
        self._write(list(self._rest()))
        self._write_counts(lambda now_ms: self._repetition.all_left_out())
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

    def _write_counts(self, of: Callable[[int], list[tuple[AuditEvent, int]]]) -> None:
        now_ms = self._clock.wall_ms()
        with self._lock:
            found = of(now_ms)
        self._write([(now_ms, event, count) for event, count in found])

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


class _Rotated:
    """`path`, and older ones as `path.1`, `path.2`… Only its owner may read it."""

    def __init__(self, path: Path, size_bytes_max: int, files_max: int) -> None:
        self._path = path
        self._size_bytes_max = size_bytes_max
        self._files_max = files_max
        try:
            self._file = self._open()
        except OSError as error:
            raise Refusal(f"ottla.audit.log.file={path}: {error.strerror}") from None
        self._size = self._file.tell()

    def _open(self) -> IO[bytes]:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "ab", buffering=0)

    def write(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._size_bytes_max:
            self._rotate()
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._size += len(data)

    def _rotate(self) -> None:
        self._file.close()
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._files_max))]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)
        if len(names) == 1:
            self._path.unlink(missing_ok=True)
        self._file = self._open()
        self._size = 0

    def close(self) -> None:
        self._file.close()
