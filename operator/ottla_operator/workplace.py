"""What the handlers share: the API server, what was seen of it, and the queues of looks."""

from dataclasses import dataclass

from ottla_operator.applications import Applications
from ottla_operator.clusters import Clusters
from ottla_operator.environment import Environment
from ottla_operator.kube import Kube
from ottla_operator.reconciling import Reconciling
from ottla_operator.topics import Topics

__all__ = ["Workplace"]

TOPICS_GATHERED_SECONDS = 0.2  # hundreds come one by one, and each look asks about all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    environment: Environment
    kube: Kube
    clusters: Clusters
    topics: Topics
    cluster_queue: Reconciling
    topic_queue: Reconciling
    application_queue: Reconciling

    @staticmethod
    async def open(environment: Environment) -> "Workplace":
        kube = await Kube.connect()
        clusters = Clusters(kube, environment)
        topics = Topics(kube, clusters)
        return Workplace(
            environment=environment,
            kube=kube,
            clusters=clusters,
            topics=topics,
            cluster_queue=Reconciling("KafkaCluster", clusters.look),
            topic_queue=Reconciling("topics of KafkaCluster", topics.look, gather_s=TOPICS_GATHERED_SECONDS),
            application_queue=Reconciling("SparkApplication", Applications(kube, clusters, environment).look),
        )

    async def close(self) -> None:
        await self.cluster_queue.stop()
        await self.topic_queue.stop()
        await self.application_queue.stop()
        await self.clusters.close()
        await self.kube.close()
