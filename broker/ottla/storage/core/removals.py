"""Deleted files and folders that wait for their delay before they are removed. Pure."""

from collections.abc import Iterable

__all__ = ["Removals"]


class Removals:
    """Paths with the time from which they may be removed."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, paths: Iterable[str], *, due_ms: int) -> None:
        self._waiting.extend((due_ms, path) for path in paths)

    def take_due(self, now_ms: int) -> list[str]:
        """The paths whose delay is over; the caller removes them."""
        due = [path for due_ms, path in self._waiting if due_ms <= now_ms]
        if due:
            self._waiting = [entry for entry in self._waiting if entry[0] > now_ms]
        return due
