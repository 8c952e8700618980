"""Reconciling all KafkaTopics of a cluster together: many topics are one call to the brokers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from ottla_operator.brokers.fleet import Fleet, FleetUnavailable
from ottla_operator.kube import moments, observing
from ottla_operator.kube.client import Kube, KubeError, KubeRefused, kind_of
from ottla_operator.kube.status import StatusWriter
from ottla_operator.plans.conditions import Finding, conditions
from ottla_operator.plans.obstacle import TemporaryFailure
from ottla_operator.plans.topics import (
    FINALIZER,
    FoundTopic,
    TopicOutcome,
    TopicPlan,
    finding,
    needs_finalizer,
    ownership_mark,
    plan_topics,
    without,
)
from ottla_operator.reconcile.clusters import ClusterReconciler
from ottla_operator.reconcile.queue import Key
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.kafka_topic import KafkaTopic, KafkaTopicStatus
from ottla_operator.resources.labels import OWNS_TOPIC
from ottla_operator.resources.model import is_same

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
        if not deleted:
            topics[topic.metadata.name] = topic
        elif is_same(topics.get(topic.metadata.name), topic):
            del topics[topic.metadata.name]

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
        fleet_id = cluster.status.cluster_id if cluster.status else None
        if fleet_id is None:
            raise FleetUnavailable("it has no id yet")
        await fleet.reach(observing.addresses(await observing.observe_pods(self._kube, cluster)))
        names = sorted({topic.topic_name for topic in topics})
        found = await fleet.topics(names)
        topics = [self._with_known_status(topic) for topic in topics]
        plan = plan_topics(topics, found, fleet_id=fleet_id)
        if plan.create:  # a topic must not be made for an object that is gone
            topics = await self._still_there(topics)
            plan = plan_topics(topics, found, fleet_id=fleet_id)
        unmarked = await self._mark_owners(topics, plan, fleet_id)
        plan = without(plan, topics, unmarked)
        outcomes = await _perform(fleet, plan)
        if outcomes:
            found = await fleet.topics(names)
        staying, leaving, gone = _sorted_out(topics, found, plan)
        await self._set_finalizers(gone, done=True)
        return await self._write_found([*staying, *leaving], found, outcomes, plan)

    async def _still_there(self, topics: Sequence[KafkaTopic]) -> list[KafkaTopic]:
        """The watch does not tell of objects that were deleted while it was away."""
        namespace = topics[0].metadata.namespace
        live = {body["metadata"]["uid"] for body in await self._kube.list(KIND, namespace)}
        for topic in topics:
            if topic.metadata.uid not in live:
                self.update(topic, deleted=True)
        return [topic for topic in topics if topic.metadata.uid in live]

    def _with_known_status(self, topic: KafkaTopic) -> KafkaTopic:
        return msgspec.structs.replace(topic, status=self._statuses.known(topic.metadata, topic.status))

    # finalizers, and whose a topic is

    async def _mark_owners(self, topics: Sequence[KafkaTopic], plan: TopicPlan, fleet_id: str) -> dict[str, Finding]:
        """Before anything is made. Object's name → why it could not be marked."""
        owners = [topic for topic in topics if topic.metadata.name in plan.owners]
        staying = [topic for topic in owners if topic.metadata.deletion_timestamp is None]
        problems = await asyncio.gather(*(self._mark(topic, ownership_mark(topic, fleet_id)) for topic in staying))
        return {topic.metadata.name: each for topic, each in zip(staying, problems, strict=True) if each is not None}

    async def _mark(self, topic: KafkaTopic, mark: str) -> Finding | None:
        finalizers = [FINALIZER] if needs_finalizer(topic, done=False) else []
        is_marked = topic.metadata.annotations.get(OWNS_TOPIC) == mark
        if is_marked and (FINALIZER in topic.metadata.finalizers) == bool(finalizers):
            return None
        try:
            if is_marked and not finalizers:
                await self._kube.remove_finalizer(KIND, topic.metadata, FINALIZER)
            else:
                await self._kube.mark(KIND, topic.metadata, finalizers=finalizers, annotations={OWNS_TOPIC: mark})
        except KubeRefused as refused:
            return Finding("Ready", False, refused.obstacle.reason, refused.obstacle.message)
        except KubeError as error:
            return Finding("Ready", False, "NotMarked", f"this object cannot be changed at the moment: {error}")
        return None

    async def _set_finalizers(self, topics: Sequence[KafkaTopic], *, done: bool) -> None:
        await _each(topics, lambda topic: self._set_finalizer(topic, done=done))

    async def _set_finalizer(self, topic: KafkaTopic, *, done: bool) -> None:
        if FINALIZER in topic.metadata.finalizers and not needs_finalizer(topic, done=done):
            await self._kube.remove_finalizer(KIND, topic.metadata, FINALIZER)

    # statuses

    async def _write_found(
        self,
        topics: Sequence[KafkaTopic],
        found: Mapping[str, FoundTopic],
        outcomes: Mapping[str, TopicOutcome],
        plan: TopicPlan,
    ) -> float:
        """After how many seconds to reconcile again."""

        def own(topic: KafkaTopic) -> FoundTopic | None:
            return found.get(topic.topic_name) if topic.metadata.name in plan.owners else None

        findings = {
            topic.metadata.name: finding(
                topic, found.get(topic.topic_name), outcomes.get(topic.topic_name), plan.refusals
            )
            for topic in topics
        }
        await _each(topics, lambda topic: self._write_status(topic, findings[topic.metadata.name], own(topic)))
        reasons = {one.reason for one in findings.values() if not one.holds}
        if reasons & {"Creating", "PartitionsOffline"}:
            return UNFINISHED_SECONDS
        return REFUSED_SECONDS if reasons else RESYNC_SECONDS

    async def _write_all(self, topics: Sequence[KafkaTopic], why: Finding) -> None:
        await _each(topics, lambda topic: self._write_status(topic, why, None))

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
        elif topic.topic_name in found and topic.metadata.name in plan.owners and needs_finalizer(topic, done=False):
            leaving.append(topic)
        else:
            gone.append(topic)
    return staying, leaving, gone


async def _each(topics: Sequence[KafkaTopic], act: Callable[[KafkaTopic], Awaitable[None]]) -> None:
    """What Kubernetes refuses for one object is logged, and tried again at the next resync; the others go on."""
    outcomes = await asyncio.gather(*(act(topic) for topic in topics), return_exceptions=True)
    for topic, outcome in zip(topics, outcomes, strict=True):
        if isinstance(outcome, TemporaryFailure):
            log.warning("KafkaTopic %s/%s: %s", topic.metadata.namespace, topic.metadata.name, outcome)
        elif isinstance(outcome, BaseException):
            raise outcome


async def _perform(fleet: Fleet, plan: TopicPlan) -> dict[str, TopicOutcome]:
    outcomes: dict[str, TopicOutcome] = {}
    if plan.create:
        outcomes |= await fleet.create_topics(plan.create)
    if plan.alter:
        outcomes |= await fleet.alter_topics(plan.alter)
    if plan.delete:
        outcomes |= await fleet.delete_topics(plan.delete)
    return outcomes
