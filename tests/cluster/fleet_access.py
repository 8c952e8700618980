"""One KafkaCluster of a test: its pods, its way in from outside, and topics made by `kubectl apply`."""

import json
from dataclasses import dataclass
from typing import Any

from cluster.visited import VisitedCluster
from support.waiting import eventually

GROUP = "ottla.dev/v1alpha1"
ZONE = "topology.kubernetes.io/zone"
WHOLE_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class KafkaOnKubernetes:
    access: VisitedCluster
    name: str
    namespace: str

    @property
    def inside(self) -> str:
        """For pods."""
        return f"{self.name}-bootstrap.{self.namespace}.svc:9092"

    @property
    def outside(self) -> str:
        """For this machine: what the status says about the listener of type nodeport."""
        external = [one["name"] for one in self.object()["spec"]["listeners"] if one["type"] == "nodeport"]
        servers = {one["name"]: one["bootstrapServers"] for one in self.object()["status"]["listeners"]}
        return str(servers[external[0]])

    def object(self) -> Any:
        return self.access.get("kafkacluster", self.name, "-n", self.namespace)

    def pods(self) -> list[Any]:
        chosen = f"ottla.dev/cluster={self.name},app.kubernetes.io/component=broker"
        return list(self.access.get("pods", "-n", self.namespace, "-l", chosen)["items"])

    def pod_ids(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def zones_of_pods(self) -> dict[str, str]:
        zones = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in self.nodes()}
        return {pod["metadata"]["name"]: zones[pod["spec"]["nodeName"]] for pod in self.pods()}

    def nodes(self) -> list[Any]:
        """Kubernetes' nodes that have a zone."""
        return [node for node in self.access.get("nodes")["items"] if ZONE in node["metadata"]["labels"]]

    def set_config(self, **values: str) -> None:
        """Settings of all brokers; underscores stand for dots."""
        patch = {"spec": {"config": {name.replace("_", "."): value for name, value in values.items()}}}
        words = ("patch", "kafkacluster", self.name, "-n", self.namespace, "--type=merge", "-p", json.dumps(patch))
        self.access.kubectl(*words)

    def wait_until_whole(self, timeout_s: float = WHOLE_TIMEOUT_S) -> None:
        """Until the operator has seen the present spec and finds all Ready."""
        eventually(lambda: ready_now(self.object()), bool, timeout_s=timeout_s)

    def make_topic(self, name: str, *, partitions: int, replicas: int = 3) -> str:
        self.access.apply(self.topic_object(name, partitions=partitions, replicas=replicas))
        wait = ("wait", "--for=condition=Ready", f"kafkatopic/{name}", "-n", self.namespace, "--timeout=60s")
        self.access.kubectl(*wait)
        return name

    def topic_object(self, name: str, *, partitions: int, replicas: int, **labels: str) -> dict[str, Any]:
        return {
            "apiVersion": GROUP,
            "kind": "KafkaTopic",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "spec": {
                "clusterRef": {"name": self.name},
                "partitions": partitions,
                "replicas": replicas,
                "config": {"min.insync.replicas": "2"} if replicas > 2 else {},
                "reclaimPolicy": "Delete",
            },
        }


@dataclass(frozen=True)
class Applied:
    """The KafkaCluster of the examples, and how long it took to become Ready."""

    fleet: KafkaOnKubernetes
    ready_s: float


def ready_now(thing: Any) -> bool:
    """Ready, and not from before the last change of its spec."""
    status = thing.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions", [])}
    ready = conditions.get("Ready", {}).get("status") == "True"
    return bool(ready and status.get("observedGeneration") == thing["metadata"]["generation"])
