"""Reads what exists of a cluster in Kubernetes, as typed values."""

import asyncio
from collections.abc import Sequence

import msgspec

from ottla_operator.kube.client import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    EVENTS,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Kube,
    Manifest,
)
from ottla_operator.manifests.names import selector_of
from ottla_operator.manifests.ports import GRPC
from ottla_operator.manifests.server_properties import NodePorts
from ottla_operator.plans.layout import Record
from ottla_operator.plans.observed import ObservedPod, ObservedSet, pod_of, record_of_claim, record_of_set
from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.plans.refusals import creation_obstacle
from ottla_operator.plans.zones import Zones, zones_of_pools
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.labels import LISTENER, NODE_ID

__all__ = ["Observed", "addresses", "node_ports", "observe", "observe_pods", "why_missing"]


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """Objects that are applied are kept as they are, to be compared with what they should be."""

    sets: list[Manifest]
    services: list[Manifest]
    config_maps: list[Manifest]
    budgets: list[Manifest]
    claims: list[Manifest]
    pods: list[ObservedPod]
    records: list[Record]
    zones: Zones


async def observe(kube: Kube, cluster: KafkaCluster) -> Observed:
    namespace, labels = cluster.metadata.namespace, selector_of(cluster)
    kinds = (STATEFUL_SETS, SERVICES, CONFIG_MAPS, DISRUPTION_BUDGETS, VOLUME_CLAIMS)
    sets, services, config_maps, budgets, claims = await asyncio.gather(
        *(kube.list(kind, namespace, labels=labels) for kind in kinds)
    )
    bodies = await kube.list(PODS, namespace, labels=labels)
    nodes = await kube.list(NODES)  # after the pods: a node that one of them names and that is not among these is gone
    names = {node["metadata"]["name"] for node in nodes}
    records = [*map(record_of_set, sets), *map(record_of_claim, claims)]
    return Observed(
        sets=sets,
        services=services,
        config_maps=config_maps,
        budgets=budgets,
        claims=claims,
        pods=[pod for pod in (pod_of(body, names) for body in bodies) if pod is not None],
        records=[record for record in records if record is not None],
        zones=zones_of_pools(cluster, nodes),
    )


async def observe_pods(kube: Kube, cluster: KafkaCluster) -> list[ObservedPod]:
    bodies = await kube.list(PODS, cluster.metadata.namespace, labels=selector_of(cluster))
    return [pod for pod in map(pod_of, bodies) if pod is not None]


async def why_missing(kube: Kube, namespace: str, sets: Sequence[ObservedSet]) -> Obstacle | None:
    """Why Kubernetes does not make the pods of these sets. It tells in Events only."""
    for one in sets:
        events = await kube.list(EVENTS, namespace, fields={"involvedObject.uid": one.uid})
        if obstacle := creation_obstacle(events):
            return obstacle
    return None


def addresses(pods: list[ObservedPod]) -> dict[int, str]:
    """Node id → where its gRPC server is. By address: it is known before names are, and works outside the cluster."""
    return {
        pod.node_id: f"[{pod.address}]:{GRPC}" if ":" in pod.address else f"{pod.address}:{GRPC}"
        for pod in pods
        if pod.address and not pod.terminating
    }


def node_ports(services: list[Manifest]) -> NodePorts:
    ports = {}
    for service in services:
        labels = service["metadata"].get("labels", {})
        port = service["spec"]["ports"][0].get("nodePort")
        if LISTENER in labels and NODE_ID in labels and port:
            ports[labels[LISTENER], int(labels[NODE_ID])] = int(port)
    return ports
