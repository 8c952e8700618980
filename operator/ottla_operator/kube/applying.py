"""Server-side apply of objects that differ from their manifest; the others are not written."""

from collections.abc import Iterable

from ottla_operator.kube.client import Kind, Kube, Manifest
from ottla_operator.plans.comparison import covers, marked
from ottla_operator.resources.labels import APPLIED

__all__ = ["Applier"]

EQUIVALENT_MAX = 10_000


class Applier:
    """Remembers what the API server writes differently, such as quantities, so that it is not applied at each run."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._equivalent: dict[str, tuple[str, str]] = {}

    async def apply(self, kind: Kind, manifests: Iterable[Manifest], live: Iterable[Manifest]) -> dict[str, Manifest]:
        """Name → the object as it is now, of each manifest. `live`: those that exist."""
        existing = {one["metadata"]["name"]: one for one in live}
        applied = {}
        for manifest in map(marked, manifests):
            name = manifest["metadata"]["name"]
            applied[name] = await self._apply_one(kind, manifest, existing.get(name))
        return applied

    async def _apply_one(self, kind: Kind, manifest: Manifest, live: Manifest | None) -> Manifest:
        mark = manifest["metadata"]["annotations"][APPLIED]
        if live is not None:
            same = live["metadata"].get("annotations", {}).get(APPLIED) == mark
            if same and (covers(live, manifest) or self._equivalent.get(live["metadata"]["uid"]) == _form(live, mark)):
                return live
        applied = await self._kube.apply(manifest, kind)
        if not covers(applied, manifest):
            if len(self._equivalent) >= EQUIVALENT_MAX:
                self._equivalent.clear()
            self._equivalent[applied["metadata"]["uid"]] = _form(applied, mark)
        return applied


def _form(live: Manifest, mark: str) -> tuple[str, str]:
    """A generation moves with the spec only, a resource version with the status too."""
    metadata = live["metadata"]
    return mark, str(metadata.get("generation") or metadata["resourceVersion"])
