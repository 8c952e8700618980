"""Reconciling all KafkaTopics of a cluster together: many topics are one call to the brokers."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from ottla_operator.brokers.fleet import Fleet, FleetUnavailable
from ottla_operator.kube import moments, observing
from ottla_operator.kube.client import Kube, kind_of
from ottla_operator.kube.status import StatusWriter
from ottla_operator.plans.conditions import Finding, conditions
from ottla_operator.plans.topics import (
    FINALIZER,
    FoundTopic,
    TopicOutcome,
    TopicPlan,
    finding,
    needs_finalizer,
    plan_topics,
)
from ottla_operator.reconcile.clusters import ClusterReconciler
from ottla_operator.reconcile.queue import Key
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.kafka_topic import KafkaTopic, KafkaTopicStatus

__all__ = ["TopicReconciler", "cluster_key"]

log = logging.getLogger("ottla.operator")

UNFINISHED_SECONDS, REFUSED_SECONDS, RESYNC_SECONDS = 1.0, 10.0, 60.0
KIND = kind_of(KafkaTopic)


def cluster_key(topic: KafkaTopic) -> Key:
    return Key(topic.metadata.namespace, topic.spec.cluster_ref.name)


class TopicReconciler:
    def __init__(self, kube: Kube, clusters: ClusterReconciler) -> None:
        self._kube = kube
        self._clusters = clusters
        self._statuses = StatusWriter(kube)
        self._known: dict[Key, dict[str, KafkaTopic]] = {}  # by cluster and name

    def update(self, topic: KafkaTopic, *, deleted: bool) -> None:
        """From the watch."""
        topics = self._known.setdefault(cluster_key(topic), {})
        if deleted:
            topics.pop(topic.metadata.name, None)
        else:
            topics[topic.metadata.name] = topic

    async def reconcile(self, key: Key) -> float | None:
        """The topics of the cluster `key`. Returns after how many seconds to do it again, at the latest."""
        topics = list(self._known.get(key, {}).values())
        if not topics:
            self._known.pop(key, None)
            return None
        cluster = self._clusters.known(key)
        if cluster is None or cluster.metadata.deletion_timestamp:
            return await self._without_cluster(key, topics)
        try:
            return await self._with_cluster(cluster, self._clusters.fleet(key), topics)
        except FleetUnavailable as error:
            log.debug("topics of %s: %s", key, error)
            why = Finding("Ready", False, "ClusterNotReady", f"KafkaCluster {key.name} does not answer yet: {error}")
            await self._set_finalizers([topic for topic in topics if topic.metadata.deletion_timestamp], done=False)
            await self._write_all([topic for topic in topics if not self._is_settled(topic)], why)
            return UNFINISHED_SECONDS

    def _is_settled(self, topic: KafkaTopic) -> bool:
        """Ready by this generation of its spec: it stays so while the brokers do not answer for a moment."""
        status = self._statuses.known(topic.metadata, topic.status)
        if status is None or topic.metadata.deletion_timestamp:
            return False
        if status.observed_generation != topic.metadata.generation:
            return False
        return any(one.type == "Ready" and one.status == "True" for one in status.conditions)

    async def _without_cluster(self, key: Key, topics: Sequence[KafkaTopic]) -> float:
        """No fleet to delete topics from, so no finalizer stays. The API server is asked: the watch may lag."""
        live = await self._kube.get(kind_of(KafkaCluster), key.namespace, key.name)
        if live is not None and "deletionTimestamp" not in live["metadata"]:
            return UNFINISHED_SECONDS
        text = f"there is no KafkaCluster {key.name} in namespace {key.namespace}; make it, or correct spec.clusterRef"
        await self._set_finalizers(topics, done=True)
        await self._write_all(topics, Finding("Ready", False, "ClusterNotFound", text))
        return RESYNC_SECONDS

    async def _with_cluster(self, cluster: KafkaCluster, fleet: Fleet, topics: Sequence[KafkaTopic]) -> float:
        await fleet.reach(observing.addresses(await observing.observe_pods(self._kube, cluster)))
        names = sorted({topic.topic_name for topic in topics})
        found = await fleet.topics(names)
        await self._set_finalizers([topic for topic in topics if not topic.metadata.deletion_timestamp], done=False)
        plan = plan_topics(topics, found)
        outcomes = await _perform(fleet, plan)
        if outcomes:
            found = await fleet.topics(names)
        staying, leaving, gone = _sorted_out(topics, found, plan)
        await self._set_finalizers(gone, done=True)
        await self._set_finalizers(leaving, done=False)
        return await self._write_found([*staying, *leaving], found, outcomes, plan.rivals)

    # finalizers

    async def _set_finalizers(self, topics: Sequence[KafkaTopic], *, done: bool) -> None:
        await asyncio.gather(*(self._set_finalizer(topic, done=done) for topic in topics))

    async def _set_finalizer(self, topic: KafkaTopic, *, done: bool) -> None:
        needed, present = needs_finalizer(topic, done=done), FINALIZER in topic.metadata.finalizers
        if needed and not present:
            await self._kube.add_finalizer(KIND, topic.metadata, FINALIZER)
        elif present and not needed:
            await self._kube.remove_finalizer(KIND, topic.metadata, FINALIZER)

    # statuses

    async def _write_found(
        self,
        topics: Sequence[KafkaTopic],
        found: Mapping[str, FoundTopic],
        outcomes: Mapping[str, TopicOutcome],
        rivals: Mapping[str, str],
    ) -> float:
        """After how many seconds to reconcile again."""
        findings = {
            topic.metadata.name: finding(topic, found.get(topic.topic_name), outcomes.get(topic.topic_name), rivals)
            for topic in topics
        }
        await asyncio.gather(
            *(self._write_status(topic, findings[topic.metadata.name], found.get(topic.topic_name)) for topic in topics)
        )
        reasons = {one.reason for one in findings.values() if not one.holds}
        if reasons & {"Creating", "PartitionsOffline"}:
            return UNFINISHED_SECONDS
        return REFUSED_SECONDS if reasons else RESYNC_SECONDS

    async def _write_all(self, topics: Sequence[KafkaTopic], why: Finding) -> None:
        await asyncio.gather(*(self._write_status(topic, why, None) for topic in topics))

    async def _write_status(self, topic: KafkaTopic, why: Finding, there: FoundTopic | None) -> None:
        known = self._statuses.known(topic.metadata, topic.status)
        before = known or KafkaTopicStatus()
        generation = topic.metadata.generation
        status = KafkaTopicStatus(
            conditions=conditions([why], before.conditions, generation=generation, now=moments.now()),
            observed_generation=generation,
            topic_name=topic.topic_name,
            topic_id=there.id if there else before.topic_id,
            partitions=there.partitions if there else before.partitions,
            replicas=there.replicas if there else before.replicas,
        )
        await self._statuses.write(KIND, topic.metadata, before=known, now=status)


def _sorted_out(
    topics: Sequence[KafkaTopic], found: Mapping[str, FoundTopic], plan: TopicPlan
) -> tuple[list[KafkaTopic], list[KafkaTopic], list[KafkaTopic]]:
    """Objects that stay, that wait until their topic is deleted, and that need no finalizer any more."""
    staying, leaving, gone = [], [], []
    for topic in topics:
        if not topic.metadata.deletion_timestamp:
            staying.append(topic)
        elif (
            topic.topic_name in found and topic.metadata.name not in plan.rivals and needs_finalizer(topic, done=False)
        ):
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
