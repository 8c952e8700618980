"""Services: names for every pod, a way in, and one per broker for listeners outside. Pure."""

from collections.abc import Iterator
from typing import Any

from ottla_operator.manifests.names import (
    bootstrap_name,
    brokers_name,
    metadata_of,
    pod_name,
    selector_of,
)
from ottla_operator.manifests.ports import CLIENTS, GRPC, REPLICATION, port_of
from ottla_operator.manifests.server_properties import pool_of
from ottla_operator.plans.layout import Layout
from ottla_operator.resources.kafka_cluster import KafkaCluster, Listener
from ottla_operator.resources.labels import LISTENER, NODE_ID

__all__ = ["bootstrap_service", "brokers_service", "node_port_services", "services"]

BROKERS_ONLY = {"app.kubernetes.io/component": "broker"}


def services(cluster: KafkaCluster, layout: Layout) -> list[dict[str, Any]]:
    return [brokers_service(cluster), bootstrap_service(cluster), *node_port_services(cluster, layout)]


def brokers_service(cluster: KafkaCluster) -> dict[str, Any]:
    """Headless. Addresses are published before readiness, or a quorum would never form."""
    return _service(
        cluster,
        brokers_name(cluster),
        {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector_of(cluster),
            "ports": [_port("clients", CLIENTS), _port("grpc", GRPC), _port("replication", REPLICATION)],
        },
    )


def bootstrap_service(cluster: KafkaCluster) -> dict[str, Any]:
    ports = [_port("clients", CLIENTS)]
    return _service(cluster, bootstrap_name(cluster), {"selector": selector_of(cluster) | BROKERS_ONLY, "ports": ports})


def node_port_services(cluster: KafkaCluster, layout: Layout) -> Iterator[dict[str, Any]]:
    """The port on the nodes is Kubernetes' choice; it stays as long as the Service does."""
    for listener in cluster.spec.listeners:
        if listener.type != "nodeport":
            continue
        for one in layout.sets:
            if "broker" in pool_of(cluster, one).roles:
                for node_id in one.ids:
                    yield _node_port_service(cluster, listener, node_id, pod_name(cluster, one, node_id))


def _node_port_service(cluster: KafkaCluster, listener: Listener, node_id: int, pod: str) -> dict[str, Any]:
    spec = {
        "type": "NodePort",
        "publishNotReadyAddresses": True,  # a client may connect to any broker that Metadata names
        "selector": {"statefulset.kubernetes.io/pod-name": pod},
        "ports": [_port("clients", port_of(cluster, listener))],
    }
    made = _service(cluster, f"{cluster.metadata.name}-{listener.name}-{node_id}", spec)
    made["metadata"]["labels"] |= {LISTENER: listener.name, NODE_ID: str(node_id)}
    return made


def _service(cluster: KafkaCluster, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata_of(cluster, name), "spec": spec}


def _port(name: str, port: int) -> dict[str, Any]:
    return {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
