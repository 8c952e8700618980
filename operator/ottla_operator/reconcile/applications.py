"""Reconciling one SparkApplication: observe → decide → write the status → act.

The phase is read from the API server each time, and written before it is acted upon: what a phase asks for is done at
least once, by this operator or by the one that is started after it.
"""

import asyncio
import logging
import time
from collections.abc import Sequence

import msgspec

from ottla_operator.brokers.fleet import FleetUnavailable
from ottla_operator.kube import moments, observing
from ottla_operator.kube.applying import Applier
from ottla_operator.kube.client import (
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
from ottla_operator.kube.events import EventRecorder
from ottla_operator.kube.status import StatusWriter
from ottla_operator.manifests.spark_checkpoint import checkpoint_claim
from ottla_operator.manifests.spark_config import SparkRuntime, config_map
from ottla_operator.manifests.spark_driver_access import driver_account, driver_role, driver_role_binding
from ottla_operator.manifests.spark_driver_pod import CONTAINER, driver_pod
from ottla_operator.manifests.spark_driver_service import driver_service
from ottla_operator.manifests.spark_names import bootstrap_servers, driver_name, metadata_of, selector_of
from ottla_operator.plans.conditions import changed_condition
from ottla_operator.plans.obstacle import Blocked, Obstacle
from ottla_operator.plans.ownership import Ownership, name_taken, ownership
from ottla_operator.plans.spark_driver import (
    ObservedDriver,
    driver_of,
    executors_obstacle,
    executors_running,
    last_words,
)
from ottla_operator.plans.spark_phases import NEXT, Event, Observation, Phase, event_of
from ottla_operator.plans.spark_status import Situation, after, spark_status
from ottla_operator.reconcile.clusters import ClusterReconciler
from ottla_operator.reconcile.environment import Environment
from ottla_operator.reconcile.queue import Key
from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.labels import APPLICATION
from ottla_operator.resources.spark_application import Kafka, SparkApplication, SparkApplicationStatus

__all__ = ["ApplicationReconciler"]

log = logging.getLogger("ottla.operator")

KIND = kind_of(SparkApplication)
LOG_LINES_MAX = 100
# When to reconcile again without a notification.
AT_ONCE_SECONDS, BLOCKED_SECONDS = 0.0, 10.0
AGAIN_SECONDS = {Phase.WAITING: 2.0, Phase.SUBMITTED: 5.0, Phase.RUNNING: 60.0, Phase.PENDING_RERUN: 1.0}
ENDED = (Phase.COMPLETED, Phase.FAILED)
BLOCKED_MAX = 10_000


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What exists of an application in Kubernetes. `driver`: of this run or another; `stranger`: a pod of somebody else
    that has the driver's name."""

    driver: ObservedDriver | None
    stranger: Manifest | None
    executors: list[Manifest]
    waiting_for: Obstacle | None


class ApplicationReconciler:
    def __init__(self, kube: Kube, clusters: ClusterReconciler, environment: Environment) -> None:
        self._kube = kube
        self._clusters = clusters
        self._environment = environment
        self._applier = Applier(kube)
        self._statuses = StatusWriter(kube)
        self._events = EventRecorder(kube, clock=time.monotonic)
        self._blocked: dict[str, Obstacle] = {}  # by uid: what the last attempt to act met

    async def reconcile(self, key: Key) -> float | None:
        """After how many seconds to do it again, at the latest."""
        body = await self._kube.get(KIND, key.namespace, key.name)
        if body is None or "deletionTimestamp" in body["metadata"]:  # Kubernetes deletes its objects
            return None
        application = SparkApplication.parse(body)
        before = application.status or SparkApplicationStatus()
        phase, now = Phase(before.application_state.state), moments.now()
        observed = await self._observe(application, phase)
        event = event_of(phase, _observation(application, before, observed))
        status = before if event is None else await self._after(application, event, NEXT[phase, event], observed, now)
        phase = Phase(status.application_state.state)
        situation = _situation(observed, phase, self._blocked.get(application.metadata.uid))
        status = spark_status(application, status, situation, now=now)
        await self._statuses.write(KIND, application.metadata, before=application.status, now=status)
        try:
            await self._act(application, phase, status.execution_attempts, observed)
        except Blocked as blocked:
            return await self._block(application, status, _situation(observed, phase, blocked.obstacle), now)
        self._blocked.pop(application.metadata.uid, None)
        return AGAIN_SECONDS.get(phase) if event is None or phase in ENDED else AT_ONCE_SECONDS

    async def _block(
        self, application: SparkApplication, status: SparkApplicationStatus, situation: Situation, now: str
    ) -> float:
        """It is remembered, so that the status does not change at each attempt."""
        if len(self._blocked) >= BLOCKED_MAX:
            self._blocked.clear()
        if situation.obstacle is not None:
            self._blocked[application.metadata.uid] = situation.obstacle
        now_blocked = spark_status(application, status, situation, now=now)
        if await self._statuses.write(KIND, application.metadata, before=status, now=now_blocked):
            await self._record_change(application, status, now_blocked)
        return BLOCKED_SECONDS

    async def _record_change(
        self, application: SparkApplication, before: SparkApplicationStatus, now: SparkApplicationStatus
    ) -> None:
        if change := changed_condition(before, now):
            await self._events.record(
                KIND, application.metadata, reason=change.reason, message=change.message, warning=True
            )

    async def _after(
        self, application: SparkApplication, event: Event, phase: Phase, observed: Observed, now: str
    ) -> SparkApplicationStatus:
        failed = event is Event.DRIVER_FAILED
        failure = await self._failure(application, observed.driver) if failed else ""
        message = f"{event.value}: {failure}" if failure else event.value
        await self._events.record(
            KIND, application.metadata, reason=phase.value, message=message, warning=failed or phase is Phase.FAILED
        )
        return after(application, event, phase, driver=driver_name(application), failure=failure, now=now)

    # observing

    async def _observe(self, application: SparkApplication, phase: Phase) -> Observed:
        namespace = application.metadata.namespace
        waiting = self._waiting_for(application) if phase is Phase.WAITING else _nothing()
        pod, executors, waiting_for = await asyncio.gather(
            self._kube.get(PODS, namespace, driver_name(application)),
            self._kube.list(PODS, namespace, labels=selector_of(application, "executor")),
            waiting,
        )
        ours = pod is not None and _is_driver_of(pod, application)
        return Observed(
            driver=driver_of(pod) if pod and ours else None,
            stranger=None if ours else pod,
            executors=[one for one in executors if _is_executor_of(one, driver_name(application))],
            waiting_for=waiting_for,
        )

    async def _waiting_for(self, application: SparkApplication) -> Obstacle | None:
        kafka = application.spec.kafka
        if kafka is None:
            return None
        key = Key(application.metadata.namespace, kafka.cluster_ref.name)
        cluster = self._clusters.known(key)
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

    async def _act(self, application: SparkApplication, phase: Phase, attempt: int, observed: Observed) -> None:
        if phase is Phase.SUBMITTED:
            await self._submit(application, attempt, observed)
        elif phase is Phase.PENDING_RERUN:
            await self._remove(application, [observed.driver] if observed.driver else [], observed.executors)
        elif phase in ENDED:
            await self._remove(application, [], observed.executors)

    async def _submit(self, application: SparkApplication, attempt: int, observed: Observed) -> None:
        if observed.stranger is not None:
            raise Blocked(name_taken(observed.stranger))
        if (driver := observed.driver) is not None:
            if not _is_of_this_run(driver, application, attempt):
                await self._remove(application, [driver], [])
            return
        runtime = self._runtime(application)
        await self._apply_access(application)
        await self._make_claim(application)
        await self._applier.apply(SERVICES, [driver_service(application)], [])
        await self._applier.apply(CONFIG_MAPS, [config_map(application, runtime)], [])
        try:
            await self._kube.create(driver_pod(application, runtime, attempt=attempt), PODS)
        except Conflict:
            log.debug("%s: the driver of an earlier run is not gone yet", application.metadata.name)

    async def _apply_access(self, application: SparkApplication) -> None:
        if application.spec.driver.service_account is None:
            await self._applier.apply(SERVICE_ACCOUNTS, [driver_account(application)], [])
            await self._applier.apply(ROLES, [driver_role(application)], [])
            await self._applier.apply(ROLE_BINDINGS, [driver_role_binding(application)], [])

    async def _make_claim(self, application: SparkApplication) -> None:
        """An existing one is used as it is: hardly anything of a claim can change."""
        claim = checkpoint_claim(application)
        if claim is not None:
            metadata = claim["metadata"]
            live = await self._kube.get(VOLUME_CLAIMS, metadata["namespace"], metadata["name"])
            if live is None:
                await self._kube.apply(claim, VOLUME_CLAIMS)
            elif live["metadata"].get("labels", {}).get(APPLICATION) != application.metadata.name:
                step = "if it is meant, name it in spec.checkpoint.volume.claimName"
                raise Blocked(name_taken(live, step=step))

    async def _remove(
        self, application: SparkApplication, drivers: Sequence[ObservedDriver], executors: Sequence[Manifest]
    ) -> None:
        going = [(one.name, one.uid) for one in drivers if not one.terminating]
        metadata = [one["metadata"] for one in executors if "deletionTimestamp" not in one["metadata"]]
        for name, uid in [*going, *((one["name"], one["uid"]) for one in metadata)]:
            await self._kube.delete(PODS, application.metadata.namespace, name, uid=uid)

    def _runtime(self, application: SparkApplication) -> SparkRuntime:
        spec, environment = application.spec, self._environment
        return SparkRuntime(
            image=spec.image or environment.spark_image,
            pull_policy=spec.image_pull_policy or environment.pull_policy,
            domain=environment.cluster_domain,
            bootstrap=bootstrap_servers(application, domain=environment.cluster_domain),
        )


def _observation(application: SparkApplication, status: SparkApplicationStatus, observed: Observed) -> Observation:
    phase, driver = Phase(status.application_state.state), observed.driver
    ended = status.termination_time
    return Observation(
        spec_changed=status.observed_generation not in (None, application.metadata.generation),
        kafka_ready=observed.waiting_for is None,
        driver=driver
        if driver is not None
        and (phase is Phase.PENDING_RERUN or _is_of_this_run(driver, application, status.execution_attempts))
        else None,
        executors_left=len(observed.executors),
        attempts=status.execution_attempts,
        policy=application.spec.restart_policy,
        ended_s_ago=moments.seconds_since(ended) if ended else None,
    )


def _situation(observed: Observed, phase: Phase, blocked: Obstacle | None) -> Situation:
    obstacle = blocked or (observed.driver.obstacle if observed.driver else None)
    return Situation(
        waiting_for=observed.waiting_for,
        obstacle=obstacle or executors_obstacle(observed.executors),
        executors=executors_running(observed.executors) if phase is Phase.RUNNING else None,
    )


def _is_driver_of(pod: Manifest, application: SparkApplication) -> bool:
    """Also one that a former application of the same name left."""
    wanted = {"metadata": metadata_of(application, driver_name(application))}
    return ownership(pod, wanted) is not Ownership.FOREIGN


def _is_executor_of(pod: Manifest, driver: str) -> bool:
    """Spark makes the driver's pod their owner."""
    return any((one["kind"], one["name"]) == ("Pod", driver) for one in pod["metadata"].get("ownerReferences", ()))


def _is_of_this_run(driver: ObservedDriver, application: SparkApplication, attempt: int) -> bool:
    return driver.owner_uid == application.metadata.uid and driver.attempt == attempt


def _is_ready(cluster: KafkaCluster) -> bool:
    conditions = cluster.status.conditions if cluster.status else ()
    return any(one.type == "Ready" and one.status == "True" for one in conditions)


async def _nothing() -> None:
    return None
