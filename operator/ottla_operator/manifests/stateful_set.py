"""The nodes of a pool in one zone. Pure."""

from typing import Any

import msgspec

from ottla_operator.manifests.names import (
    brokers_name,
    config_name,
    labels_of,
    metadata_of,
    pod_name,
    selector_of,
    set_name,
)
from ottla_operator.manifests.ports import GRPC, HEALTH, REPLICATION, port_of
from ottla_operator.manifests.server_properties import DATA_DIR, config_hash, pool_of
from ottla_operator.plans.layout import Layout, NodeSet
from ottla_operator.resources.kafka_cluster import KafkaCluster, Pool
from ottla_operator.resources.labels import CLUSTER_ID, CONFIG_HASH, FIRST_NODE_ID, ZONE

__all__ = ["CONTAINER", "BrokerImage", "claim_names", "stateful_set"]

CONTAINER = "broker"
USER = 10001
GRACE_SECONDS = 90  # leaders move away first, then everything is written
CONFIG_DIR = "/etc/ottla"
VOLUME = "data"


class BrokerImage(msgspec.Struct, frozen=True):
    name: str
    pull_policy: str


def stateful_set(
    cluster: KafkaCluster, layout: Layout, one: NodeSet, *, image: BrokerImage, domain: str
) -> dict[str, Any]:
    """`OnDelete`: the operator decides when a pod is replaced. `Parallel`: a quorum needs several to begin."""
    record = {ZONE: one.zone, CLUSTER_ID: layout.cluster_id, FIRST_NODE_ID: str(one.first_id)}
    metadata = metadata_of(cluster, set_name(cluster, one), one)
    template_notes = {CONFIG_HASH: config_hash(cluster, layout, one, domain=domain)}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata | {"annotations": record},
        "spec": {
            "serviceName": brokers_name(cluster),
            "replicas": one.nodes,
            "ordinals": {"start": one.first_id},
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": selector_of(cluster, one)},
            "template": {
                "metadata": {"labels": _pod_labels(cluster, one), "annotations": template_notes},
                "spec": _pod(cluster, one, image),
            },
            "volumeClaimTemplates": [_claim(cluster, one, record)],
        },
    }


def claim_names(cluster: KafkaCluster, one: NodeSet) -> list[str]:
    """As Kubernetes names the claims of a StatefulSet's pods."""
    return [f"{VOLUME}-{pod_name(cluster, one, node_id)}" for node_id in one.ids]


def _pod_labels(cluster: KafkaCluster, one: NodeSet) -> dict[str, str]:
    component = "broker" if "broker" in pool_of(cluster, one).roles else "controller"
    return labels_of(cluster, one) | {"app.kubernetes.io/component": component}


def _pod(cluster: KafkaCluster, one: NodeSet, image: BrokerImage) -> dict[str, Any]:
    pool = pool_of(cluster, one)
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": _affinity(cluster, one),
        "containers": [_container(cluster, pool, image)],
        "volumes": [
            {"name": "config", "configMap": {"name": config_name(cluster)}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
    if pool.tolerations:
        spec["tolerations"] = list(pool.tolerations)
    return spec


def _affinity(cluster: KafkaCluster, one: NodeSet) -> dict[str, Any]:
    """To its zone always if it has one, away from the cluster's other nodes where possible."""
    term = {"labelSelector": {"matchLabels": selector_of(cluster)}, "topologyKey": "kubernetes.io/hostname"}
    affinity: dict[str, Any] = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
        }
    }
    if cluster.spec.racks is not None and one.zone:
        expression = {"key": cluster.spec.racks.topology_key, "operator": "In", "values": [one.zone]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return affinity


def _container(cluster: KafkaCluster, pool: Pool, image: BrokerImage) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": cluster.spec.image or image.name,
        "imagePullPolicy": image.pull_policy,
        "args": ["serve", "--config", f"{CONFIG_DIR}/$(POD_NAME).properties"],
        "env": [_from_pod("POD_NAME", "metadata.name"), _from_pod("HOST_IP", "status.hostIP")],
        "ports": _ports(cluster, pool),
        "volumeMounts": [
            {"name": VOLUME, "mountPath": DATA_DIR},
            {"name": "config", "mountPath": CONFIG_DIR, "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        # Reading large logs may take minutes; being alive does not depend on others, being ready does.
        "startupProbe": _probe("/livez", period_s=1, failures=300),
        "livenessProbe": _probe("/livez", period_s=10, failures=6),
        "readinessProbe": _probe("/readyz", period_s=2, failures=2),
    }
    resources = msgspec.to_builtins(pool.resources)
    return container | ({"resources": resources} if resources else {})


def _from_pod(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _ports(cluster: KafkaCluster, pool: Pool) -> list[dict[str, Any]]:
    ports = {"grpc": GRPC, "health": HEALTH}
    if "broker" in pool.roles:
        ports["replication"] = REPLICATION
        ports |= {listener.name: port_of(cluster, listener) for listener in cluster.spec.listeners}
    return [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()]


def _probe(path: str, *, period_s: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "health"},
        "periodSeconds": period_s,
        "failureThreshold": failures,
        "timeoutSeconds": 5,
    }


def _claim(cluster: KafkaCluster, one: NodeSet, record: dict[str, str]) -> dict[str, Any]:
    """It outlives the cluster, and records what it holds for a new cluster of the same name."""
    storage = pool_of(cluster, one).storage
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage.size}},
    }
    if storage.storage_class:
        spec["storageClassName"] = storage.storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": VOLUME, "labels": selector_of(cluster, one), "annotations": record},
        "spec": spec,
    }
