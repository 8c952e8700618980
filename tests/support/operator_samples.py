"""Objects that the operator's tests begin with."""

from typing import Any

from ottla_operator.plans.observed import ObservedPod, ObservedSet
from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.kafka_topic import KafkaTopic

UID = "6f1d4a52-7c1e-4b64-8a52-0d9d4f1c2b3a"
ZONES = ("zone-a", "zone-b", "zone-c")
POOLS = ("main", "one", "two", "voters", "brokers")
STUCK = Obstacle("ImageMissing", "there is no such image")


def cluster(**spec: Any) -> KafkaCluster:
    pools = spec.pop("pools", [{"name": "main", "replicas": 3}])
    return KafkaCluster.parse(
        {
            "metadata": {"name": "events", "namespace": "default", "uid": UID, "generation": 1},
            "spec": {"racks": {}, "pools": pools, **spec},
        }
    )


def zones_everywhere(*names: str) -> dict[str, list[str]]:
    """The same for every pool that the tests have."""
    return {pool: list(names) for pool in POOLS}


def topic(name: str = "clicks", *, metadata: dict[str, Any] | None = None, **spec: Any) -> KafkaTopic:
    return KafkaTopic.parse(
        {
            "metadata": {"name": name, "namespace": "default", "uid": UID, "generation": 1, **(metadata or {})},
            "spec": {"clusterRef": {"name": "events"}, **spec},
        }
    )


def pod(node_id: int, *, revision: str = "new", ready: bool = True, **more: Any) -> ObservedPod:
    facts: dict[str, Any] = {
        "name": f"set-{node_id}",
        "uid": str(node_id),
        "version": "1",
        "owner_uid": "set-uid",
        "set_name": "set",
        "node_id": node_id,
        "revision": revision,
        "ready": ready,
        "terminating": False,
        "address": f"10.0.0.{node_id}",
        "host": f"192.168.0.{node_id}",
        "config_hash": revision,
        "image": "broker:1",
    }
    return ObservedPod(**(facts | more))


SETS = [ObservedSet(name="set", uid="set-uid", revision="new", config_hash="new", image="broker:1")]
