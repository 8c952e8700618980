"""How many nodes may be evicted at one time. Pure."""

from typing import Any

from ottla_operator.manifests.names import budget_name, metadata_of, selector_of
from ottla_operator.resources.kafka_cluster import KafkaCluster

__all__ = ["disruption_budget"]


def disruption_budget(cluster: KafkaCluster) -> dict[str, Any]:
    """One at a time, also of those that are not ready, and also while no operator runs.

    `IfHealthyBudget`: a pod that is not ready may be evicted when all others are. `AlwaysAllow` would let a drain take
    it while another is away, although it may serve clients or be needed by the quorum. The price: with two that are not
    ready, `kubectl drain` waits until one of them is. Pods that never started are evicted with either.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata_of(cluster, budget_name(cluster)),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "IfHealthyBudget",
            "selector": {"matchLabels": selector_of(cluster)},
        },
    }
