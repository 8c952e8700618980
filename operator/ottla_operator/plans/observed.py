"""What of a cluster exists in Kubernetes, as far as decisions need it. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ottla_operator.plans.layout import Record
from ottla_operator.plans.obstacle import Obstacle, pod_obstacle
from ottla_operator.plans.ownership import controller_of
from ottla_operator.resources.labels import CLUSTER_ID, CONFIG_HASH, FIRST_NODE_ID, POOL, ZONE

__all__ = ["ObservedPod", "ObservedSet", "pod_of", "record_of_claim", "record_of_set", "set_of"]

Object = Mapping[str, Any]
REMEDY = "give its zone a node with free CPU, memory and a volume, or ask for less in spec.pools"


class ObservedSet(msgspec.Struct, frozen=True, kw_only=True):
    """`revision`: of the template that new pods get; empty while Kubernetes has not processed the newest one."""

    name: str
    uid: str
    revision: str
    config_hash: str
    image: str


class ObservedPod(msgspec.Struct, frozen=True, kw_only=True):
    """`obstacle`: why nothing runs in it. `version`: of the object, which changes when anything about it does."""

    name: str
    uid: str
    version: str
    owner_uid: str
    set_name: str
    node_id: int
    revision: str
    ready: bool
    terminating: bool
    address: str
    host: str
    config_hash: str
    image: str
    obstacle: Obstacle | None = None

    @property
    def is_stuck(self) -> bool:
        """Nothing runs in it, and nothing will by itself."""
        return self.obstacle is not None and not self.ready


def set_of(body: Object) -> ObservedSet:
    status = body.get("status", {})
    seen = status.get("observedGeneration") == body["metadata"].get("generation")
    template = body["spec"]["template"]
    return ObservedSet(
        name=body["metadata"]["name"],
        uid=body["metadata"]["uid"],
        revision=status.get("updateRevision", "") if seen else "",
        config_hash=template["metadata"].get("annotations", {}).get(CONFIG_HASH, ""),
        image=template["spec"]["containers"][0]["image"],
    )


def pod_of(body: Object, nodes: Collection[str] | None = None) -> ObservedPod | None:
    """None for a pod that is not one of a StatefulSet, whatever its labels say. `nodes`: names of all that there are,
    where it is known."""
    metadata, status = body["metadata"], body.get("status", {})
    set_name, _, ordinal = metadata["name"].rpartition("-")
    owner = controller_of(body)
    if not ordinal.isdecimal() or owner is None or (owner["kind"], owner["name"]) != ("StatefulSet", set_name):
        return None
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    return ObservedPod(
        name=metadata["name"],
        uid=metadata["uid"],
        version=metadata.get("resourceVersion", ""),
        owner_uid=owner["uid"],
        set_name=set_name,
        node_id=int(ordinal),
        revision=metadata.get("labels", {}).get("controller-revision-hash", ""),
        ready=conditions.get("Ready", {}).get("status") == "True",
        terminating="deletionTimestamp" in metadata,
        address=status.get("podIP", ""),
        host=status.get("hostIP", ""),
        config_hash=metadata.get("annotations", {}).get(CONFIG_HASH, ""),
        image=body["spec"]["containers"][0]["image"],
        obstacle=_obstacle(body, nodes),
    )


def _obstacle(body: Object, nodes: Collection[str] | None) -> Obstacle | None:
    name = body["metadata"]["name"]
    return pod_obstacle(body, remedy=REMEDY) or _crash(name, body.get("status", {})) or _lost_node(body, nodes)


def _lost_node(body: Object, nodes: Collection[str] | None) -> Obstacle | None:
    """A node that only does not answer counts as there: its broker may well serve clients."""
    node = body["spec"].get("nodeName")
    if not node or nodes is None or node in nodes:
        return None
    return Obstacle("NodeGone", f"pod {body['metadata']['name']} was on node {node}, which is no longer there")


def _crash(pod: str, status: Object) -> Obstacle | None:
    for container in status.get("containerStatuses", ()):
        if container.get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff":
            ended = container.get("lastState", {}).get("terminated", {})
            said = (ended.get("message") or f"code {ended.get('exitCode')}").strip().splitlines()[-1]
            return Obstacle("NodeCrashes", f"pod {pod} ends again and again: {said}; see `kubectl logs {pod}`")
    return None


def record_of_set(body: Object) -> Record | None:
    """None when something else made the object."""
    return _record(body, int(body.get("spec", {}).get("replicas", 0)))


def record_of_claim(body: Object) -> Record | None:
    """As `record_of_set`. A claim proves all ids up to its own."""
    ordinal = body["metadata"]["name"].rpartition("-")[2]
    start = body["metadata"].get("annotations", {}).get(FIRST_NODE_ID, "")
    if not ordinal.isdecimal() or not start.isdecimal():
        return None
    return _record(body, int(ordinal) - int(start) + 1)


def _record(body: Object, nodes: int) -> Record | None:
    labels, notes = body["metadata"].get("labels", {}), body["metadata"].get("annotations", {})
    if POOL not in labels or CLUSTER_ID not in notes or not notes.get(FIRST_NODE_ID, "").isdecimal():
        return None
    return Record(
        cluster_id=notes[CLUSTER_ID],
        pool=labels[POOL],
        zone=notes.get(ZONE, ""),
        first_id=int(notes[FIRST_NODE_ID]),
        nodes=nodes,
    )
