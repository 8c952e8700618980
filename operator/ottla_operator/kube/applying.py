"""Server-side apply of objects that are ours and differ from their manifest; the others are not written."""

from collections.abc import Iterable

from ottla_operator.kube.client import Kind, Kube, Manifest
from ottla_operator.plans.comparison import covers, marked
from ottla_operator.plans.obstacle import Blocked, TemporaryFailure
from ottla_operator.plans.ownership import Ownership, name_taken, ownership
from ottla_operator.resources.labels import APPLIED

__all__ = ["Applier"]

EQUIVALENT_MAX = 10_000


class Applier:
    """Remembers what the API server writes differently, such as quantities, so that it is not applied at each run."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._equivalent: dict[str, tuple[str, str]] = {}

    async def apply(self, kind: Kind, manifests: Iterable[Manifest], live: Iterable[Manifest]) -> dict[str, Manifest]:
        """Name → the object as it is now, of each manifest. `live`: those with our labels. Raises Blocked where a name
        is taken by an object of somebody else."""
        existing = {one["metadata"]["name"]: one for one in live}
        applied = {}
        for manifest in map(marked, manifests):
            name = manifest["metadata"]["name"]
            applied[name] = await self._apply_one(kind, manifest, existing.get(name))
        return applied

    async def _apply_one(self, kind: Kind, manifest: Manifest, live: Manifest | None) -> Manifest:
        if live is None:
            metadata = manifest["metadata"]
            live = await self._kube.get(kind, metadata["namespace"], metadata["name"])
        if live is not None:
            _check_ownership(live, manifest)
        mark = manifest["metadata"]["annotations"][APPLIED]
        if live is not None:
            same = live["metadata"].get("annotations", {}).get(APPLIED) == mark
            if same and (covers(live, manifest) or self._equivalent.get(live["metadata"]["uid"]) == _form(live, mark)):
                return live
        applied = await self._kube.apply(manifest, kind, uid=live["metadata"]["uid"] if live else None)
        if not covers(applied, manifest):
            if len(self._equivalent) >= EQUIVALENT_MAX:
                self._equivalent.clear()
            self._equivalent[applied["metadata"]["uid"]] = _form(applied, mark)
        return applied


def _check_ownership(live: Manifest, manifest: Manifest) -> None:
    match ownership(live, manifest):
        case Ownership.FOREIGN:
            raise Blocked(name_taken(live))
        case Ownership.FORMER:
            name = manifest["metadata"]["name"]
            raise TemporaryFailure(f"{manifest['kind']} {name} of a former object of the same name is not gone yet")


def _form(live: Manifest, mark: str) -> tuple[str, str]:
    """A generation moves with the spec only, a resource version with the status too."""
    metadata = live["metadata"]
    return mark, str(metadata.get("generation") or metadata["resourceVersion"])
