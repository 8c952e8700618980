"""Names and labels of a cluster's objects. Pure."""

import hashlib
import re
from typing import Any

from ottla_operator.plans.layout import NodeSet
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.labels import CLUSTER, POOL, RACK
from ottla_operator.resources.model import GROUP, VERSION

__all__ = [
    "bootstrap_name", "brokers_name", "budget_name", "config_name", "host_of", "labels_of", "metadata_of", "pod_name",
    "rack_label", "selector_of", "set_name",
]  # fmt: skip

SET_NAME_MAX = 52  # Kubernetes appends a hash to it in a label of 63 characters
HASH_LENGTH = 7


def set_name(cluster: KafkaCluster, one: NodeSet) -> str:
    parts = (cluster.metadata.name, one.pool, rack_label(one.zone))
    return _shortened("-".join(part for part in parts if part))


def pod_name(cluster: KafkaCluster, one: NodeSet, node_id: int) -> str:
    return f"{set_name(cluster, one)}-{node_id}"


def rack_label(zone: str) -> str:
    """A zone as part of a name; one that had to be changed carries a hash, so that two stay apart."""
    plain = re.sub(r"[^a-z0-9-]", "-", zone.lower()).strip("-")
    return plain if plain == zone else f"{plain}-{_hash(zone)}".lstrip("-")


def _shortened(name: str) -> str:
    if len(name) <= SET_NAME_MAX:
        return name
    return f"{name[: SET_NAME_MAX - HASH_LENGTH - 1]}-{_hash(name)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def brokers_name(cluster: KafkaCluster) -> str:
    return f"{cluster.metadata.name}-brokers"


def bootstrap_name(cluster: KafkaCluster) -> str:
    return f"{cluster.metadata.name}-bootstrap"


def budget_name(cluster: KafkaCluster) -> str:
    """Not the cluster's own name, which an application's budget may well have."""
    return f"{cluster.metadata.name}-brokers"


def config_name(cluster: KafkaCluster) -> str:
    return f"{cluster.metadata.name}-config"


def host_of(cluster: KafkaCluster, pod: str, *, domain: str) -> str:
    """The pod's name in DNS, which outlives its address. Written out in full: no search list is needed."""
    return f"{pod}.{brokers_name(cluster)}.{cluster.metadata.namespace}.svc.{domain}"


def selector_of(cluster: KafkaCluster, one: NodeSet | None = None) -> dict[str, str]:
    """Labels by which the cluster's objects, or those of one set, are found."""
    labels = {CLUSTER: cluster.metadata.name}
    if one is not None:
        labels[POOL] = one.pool
        if one.zone:
            labels[RACK] = rack_label(one.zone)
    return labels


def labels_of(cluster: KafkaCluster, one: NodeSet | None = None) -> dict[str, str]:
    return {
        **selector_of(cluster, one),
        "app.kubernetes.io/name": "ottla",
        "app.kubernetes.io/instance": cluster.metadata.name,
        "app.kubernetes.io/component": "broker",
        "app.kubernetes.io/managed-by": "ottla",
    }


def metadata_of(cluster: KafkaCluster, name: str, one: NodeSet | None = None) -> dict[str, Any]:
    """Of an object that goes when the KafkaCluster goes."""
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": cluster.CRD.kind,
        "name": cluster.metadata.name,
        "uid": cluster.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "namespace": cluster.metadata.namespace,
        "labels": labels_of(cluster, one),
        "ownerReferences": [owner],
    }
