"""How many nodes may be evicted at one time. Pure."""

from typing import Any

from ottla_operator.manifests.names import metadata_of, selector_of
from ottla_operator.resources.kafka_cluster import KafkaCluster

__all__ = ["disruption_budget"]


def disruption_budget(cluster: KafkaCluster) -> dict[str, Any]:
    """A pod that is not ready may always go: it would otherwise keep its machine from being drained."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata_of(cluster, cluster.metadata.name),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector_of(cluster)},
        },
    }
