"""The status of a KafkaCluster. Pure."""

from collections.abc import Sequence

from ottla_operator.manifests.names import bootstrap_name
from ottla_operator.manifests.ports import CLIENTS
from ottla_operator.manifests.server_properties import NodePorts
from ottla_operator.plans.conditions import Finding, conditions
from ottla_operator.plans.layout import Layout
from ottla_operator.plans.observed import ObservedPod
from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.plans.rollout import FleetView, Rollout
from ottla_operator.resources.kafka_cluster import KafkaCluster, KafkaClusterStatus, Listener, ListenerStatus
from ottla_operator.resources.model import Condition

__all__ = ["blocked_status", "cluster_status", "is_settled"]

LASTING = ("Ready", "Progressing")  # of every KafkaCluster, and what `is_settled` goes by


def cluster_status(
    cluster: KafkaCluster,
    layout: Layout,
    *,
    pods: Sequence[ObservedPod],
    fleet: FleetView | None,
    rollout: Rollout,
    node_ports: NodePorts,
    domain: str,
    now: str,
    missing: Obstacle | None = None,
) -> KafkaClusterStatus:
    """`missing`: why Kubernetes does not make a pod that should be."""
    ready = sum(pod.ready and not pod.terminating for pod in pods)
    before = cluster.status.conditions if cluster.status else ()
    rolling = bool(rollout.steps) or (ready < layout.node_count and _was_rolling(before))
    findings = [
        _readiness(layout, pods, ready, fleet, before, rolling=rolling, missing=missing),
        _progress(layout, ready, rollout, rolling=rolling),
        *_rack_awareness(cluster, layout),
    ]
    generation = cluster.metadata.generation
    return KafkaClusterStatus(
        conditions=conditions(findings, before, generation=generation, now=now),
        observed_generation=generation,
        cluster_id=layout.cluster_id,
        nodes=layout.node_count,
        nodes_ready=ready,
        listeners=tuple(
            ListenerStatus(name=one.name, bootstrap_servers=_bootstrap(cluster, one, pods, node_ports, domain))
            for one in sorted(cluster.spec.listeners, key=lambda one: one.type)
        ),
        rollout=rollout.steps,
    )


def blocked_status(cluster: KafkaCluster, obstacle: Obstacle, *, now: str) -> KafkaClusterStatus:
    """What was known before stays."""
    before = cluster.status or KafkaClusterStatus()
    findings = [
        Finding("Ready", False, obstacle.reason, obstacle.message),
        Finding("Progressing", False, obstacle.reason, obstacle.message),
    ]
    generation = cluster.metadata.generation
    return KafkaClusterStatus(
        conditions=(
            *conditions(findings, before.conditions, generation=generation, now=now),
            *(one for one in before.conditions if one.type not in LASTING),
        ),
        observed_generation=generation,
        cluster_id=before.cluster_id,
        nodes=sum(pool.replicas for pool in cluster.spec.pools),
        nodes_ready=before.nodes_ready or 0,
        listeners=before.listeners,
        rollout=before.rollout,
    )


def is_settled(status: KafkaClusterStatus) -> bool:
    """Ready, and nothing is under way."""
    found = {one.type: one.status for one in status.conditions}
    return found.get("Ready") == "True" and found.get("Progressing") == "False"


def _was_rolling(before: Sequence[Condition]) -> bool:
    """A roll ends when its last pod is ready again, not when that pod has been replaced."""
    return any(one.type == "Progressing" and one.reason == "Rolling" for one in before)


def _holds(kind: str, before: Sequence[Condition]) -> bool:
    return any(one.type == kind and one.status == "True" for one in before)


def _readiness(
    layout: Layout,
    pods: Sequence[ObservedPod],
    ready: int,
    fleet: FleetView | None,
    before: Sequence[Condition],
    *,
    rolling: bool,
    missing: Obstacle | None,
) -> Finding:
    """A fleet that was ready and misses one node because that is being restarted serves its clients."""
    nodes = f"{ready} of {layout.node_count} nodes are ready"
    if fleet and fleet.offline:
        text = f"{fleet.offline} partitions have no leader; see `ottla fleet status`"
        return Finding("Ready", False, "PartitionsOffline", text)
    stuck = next((pod.obstacle for pod in pods if pod.is_stuck), None) or missing
    if ready < layout.node_count and stuck:
        return Finding("Ready", False, stuck.reason, f"{nodes}: {stuck.message}")
    enough = ready == layout.node_count or (ready == layout.node_count - 1 and _holds("Ready", before))
    if rolling and enough and fleet:
        return Finding("Ready", True, "Rolling", f"{nodes} while pods are restarted one by one")
    if ready < layout.node_count:
        return Finding("Ready", False, "NodesNotReady", nodes)
    if fleet is None:
        return Finding("Ready", False, "NoController", "no controller answers; see the logs of the nodes")
    return Finding("Ready", True, "AllNodesReady", nodes)


def _progress(layout: Layout, ready: int, rollout: Rollout, *, rolling: bool) -> Finding:
    if rollout.steps:
        first = rollout.steps[0]
        against = f": {first.blocked_by[0]}" if first.blocked_by else ""
        text = f"{len(rollout.steps)} pods are to be restarted, next {first.pod} ({first.verdict.lower()}{against})"
        return Finding("Progressing", True, "Rolling", text)
    if rolling:
        return Finding("Progressing", True, "Rolling", "the last pod that was restarted is not ready yet")
    if rollout.unseen:
        return Finding("Progressing", True, "Applying", "Kubernetes has not processed the last change yet")
    if ready < layout.node_count:
        return Finding("Progressing", True, "Starting", f"{layout.node_count - ready} nodes are not ready yet")
    return Finding("Progressing", False, "UpToDate", "everything is as the spec asks for")


def _rack_awareness(cluster: KafkaCluster, layout: Layout) -> list[Finding]:
    """Only of a cluster that asks for racks."""
    if cluster.spec.racks is None:
        return []
    if zones := layout.zones:
        return [Finding("RackAware", True, "Zones", f"the nodes stand in {', '.join(zones)}")]
    text = (
        f"no node of Kubernetes that may run the pods has the label {cluster.spec.racks.topology_key}: all brokers "
        "count as one rack, and this stays so for those that there are; to spread them, label the nodes or correct "
        "spec.racks.topologyKey, then make the cluster again or add a pool"
    )
    return [Finding("RackAware", False, "NoZones", text)]


def _bootstrap(
    cluster: KafkaCluster, listener: Listener, pods: Sequence[ObservedPod], node_ports: NodePorts, domain: str
) -> str:
    if listener.type == "internal":
        return f"{bootstrap_name(cluster)}.{cluster.metadata.namespace}.svc.{domain}:{CLIENTS}"
    hosts = {pod.node_id: listener.advertised_host or pod.host for pod in pods}
    ports = sorted((node_id, port) for (name, node_id), port in node_ports.items() if name == listener.name)
    return ",".join(f"{hosts[node_id]}:{port}" for node_id, port in ports if hosts.get(node_id))
