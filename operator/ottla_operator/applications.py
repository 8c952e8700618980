"""Looking after one SparkApplication: observe → decide → report → act.

The phase is read from the API server at each look and reported before it is acted upon: what a reported phase asks for
is done at least once, by this operator or the next one.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from ottla_operator import observing
from ottla_operator.announcing import Announcing
from ottla_operator.applying import Applying
from ottla_operator.clusters import Clusters
from ottla_operator.environment import Environment
from ottla_operator.fleet import FleetUnavailable
from ottla_operator.kube import (
    CONFIG_MAPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    VOLUME_CLAIMS,
    Conflict,
    Kube,
    Manifest,
    kind_of,
)
from ottla_operator.manifests.spark_checkpoint import checkpoint_claim
from ottla_operator.manifests.spark_config import SparkPlace, config_map
from ottla_operator.manifests.spark_driver_access import driver_account, driver_role, driver_role_binding
from ottla_operator.manifests.spark_driver_pod import CONTAINER, driver_pod
from ottla_operator.manifests.spark_driver_service import driver_service
from ottla_operator.manifests.spark_names import bootstrap_servers, driver_name, selector_of
from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.plans.spark_driver import (
    ObservedDriver,
    driver_of,
    executors_obstacle,
    executors_running,
    last_words,
)
from ottla_operator.plans.spark_phases import NEXT, Event, Phase, Seen, event_of
from ottla_operator.plans.spark_status import Situation, after, spark_status
from ottla_operator.reconciling import Key
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.spark_application import Kafka, SparkApplication, SparkApplicationStatus
from ottla_operator.status import Reporting

__all__ = ["Applications"]

log = logging.getLogger("ottla.operator")

KIND = kind_of(SparkApplication)
LOG_LINES_MAX = 100
# When to look again, if nobody tells.
AT_ONCE_SECONDS = 0.0
LOOK_SECONDS = {Phase.WAITING: 2.0, Phase.SUBMITTED: 5.0, Phase.RUNNING: 60.0, Phase.PENDING_RERUN: 1.0}
ENDED = (Phase.COMPLETED, Phase.FAILED)


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of an application in Kubernetes. `driver`: whatever has its name, of this run or another."""

    driver: ObservedDriver | None
    executors: list[Manifest]
    waiting_for: Obstacle | None


