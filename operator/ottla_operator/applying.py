"""Bringing objects to what they should be, and nothing more: what is right already is not written again."""

from collections.abc import Iterable

from ottla_operator.kube import Kind, Kube, Manifest
from ottla_operator.plans.comparison import covers, marked
from ottla_operator.resources.labels import APPLIED

__all__ = ["Applying"]

AS_GOOD_MAX = 10_000


class Applying:
    """Remembers what the API server writes differently, such as quantities, so that it is not applied for ever."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._as_good: dict[str, tuple[str, str]] = {}

    async def bring(self, kind: Kind, manifests: Iterable[Manifest], live: Iterable[Manifest]) -> dict[str, Manifest]:
        """Name → the object as it is now, of those that were wanted."""
        there = {one["metadata"]["name"]: one for one in live}
        brought = {}
        for manifest in map(marked, manifests):
            name = manifest["metadata"]["name"]
            brought[name] = await self._bring_one(kind, manifest, there.get(name))
        return brought

    async def _bring_one(self, kind: Kind, manifest: Manifest, live: Manifest | None) -> Manifest:
        mark = manifest["metadata"]["annotations"][APPLIED]
        if live is not None:
            same = live["metadata"].get("annotations", {}).get(APPLIED) == mark
            if same and (covers(live, manifest) or self._as_good.get(live["metadata"]["uid"]) == _form(live, mark)):
                return live
        applied = await self._kube.apply(manifest, kind)
        if not covers(applied, manifest):
            if len(self._as_good) >= AS_GOOD_MAX:
                self._as_good.clear()
            self._as_good[applied["metadata"]["uid"]] = _form(applied, mark)
        return applied


def _form(live: Manifest, mark: str) -> tuple[str, str]:
    """A generation moves with the spec only, a resource version with the status too."""
    metadata = live["metadata"]
    return mark, str(metadata.get("generation") or metadata["resourceVersion"])
