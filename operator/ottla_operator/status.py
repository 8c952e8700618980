"""Telling the API server what was found, only when it has changed."""

from typing import Any

import msgspec

from ottla_operator.kube import Kind, Kube
from ottla_operator.resources.model import Metadata, Status

__all__ = ["Reporting"]

REMEMBERED_MAX = 20_000


class Reporting:
    """Remembers what it wrote: until the watch brings the object back, the copy at hand has the status from before."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._written: dict[str, tuple[str, dict[str, Any]]] = {}

    async def report(self, kind: Kind, about: Metadata, *, before: Status | None, now: Status) -> bool:
        """True when it was written."""
        status = msgspec.to_builtins(now)
        if before is not None and msgspec.to_builtins(before) == status:
            return False
        seen = (about.resource_version, status)
        if self._written.get(about.uid) == seen:
            return False
        await self._kube.report(kind, namespace=about.namespace, name=about.name, status=status)
        if len(self._written) >= REMEMBERED_MAX:
            self._written.clear()
        self._written[about.uid] = seen
        return True
