"""Zones in which the pods of a pool may run. Pure.

A node counts when its pods could be scheduled there now: it is not cordoned, and the pool tolerates its taints. What
is counted once is recorded for good, so a control plane's zone must not count for a pool that cannot run there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ottla_operator.resources.kafka_cluster import KafkaCluster

__all__ = ["NO_ZONE", "Zones", "zones_of_pools"]

Object = Mapping[str, Any]
Zones = Mapping[str, Sequence[str]]
NO_ZONE = ""
REPELLING = ("NoSchedule", "NoExecute")


def zones_of_pools(cluster: KafkaCluster, nodes: Sequence[Object]) -> dict[str, list[str]]:
    """By pool. [NO_ZONE] where no node has the label; none where no node may run the pods."""
    return {pool.name: _zones(cluster, nodes, pool.tolerations) for pool in cluster.spec.pools}


def _zones(cluster: KafkaCluster, nodes: Sequence[Object], tolerations: Sequence[Object]) -> list[str]:
    if cluster.spec.racks is None:
        return [NO_ZONE]
    fitting = [node for node in nodes if _may_run(node, tolerations)]
    labels = [node["metadata"].get("labels", {}) for node in fitting]
    zones = {one.get(cluster.spec.racks.topology_key) or NO_ZONE for one in labels}
    return sorted(zones - {NO_ZONE} or zones)


def _may_run(node: Object, tolerations: Sequence[Object]) -> bool:
    spec = node.get("spec", {})
    taints = [taint for taint in spec.get("taints") or () if taint.get("effect") in REPELLING]
    return not spec.get("unschedulable") and all(_is_tolerated(taint, tolerations) for taint in taints)


def _is_tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    return any(_tolerates(one, taint) for one in tolerations)


def _tolerates(toleration: Object, taint: Object) -> bool:
    """As Kubernetes compares them: an empty key or effect fits every one."""
    exists = toleration.get("operator", "Equal") == "Exists"
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if not toleration.get("key"):
        return bool(exists)
    same_value = exists or toleration.get("value", "") == taint.get("value", "")
    return bool(toleration["key"] == taint["key"] and same_value)