class Applications:
    def __init__(self, kube: Kube, clusters: Clusters, environment: Environment) -> None:
        self._kube = kube
        self._clusters = clusters
        self._environment = environment
        self._applying = Applying(kube)
        self._reporting = Reporting(kube)
        self._announcing = Announcing(kube, clock=time.monotonic)

    async def look(self, key: Key) -> float | None:
        body = await self._kube.get(KIND, key.namespace, key.name)
        if body is None or "deletionTimestamp" in body["metadata"]:  # its objects go with it, by their owner
            return None
        application = SparkApplication.parse(body)
        before = application.status or SparkApplicationStatus()
        phase, now = Phase(before.application_state.state), datetime.now(UTC)
        around = await self._observe(application, phase)
        event = event_of(phase, _seen(application, before, around, now))
        status = before if event is None else await self._after(application, event, NEXT[phase, event], around, now)
        situation = _situation(around, Phase(status.application_state.state))
        status = spark_status(application, status, situation, now=now)
        await self._reporting.report(KIND, application.metadata, before=application.status, now=status)
        phase = Phase(status.application_state.state)
        await self._act(application, phase, status.execution_attempts, around)
        return LOOK_SECONDS.get(phase) if event is None or phase in ENDED else AT_ONCE_SECONDS

    async def _after(
        self, application: SparkApplication, event: Event, phase: Phase, around: Surroundings, now: datetime
    ) -> SparkApplicationStatus:
        failed = event is Event.DRIVER_FAILED
        failure = await self._failure(application, around.driver) if failed else ""
        message = f"{event.value}: {failure}" if failure else event.value
        await self._announcing.say(
            KIND, application.metadata, reason=phase.value, message=message, warning=failed or phase is Phase.FAILED
        )
        return after(application, event, phase, driver=driver_name(application), failure=failure, now=now)

    # observing

    async def _observe(self, application: SparkApplication, phase: Phase) -> Surroundings:
        place = application.metadata.namespace
        waiting = self._waiting_for(application) if phase is Phase.WAITING else _nothing()
        pod, executors, waiting_for = await asyncio.gather(
            self._kube.get(PODS, place, driver_name(application)),
            self._kube.list(PODS, place, labels=selector_of(application, "executor")),
            waiting,
        )
        return Surroundings(driver=driver_of(pod) if pod else None, executors=executors, waiting_for=waiting_for)

    async def _waiting_for(self, application: SparkApplication) -> Obstacle | None:
        kafka = application.spec.kafka
        if kafka is None:
            return None
        key = Key(application.metadata.namespace, kafka.cluster_ref.name)
        cluster = self._clusters.seen.get(key)
        if cluster is None:
            step = "make it, or correct spec.kafka.clusterRef"
            return Obstacle("ClusterNotFound", f"there is no KafkaCluster {key.name} in {key.namespace}; {step}")
        if not _is_ready(cluster):
            return Obstacle("ClusterNotReady", f"KafkaCluster {key.name} is not ready yet; see `kubectl get kfc`")
        return await self._missing_topics(key, cluster, kafka)

    async def _missing_topics(self, key: Key, cluster: KafkaCluster, kafka: Kafka) -> Obstacle | None:
        fleet = self._clusters.fleet(key)
        try:
            await fleet.reach(observing.addresses(await observing.observe_pods(self._kube, cluster)))
            found = await fleet.topics(kafka.topics)
        except FleetUnavailable as error:
            return Obstacle("ClusterNotReady", f"KafkaCluster {key.name} does not answer: {error}")
        missing = [name for name in kafka.topics if name not in found]
        if not missing:
            return None
        return Obstacle(
            "TopicsMissing", f"topics that do not exist yet: {', '.join(missing)}; make a KafkaTopic for each"
        )

    async def _failure(self, application: SparkApplication, driver: ObservedDriver | None) -> str:
        if driver is None:
            return f"pod {driver_name(application)} is gone: it was deleted, or its node was lost"
        output = await self._kube.log(
            application.metadata.namespace, driver.name, container=CONTAINER, lines_max=LOG_LINES_MAX
        )
        words = last_words(output)
        return f"pod {driver.name} failed with {driver.end or 'no reason given'}" + (f":\n{words}" if words else "")

    # acting

    async def _act(self, application: SparkApplication, phase: Phase, attempt: int, around: Surroundings) -> None:
        if phase is Phase.SUBMITTED:
            await self._submit(application, attempt, around.driver)
        elif phase is Phase.PENDING_RERUN:
            await self._remove(application, [around.driver] if around.driver else [], around.executors)
        elif phase in ENDED:
            await self._remove(application, [], around.executors)

    async def _submit(self, application: SparkApplication, attempt: int, driver: ObservedDriver | None) -> None:
        if driver is not None:
            if not _is_of_this_run(driver, application, attempt):
                await self._remove(application, [driver], [])
            return
        place = self._place(application)
        await self._bring_access(application)
        await self._bring_claim(application)
        await self._applying.bring(SERVICES, [driver_service(application)], [])
        await self._applying.bring(CONFIG_MAPS, [config_map(application, place)], [])
        try:
            await self._kube.create(driver_pod(application, place, attempt=attempt), PODS)
        except Conflict:
            log.debug("%s: the driver of an earlier run is not gone yet", application.metadata.name)

    async def _bring_access(self, application: SparkApplication) -> None:
        if application.spec.driver.service_account is None:
            await self._applying.bring(SERVICE_ACCOUNTS, [driver_account(application)], [])
            await self._applying.bring(ROLES, [driver_role(application)], [])
            await self._applying.bring(ROLE_BINDINGS, [driver_role_binding(application)], [])

    async def _bring_claim(self, application: SparkApplication) -> None:
        """One that is there is taken as it is: claims hardly change."""
        claim = checkpoint_claim(application)
        if claim is not None:
            place = claim["metadata"]
            if await self._kube.get(VOLUME_CLAIMS, place["namespace"], place["name"]) is None:
                await self._kube.apply(claim, VOLUME_CLAIMS)

    async def _remove(
        self, application: SparkApplication, drivers: Sequence[ObservedDriver], executors: Sequence[Manifest]
    ) -> None:
        going = [(one.name, one.uid) for one in drivers if not one.terminating]
        metadata = [one["metadata"] for one in executors if "deletionTimestamp" not in one["metadata"]]
        for name, uid in [*going, *((one["name"], one["uid"]) for one in metadata)]:
            await self._kube.delete(PODS, application.metadata.namespace, name, uid=uid)

    def _place(self, application: SparkApplication) -> SparkPlace:
        spec, environment = application.spec, self._environment
        return SparkPlace(
            image=spec.image or environment.spark_image,
            pull_policy=spec.image_pull_policy or environment.pull_policy,
            domain=environment.cluster_domain,
            bootstrap=bootstrap_servers(application, domain=environment.cluster_domain),
        )


def _seen(application: SparkApplication, status: SparkApplicationStatus, around: Surroundings, now: datetime) -> Seen:
    phase, driver = Phase(status.application_state.state), around.driver
    ended = status.termination_time
    return Seen(
        spec_changed=status.observed_generation not in (None, application.metadata.generation),
        kafka_ready=around.waiting_for is None,
        driver=driver
        if driver is not None
        and (phase is Phase.PENDING_RERUN or _is_of_this_run(driver, application, status.execution_attempts))
        else None,
        executors_left=len(around.executors),
        attempts=status.execution_attempts,
        policy=application.spec.restart_policy,
        ended=datetime.fromisoformat(ended) if ended else None,
        now=now,
    )


def _situation(around: Surroundings, phase: Phase) -> Situation:
    in_the_way = around.driver.obstacle if around.driver else None
    return Situation(
        waiting_for=around.waiting_for,
        obstacle=in_the_way or executors_obstacle(around.executors),
        executors=executors_running(around.executors) if phase is Phase.RUNNING else None,
    )


def _is_of_this_run(driver: ObservedDriver, application: SparkApplication, attempt: int) -> bool:
    return driver.owner_uid == application.metadata.uid and driver.attempt == attempt


def _is_ready(cluster: KafkaCluster) -> bool:
    conditions = cluster.status.conditions if cluster.status else ()
    return any(one.type == "Ready" and one.status == "True" for one in conditions)


async def _nothing() -> None:
    return None
