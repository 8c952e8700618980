"""Writes the status of an object when it has changed."""

from typing import Any, TypeVar, cast

import msgspec

from ottla_operator.kube.client import Kind, Kube
from ottla_operator.resources.model import Metadata, Status

__all__ = ["StatusWriter"]

REMEMBERED_MAX = 20_000
Known = TypeVar("Known", bound=Status | None)


class StatusWriter:
    """Remembers what it wrote: until the watch brings the object back, the copy at hand has the former status."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._written: dict[str, tuple[str, Status]] = {}

    def known(self, about: Metadata, copy: Known) -> Known:
        """The status that the object has: what was written since this copy of it, or what the copy says."""
        version, status = self._written.get(about.uid, ("", copy))
        return cast(Known, status) if version == about.resource_version else copy

    async def write(self, kind: Kind, about: Metadata, *, before: Status | None, now: Status) -> bool:
        """True when it had changed. `before`: what is known."""
        if before == now:
            return False
        status: dict[str, Any] = msgspec.to_builtins(now)
        await self._kube.apply_status(kind, about, status)
        if len(self._written) >= REMEMBERED_MAX:
            self._written.clear()
        self._written[about.uid] = (about.resource_version, now)
        return True
