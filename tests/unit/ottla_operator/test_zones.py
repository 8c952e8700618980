"""In which zones the pods of a pool may run."""

import pytest
from ottla_operator.plans.zones import NO_ZONE, zones_of_pools
from support.operator_samples import cluster

CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
DEDICATED = {"key": "dedicated", "value": "kafka", "effect": "NoExecute"}


def node(zone: str | None, *taints, **spec):
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    return {"metadata": {"name": f"of-{zone}", "labels": labels}, "spec": {"taints": list(taints), **spec}}


def _zones(*nodes, tolerations=(), **spec) -> list[str]:
    pools = [{"name": "main", "replicas": 3, "tolerations": list(tolerations)}]
    return zones_of_pools(cluster(pools=pools, **spec), nodes)["main"]


def test_only_nodes_that_may_run_the_pods_count():
    preferred = {"key": "spot", "effect": "PreferNoSchedule"}
    nodes = (
        node("a"), node("b", preferred), node("c", CONTROL_PLANE), node("d", unschedulable=True), node("e", DEDICATED),
    )  # fmt: skip
    assert _zones(*nodes) == ["a", "b"]


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "dedicated", "operator": "Equal", "value": "kafka"}, True),
        ({"key": "dedicated", "value": "kafka", "effect": "NoExecute"}, True),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "value": "other"}, False),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "another", "operator": "Exists"}, False),
        ({}, False),
    ],
)
def test_tolerations_are_compared_as_kubernetes_does(toleration, fits):
    assert _zones(node("e", DEDICATED), tolerations=[toleration]) == (["e"] if fits else [])


def test_without_labels_there_is_one_zone_and_without_nodes_none():
    assert _zones(node(None), node(None)) == [NO_ZONE]
    assert _zones(node(None), node("a")) == ["a"]
    assert _zones() == _zones(node("a", unschedulable=True)) == []


def test_without_racks_nodes_do_not_matter():
    assert _zones(racks=None) == [NO_ZONE]
