"""The status of a KafkaCluster."""

import msgspec
import pytest
from ottla_operator.plans.cluster_status import blocked_status, cluster_status, is_settled
from ottla_operator.plans.conditions import changed_condition
from ottla_operator.plans.layout import plan_layout
from ottla_operator.plans.observed import pod_of
from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.plans.rollout import FleetView, Rollout
from ottla_operator.plans.zones import NO_ZONE
from ottla_operator.resources.kafka_cluster import RolloutStep
from support.operator_samples import ZONES, cluster, pod, zones_everywhere

FLEET = FleetView(leader=0, under_replicated=0, offline=0)
ROLLING = Rollout((RolloutStep(pod="set-1", reason="the image has changed", verdict="Blocked", blocked_by=("x",)),))
CALM = Rollout()
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
READY = [pod(0), pod(1), pod(2)]
OF_A_SET = {"kind": "StatefulSet", "name": "events-main-zone-a", "uid": "2", "controller": True}


def _status(one=None, *, pods=READY, fleet=FLEET, rollout=CALM, now=EARLY):
    one = one or cluster()
    layout = plan_layout(one, [], zones_everywhere(*ZONES))
    ports = {("external", 1): 30002, ("external", 0): 30001}
    return cluster_status(
        one, layout, pods=pods, fleet=fleet, rollout=rollout, node_ports=ports, domain="cluster.local", now=now
    )


def _conditions(status) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in status.conditions}


STUCK = pod(2, ready=False, obstacle=Obstacle("Unschedulable", "pod set-2 cannot be scheduled; …"))


@pytest.mark.parametrize(
    ("facts", "ready", "progressing"),
    [
        ({}, ("True", "AllNodesReady"), ("False", "UpToDate")),
        ({"pods": READY[:2]}, ("False", "NodesNotReady"), ("True", "Starting")),
        ({"pods": [*READY[:2], STUCK]}, ("False", "Unschedulable"), ("True", "Starting")),
        ({"fleet": None}, ("False", "NoController"), ("False", "UpToDate")),
        ({"fleet": FleetView(leader=0, under_replicated=1, offline=2)}, ("False", "PartitionsOffline"), None),
        ({"rollout": ROLLING}, ("True", "Rolling"), ("True", "Rolling")),
        ({"rollout": ROLLING, "pods": READY[:2]}, ("False", "NodesNotReady"), ("True", "Rolling")),
        ({"rollout": ROLLING, "pods": READY[:1]}, ("False", "NodesNotReady"), ("True", "Rolling")),
        ({"rollout": Rollout(unseen=1)}, ("True", "AllNodesReady"), ("True", "Applying")),
    ],
)
def test_conditions(facts, ready, progressing):
    found = _conditions(_status(**facts))
    assert found["Ready"] == ready
    assert progressing is None or found["Progressing"] == progressing


def test_bootstrap_servers_of_each_listener():
    listeners = [
        {"name": "external", "type": "nodeport", "advertisedHost": "127.0.0.1"},
        {"name": "internal", "type": "internal"},
    ]
    found = {one.name: one.bootstrap_servers for one in _status(cluster(listeners=listeners)).listeners}
    assert found == {
        "internal": "events-bootstrap.default.svc.cluster.local:9092",
        "external": "127.0.0.1:30001,127.0.0.1:30002",
    }
    anywhere = [{"name": "external", "type": "nodeport"}, {"name": "internal", "type": "internal"}]
    external = _status(cluster(listeners=anywhere)).listeners[1]
    assert external.bootstrap_servers == "192.168.0.0:30001,192.168.0.1:30002"


def test_a_condition_that_stays_keeps_its_time_and_nothing_is_written():
    first = _status()
    later = _status(msgspec.structs.replace(cluster(), status=first), now=LATE)
    assert later == first and changed_condition(first, later) is None
    worse = _status(msgspec.structs.replace(cluster(), status=first), pods=READY[:2], now=LATE)
    assert worse.conditions[0].last_transition_time == "2026-01-02T00:00:00Z"
    assert changed_condition(first, worse) == worse.conditions[0]


