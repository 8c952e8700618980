"""How many connections may be open: in all, at one listener (max.connections, and the same for a listener), from one
address (max.connections.per.ip), and as the system's limit of open files allows. Beyond the first three a connection is
closed, beyond the last it waits."""

from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["Admission"]


class Admission:
    """Shared by all listeners of a node. `setting` gives the value in force now, `of_listener` what is set for one
    listener alone."""

    def __init__(
        self, setting: Callable[[str], Any], of_listener: Callable[[str, str], Any], *, files_max: int
    ) -> None:
        self._setting = setting
        self._of_listener = of_listener
        self._files_max = files_max
        self._open: Counter[str] = Counter()
        self._at: Counter[str] = Counter()
        self._count = 0

    @property
    def room(self) -> int:
        """Connections that there are files for."""
        return self._files_max - self._count

    def enter(self, host: str, listener: str) -> str | None:
        """Count a new connection; why it must be closed again, or None."""
        self._open[host] += 1
        self._at[listener] += 1
        self._count += 1
        if self._count > self._setting("max.connections"):
            return "max.connections is reached"
        listener_max = self._of_listener(listener, "max.connections")
        if listener_max is not None and self._at[listener] > listener_max:
            return f"listener.name.{listener.lower()}.max.connections is reached"
        if self._open[host] > self._limit_of(host):
            return f"max.connections.per.ip is reached for {host}"
        return None

    def leave(self, host: str, listener: str) -> None:
        self._open[host] -= 1
        self._at[listener] -= 1
        self._count -= 1
        if not self._open[host]:
            del self._open[host]

    def _limit_of(self, host: str) -> int:
        overrides: str = self._setting("max.connections.per.ip.overrides") or ""
        for override in filter(None, overrides.split(",")):
            name, _, limit = override.strip().rpartition(":")
            if name == host:
                return int(limit)
        return int(self._setting("max.connections.per.ip"))
