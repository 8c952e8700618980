"""What the handlers share: an event of the watch updates what is known of its object and notifies the queues."""

from ottla_operator.kube.client import Kube
from ottla_operator.reconcile.applications import ApplicationReconciler
from ottla_operator.reconcile.clusters import ClusterReconciler
from ottla_operator.reconcile.environment import Environment
from ottla_operator.reconcile.queue import Key, ReconcileQueue
from ottla_operator.reconcile.topics import TopicReconciler, cluster_key
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.kafka_topic import KafkaTopic

__all__ = ["Reconcilers"]

TOPICS_GATHERED_SECONDS = 0.2  # hundreds come one by one, and each run asks the brokers about all of them


class Reconcilers:
    def __init__(self, kube: Kube, environment: Environment) -> None:
        self._kube = kube
        self._clusters = ClusterReconciler(kube, environment)
        self._topics = TopicReconciler(kube, self._clusters)
        applications = ApplicationReconciler(kube, self._clusters, environment)
        self._cluster_queue = ReconcileQueue("KafkaCluster", self._clusters.reconcile)
        self._topic_queue = ReconcileQueue(
            "topics of KafkaCluster", self._topics.reconcile, gather_s=TOPICS_GATHERED_SECONDS
        )
        self._application_queue = ReconcileQueue("SparkApplication", applications.reconcile)

    @staticmethod
    async def open(environment: Environment) -> "Reconcilers":
        return Reconcilers(await Kube.connect(), environment)

    async def close(self) -> None:
        for queue in (self._cluster_queue, self._topic_queue, self._application_queue):
            await queue.stop()
        await self._clusters.close()
        await self._kube.close()

    def cluster_changed(self, cluster: KafkaCluster, *, deleted: bool) -> None:
        key = Key(cluster.metadata.namespace, cluster.metadata.name)
        self._clusters.update(key, cluster, deleted=deleted)
        self._cluster_queue.notify(key)
        self._topic_queue.notify(key)

    def cluster_parts_changed(self, key: Key) -> None:
        self._cluster_queue.notify(key)

    def topic_changed(self, topic: KafkaTopic, *, deleted: bool) -> None:
        self._topics.update(topic, deleted=deleted)
        self._topic_queue.notify(cluster_key(topic))

    def application_changed(self, key: Key) -> None:
        self._application_queue.notify(key)
