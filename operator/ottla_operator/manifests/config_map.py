"""One file of settings per node; a node reads the one with its pod's name. Pure."""

from typing import Any

from ottla_operator.manifests.names import config_name, metadata_of, pod_name
from ottla_operator.manifests.server_properties import NodePorts, server_properties
from ottla_operator.plans.layout import Layout
from ottla_operator.resources.kafka_cluster import KafkaCluster

__all__ = ["config_map"]


def config_map(cluster: KafkaCluster, layout: Layout, *, node_ports: NodePorts, domain: str) -> dict[str, Any]:
    files = {
        f"{pod_name(cluster, one, node_id)}.properties": server_properties(
            cluster, layout, one, node_id, node_ports=node_ports, domain=domain
        )
        for one in layout.sets
        for node_id in one.ids
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata_of(cluster, config_name(cluster)),
        "data": files,
    }
