"""Looking after all KafkaTopics of a cluster together: many topics are one call to the brokers."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ottla_operator import observing
from ottla_operator.clusters import Clusters
from ottla_operator.fleet import Fleet, FleetUnavailable
from ottla_operator.kube import Kube, kind_of
from ottla_operator.plans.conditions import Finding, conditions
from ottla_operator.plans.topics import (
    FINALIZER,
    FoundTopic,
    TopicOutcome,
    TopicPlan,
    finding,
    must_hold,
    plan_topics,
)
from ottla_operator.reconciling import Key
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.kafka_topic import KafkaTopic, KafkaTopicStatus
from ottla_operator.status import Reporting

__all__ = ["Topics", "cluster_key"]

log = logging.getLogger("ottla.operator")

UNFINISHED_SECONDS, REFUSED_SECONDS, RESYNC_SECONDS = 1.0, 10.0, 60.0
KIND = kind_of(KafkaTopic)


def cluster_key(topic: KafkaTopic) -> Key:
    return Key(topic.metadata.namespace, topic.spec.cluster_ref.name)


class Topics:
    """`seen` is what the watch has brought, by cluster and name."""

    def __init__(self, kube: Kube, clusters: Clusters) -> None:
        self._kube = kube
        self._clusters = clusters
        self._reporting = Reporting(kube)
        self.seen: dict[Key, dict[str, KafkaTopic]] = {}

    async def look(self, key: Key) -> float | None:
        """At the topics of the cluster `key`."""
        topics = list(self.seen.get(key, {}).values())
        if not topics:
            self.seen.pop(key, None)
            return None
        cluster = self._clusters.seen.get(key)
        if cluster is None or cluster.metadata.deletion_timestamp:
            return await self._without_cluster(key, topics)
        try:
            return await self._with_cluster(cluster, self._clusters.fleet(key), topics)
        except FleetUnavailable as error:
            log.debug("topics of %s: %s", key, error)
            why = Finding("Ready", False, "ClusterNotReady", f"KafkaCluster {key.name} does not answer yet: {error}")
            await self._hold([topic for topic in topics if topic.metadata.deletion_timestamp], done=False)
            await self._tell_all([topic for topic in topics if not self._is_settled(topic)], why)
            return UNFINISHED_SECONDS

    def _is_settled(self, topic: KafkaTopic) -> bool:
        """What was found about this very spec still holds while the brokers are silent for a moment."""
        status = self._reporting.known(topic.metadata, topic.status)
        if status is None or topic.metadata.deletion_timestamp:
            return False
        if status.observed_generation != topic.metadata.generation:
            return False
        return any(one.type == "Ready" and one.status == "True" for one in status.conditions)

    async def _without_cluster(self, key: Key, topics: Sequence[KafkaTopic]) -> float:
        """Nothing to delete topics from: nothing may hold the objects. Asked for once more, since a watch may lag."""
        there = await self._kube.get(kind_of(KafkaCluster), key.namespace, key.name)
        if there is not None and "deletionTimestamp" not in there["metadata"]:
            return UNFINISHED_SECONDS
        text = f"there is no KafkaCluster {key.name} in namespace {key.namespace}; make it, or correct spec.clusterRef"
        await self._hold(topics, done=True)
        await self._tell_all(topics, Finding("Ready", False, "ClusterNotFound", text))
        return RESYNC_SECONDS

    async def _with_cluster(self, cluster: KafkaCluster, fleet: Fleet, topics: Sequence[KafkaTopic]) -> float:
        await fleet.reach(observing.addresses(await observing.observe_pods(self._kube, cluster)))
        names = sorted({topic.topic_name for topic in topics})
        found = await fleet.topics(names)
        await self._hold([topic for topic in topics if not topic.metadata.deletion_timestamp], done=False)
        plan = plan_topics(topics, found)
        outcomes = await _perform(fleet, plan)
        if outcomes:
            found = await fleet.topics(names)
        staying, leaving, gone = _sorted_out(topics, found, plan)
        await self._hold(gone, done=True)
        await self._hold(leaving, done=False)
        return await self._tell([*staying, *leaving], found, outcomes, plan.rivals)

    # finalizers

    async def _hold(self, topics: Sequence[KafkaTopic], *, done: bool) -> None:
        await asyncio.gather(*(self._hold_one(topic, hold=must_hold(topic, done=done)) for topic in topics))

    async def _hold_one(self, topic: KafkaTopic, *, hold: bool) -> None:
        held = FINALIZER in topic.metadata.finalizers
        if hold and not held:
            await self._kube.hold(KIND, topic.metadata, FINALIZER)
        elif held and not hold:
            await self._kube.release(KIND, topic.metadata, FINALIZER)

    # telling

    async def _tell(
        self,
        topics: Sequence[KafkaTopic],
        found: Mapping[str, FoundTopic],
        outcomes: Mapping[str, TopicOutcome],
        rivals: Mapping[str, str],
    ) -> float:
        """When to look again."""
        findings = {
            topic.metadata.name: finding(topic, found.get(topic.topic_name), outcomes.get(topic.topic_name), rivals)
            for topic in topics
        }
        await asyncio.gather(
            *(self._report(topic, findings[topic.metadata.name], found.get(topic.topic_name)) for topic in topics)
        )
        reasons = {one.reason for one in findings.values() if not one.holds}
        if reasons & {"Creating", "PartitionsOffline"}:
            return UNFINISHED_SECONDS
        return REFUSED_SECONDS if reasons else RESYNC_SECONDS

    async def _tell_all(self, topics: Sequence[KafkaTopic], why: Finding) -> None:
        await asyncio.gather(*(self._report(topic, why, None) for topic in topics))

    async def _report(self, topic: KafkaTopic, why: Finding, there: FoundTopic | None) -> None:
        known = self._reporting.known(topic.metadata, topic.status)
        before = known or KafkaTopicStatus()
        generation = topic.metadata.generation
        status = KafkaTopicStatus(
            conditions=conditions([why], before.conditions, generation=generation, now=datetime.now(UTC)),
            observed_generation=generation,
            topic_name=topic.topic_name,
            topic_id=there.id if there else before.topic_id,
            partitions=there.partitions if there else before.partitions,
            replicas=there.replicas if there else before.replicas,
        )
        await self._reporting.report(KIND, topic.metadata, before=known, now=status)


def _sorted_out(
    topics: Sequence[KafkaTopic], found: Mapping[str, FoundTopic], plan: TopicPlan
) -> tuple[list[KafkaTopic], list[KafkaTopic], list[KafkaTopic]]:
    """Objects that stay, that wait for their topic's end, and that nothing holds any more."""
    staying, leaving, gone = [], [], []
    for topic in topics:
        if not topic.metadata.deletion_timestamp:
            staying.append(topic)
        elif topic.topic_name in found and topic.metadata.name not in plan.rivals and must_hold(topic, done=False):
            leaving.append(topic)
        else:
            gone.append(topic)
    return staying, leaving, gone


async def _perform(fleet: Fleet, plan: TopicPlan) -> dict[str, TopicOutcome]:
    outcomes: dict[str, TopicOutcome] = {}
    if plan.create:
        outcomes |= await fleet.create_topics(plan.create)
    if plan.alter:
        outcomes |= await fleet.alter_topics(plan.alter)
    if plan.delete:
        outcomes |= await fleet.delete_topics(plan.delete)
    return outcomes