def test_a_roll_ends_when_the_last_pod_is_back():
    rolling = msgspec.structs.replace(cluster(), status=_status(rollout=ROLLING))
    nearly = _status(rolling, pods=READY[:2])
    rack_aware = {"RackAware": ("True", "Zones")}
    assert _conditions(nearly) == {"Ready": ("True", "Rolling"), "Progressing": ("True", "Rolling"), **rack_aware}
    done = _status(msgspec.structs.replace(cluster(), status=nearly))
    assert _conditions(done)["Ready"] == ("True", "AllNodesReady")
    assert _conditions(done)["Progressing"] == ("False", "UpToDate")
    assert is_settled(done) and not is_settled(nearly)


def test_an_obstacle_leaves_what_is_known():
    first = _status()
    status = blocked_status(
        msgspec.structs.replace(cluster(), status=first), Obstacle("NoZones", "label the nodes"), now=LATE
    )
    assert _conditions(status)["Ready"] == ("False", "NoZones")
    assert status.cluster_id == first.cluster_id and status.listeners == first.listeners
    assert _conditions(status)["RackAware"] == ("True", "Zones")


def test_without_zones_all_brokers_are_one_rack_and_the_status_says_so():
    one = cluster()
    layout = plan_layout(one, [], zones_everywhere(NO_ZONE))
    facts = {"pods": READY, "fleet": FLEET, "rollout": CALM, "node_ports": {}, "domain": "cluster.local", "now": EARLY}
    found = _conditions(cluster_status(one, layout, **facts))
    assert found["RackAware"] == ("False", "NoZones") and found["Ready"] == ("True", "AllNodesReady")
    assert "RackAware" not in _conditions(cluster_status(cluster(racks=None), layout, **facts))


def test_why_kubernetes_does_not_make_a_pod_is_said():
    quota = Obstacle("QuotaExceeded", "exceeded quota: small")
    one = cluster()
    layout = plan_layout(one, [], zones_everywhere(*ZONES))
    facts = {"fleet": FLEET, "rollout": CALM, "node_ports": {}, "domain": "cluster.local", "now": EARLY}
    status = cluster_status(one, layout, pods=READY[:2], missing=quota, **facts)
    assert _conditions(status)["Ready"] == ("False", "QuotaExceeded") and "quota: small" in status.conditions[0].message


@pytest.mark.parametrize(
    ("node", "reason"), [("gone", "NodeGone"), ("here", None), (None, None)], ids=["gone", "here", "not scheduled"]
)
def test_a_pod_whose_node_is_no_longer_there_does_not_come_back(node, reason):
    spec = {"containers": [{"image": "x"}], **({"nodeName": node} if node else {})}
    metadata = {"name": "events-main-zone-a-0", "uid": "1", "ownerReferences": [OF_A_SET]}
    found = pod_of({"metadata": metadata, "spec": spec, "status": {}}, {"here"})
    assert (found.obstacle.reason if found.obstacle else None) == reason and found.is_stuck == (reason is not None)


@pytest.mark.parametrize("owners", [[], [{**OF_A_SET, "kind": "Job"}], [{**OF_A_SET, "name": "other"}]])
def test_a_pod_with_our_labels_that_is_not_of_a_set_is_not_seen(owners):
    body = {
        "metadata": {"name": "events-main-zone-a-0", "uid": "1", "ownerReferences": owners},
        "spec": {"containers": [{"image": "x"}]},
    }
    assert pod_of(body) is None


OF_A_SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "name": "events-main-zone-a",
    "uid": "2",
    "controller": True,
}


def _waiting(reason: str):
    return {"containerStatuses": [{"image": "x", "state": {"waiting": {"reason": reason}}}]}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
            "Unschedulable",
        ),
        (_waiting("ErrImageNeverPull"), "ImageMissing"),
        (_waiting("CrashLoopBackOff"), "NodeCrashes"),
        ({"containerStatuses": [{"image": "x", "state": {"running": {}}}]}, None),
    ],
)
def test_why_a_pod_does_not_run(status, reason):
    body = {
        "metadata": {"name": "events-main-zone-a-0", "uid": "1", "ownerReferences": [OF_A_SET]},
        "spec": {"containers": [{"image": "x"}]},
        "status": status,
    }
    found = pod_of(body)
    assert found is not None and found.node_id == 0
    assert (found.obstacle.reason if found.obstacle else None) == reason
