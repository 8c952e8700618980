"""Whose an object is that bears a name which we want. Pure.

An object is ours by its controller's uid. Without a controller it is ours if it has our label and the annotation of an
apply of ours: it was orphaned on purpose, or restored. What a former object of the same name left is neither ours nor
somebody else's: Kubernetes deletes it.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.resources.labels import APPLICATION, APPLIED, CLUSTER

__all__ = ["Ownership", "controller_of", "name_taken", "ownership"]

Object = Mapping[str, Any]
OUR_LABELS = (CLUSTER, APPLICATION)


class Ownership(Enum):
    OURS = "ours"
    FORMER = "of a former object of the same name"
    FOREIGN = "somebody else's"


def ownership(live: Object, wanted: Object) -> Ownership:
    """`wanted`: our manifest for this name."""
    owner, ours = controller_of(live), controller_of(wanted)
    if owner is None:
        return Ownership.OURS if _is_marked(live, wanted) else Ownership.FOREIGN
    if ours is None:
        return Ownership.FOREIGN
    if owner.get("uid") == ours["uid"]:
        return Ownership.OURS
    same = all(owner.get(field) == ours[field] for field in ("apiVersion", "kind", "name"))
    return Ownership.FORMER if same else Ownership.FOREIGN


def controller_of(body: Object) -> Object | None:
    owners = body["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _is_marked(live: Object, wanted: Object) -> bool:
    labels, wanted_labels = live["metadata"].get("labels", {}), wanted["metadata"]["labels"]
    same = all(labels.get(name) == wanted_labels.get(name) for name in OUR_LABELS)
    return same and APPLIED in live["metadata"].get("annotations", {})


def name_taken(live: Object, *, step: str = "") -> Obstacle:
    """`step`: another way out than to remove or rename it."""
    kind, metadata = live.get("kind", "object"), live["metadata"]
    owner = controller_of(live)
    whose = f"belongs to {owner.get('kind')} {owner.get('name')}" if owner else "was not made by the operator"
    place = f"{kind} {metadata['name']} in namespace {metadata.get('namespace', '')}"
    step = step or "rename or delete it, or give this object another name"
    return Obstacle("NameTaken", f"{place} {whose}, and the operator needs this name; it is left as it is: {step}")
