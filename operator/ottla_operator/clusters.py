"""Looking after one KafkaCluster: observe → decide → act → report. At most one pod is restarted in a look."""

import asyncio
import logging
import time
from datetime import UTC, datetime

import msgspec

from ottla_operator import observing
from ottla_operator.announcing import Announcing
from ottla_operator.applying import Applying
from ottla_operator.checking import refused_settings
from ottla_operator.environment import Environment
from ottla_operator.fleet import Fleet, FleetUnavailable
from ottla_operator.kube import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Kube,
    Manifest,
    kind_of,
)
from ottla_operator.manifests.config_map import config_map
from ottla_operator.manifests.disruption_budget import disruption_budget
from ottla_operator.manifests.server_properties import NodePorts
from ottla_operator.manifests.services import services
from ottla_operator.manifests.stateful_set import stateful_set
from ottla_operator.plans.cluster_status import blocked_status, cluster_status
from ottla_operator.plans.conditions import turned
from ottla_operator.plans.layout import Layout, plan_layout
from ottla_operator.plans.observed import ObservedPod, ObservedSet, set_of
from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.plans.rollout import FleetView, Rollout, Verdict, outdated, plan_rollout
from ottla_operator.reconciling import Key
from ottla_operator.resources.kafka_cluster import KafkaCluster, KafkaClusterStatus
from ottla_operator.resources.labels import LISTENER
from ottla_operator.status import Reporting

__all__ = ["Clusters"]

log = logging.getLogger("ottla.operator")

KIND = kind_of(KafkaCluster)
UNFINISHED_SECONDS, OBSTACLE_SECONDS, RESYNC_SECONDS = 1.0, 10.0, 60.0


class Clusters:
    """`seen` is what the watch has brought, by key."""

    def __init__(self, kube: Kube, environment: Environment) -> None:
        self._kube = kube
        self._environment = environment
        self._applying = Applying(kube)
        self._reporting = Reporting(kube)
        self._announcing = Announcing(kube, clock=time.monotonic)
        self._fleets: dict[Key, Fleet] = {}
        self.seen: dict[Key, KafkaCluster] = {}

    def fleet(self, key: Key) -> Fleet:
        return self._fleets.setdefault(key, Fleet())

    async def close(self) -> None:
        for fleet in self._fleets.values():
            await fleet.close()

    async def look(self, key: Key) -> float | None:
        cluster = self.seen.get(key)
        if cluster is None or cluster.metadata.deletion_timestamp:  # its objects go with it, by their owner
            await self._forget(key)
            return None
        cluster = msgspec.structs.replace(cluster, status=self._reporting.known(cluster.metadata, cluster.status))
        observed = await observing.observe(self._kube, cluster)
        layout = plan_layout(cluster, observed.records, observed.zones)
        if isinstance(layout, Obstacle):
            await self._report(cluster, blocked_status(cluster, layout, now=_now()))
            return OBSTACLE_SECONDS
        applied = await self._apply(cluster, layout, observed)
        if isinstance(applied, Obstacle):
            await self._report(cluster, blocked_status(cluster, applied, now=_now()))
            return OBSTACLE_SECONDS
        sets, ports = applied
        await self.fleet(key).reach(observing.addresses(observed.pods))
        fleet = await self._describe(key, observed.pods)
        rollout = await self._roll(cluster, layout, observed.pods, sets, fleet)
        status = cluster_status(
            cluster,
            layout,
            pods=observed.pods,
            fleet=fleet,
            rollout=rollout,
            node_ports=ports,
            domain=self._environment.cluster_domain,
            now=_now(),
        )
        await self._report(cluster, status)
        settled = all(one.status == ("True" if one.type == "Ready" else "False") for one in status.conditions)
        return RESYNC_SECONDS if settled else UNFINISHED_SECONDS

    async def _forget(self, key: Key) -> None:
        if fleet := self._fleets.pop(key, None):
            await fleet.close()

    # acting

    async def _apply(
        self, cluster: KafkaCluster, layout: Layout, observed: observing.Observed
    ) -> tuple[list[ObservedSet], NodePorts] | Obstacle:
        """Services first: the ports that they get on the nodes stand in the configuration."""
        domain, image = self._environment.cluster_domain, self._environment.broker_image
        wanted = services(cluster, layout)
        made = await self._applying.bring(SERVICES, wanted, observed.services)
        await self._remove_surplus(cluster, observed.services, made)
        ports = observing.node_ports(list(made.values()))
        configuration = config_map(cluster, layout, node_ports=ports, domain=domain)
        if refusal := next(filter(None, map(refused_settings, configuration["data"].values())), None):
            return Obstacle("InvalidConfig", f"{refusal}; nothing was changed, correct spec.config")
        await self._applying.bring(CONFIG_MAPS, [configuration], observed.config_maps)
        await self._applying.bring(DISRUPTION_BUDGETS, [disruption_budget(cluster)], observed.budgets)
        manifests = [stateful_set(cluster, layout, one, image=image, domain=domain) for one in layout.sets]
        sets = await self._applying.bring(STATEFUL_SETS, manifests, observed.sets)
        return [set_of(one) for one in sets.values()], ports

    async def _remove_surplus(self, cluster: KafkaCluster, there: list[Manifest], wanted: dict[str, Manifest]) -> None:
        """Services of listeners that are no longer in the spec."""
        for service in there:
            metadata = service["metadata"]
            if LISTENER in metadata.get("labels", {}) and metadata["name"] not in wanted:
                await self._kube.delete(SERVICES, cluster.metadata.namespace, metadata["name"], uid=metadata["uid"])

    async def _roll(
        self,
        cluster: KafkaCluster,
        layout: Layout,
        pods: list[ObservedPod],
        sets: list[ObservedSet],
        fleet: FleetView | None,
    ) -> Rollout:
        due = outdated(pods, sets)
        verdicts = await self._verdicts(cluster, [pod for pod in pods if pod.name in due]) if fleet else {}
        rollout = plan_rollout(pods, sets, nodes_wanted=layout.node_count, fleet=fleet, verdicts=verdicts)
        if pod := rollout.restart:
            text = f"pod {pod.name} is restarted: {due[pod.name]}"
            await self._announcing.say(KIND, cluster.metadata, reason="Restarting", message=text)
            await self._kube.delete(PODS, cluster.metadata.namespace, pod.name, uid=pod.uid)
        return rollout

    # asking

    async def _describe(self, key: Key, pods: list[ObservedPod]) -> FleetView | None:
        if not any(pod.ready for pod in pods):
            return None
        try:
            return await self.fleet(key).describe()
        except FleetUnavailable as error:
            log.debug("%s: %s", key, error)
            return None

    async def _verdicts(self, cluster: KafkaCluster, pods: list[ObservedPod]) -> dict[int, Verdict]:
        fleet = self.fleet(Key(cluster.metadata.namespace, cluster.metadata.name))
        try:
            found = await asyncio.gather(*(fleet.may_restart(pod.node_id) for pod in pods))
        except FleetUnavailable:
            return {}
        return {pod.node_id: verdict for pod, verdict in zip(pods, found, strict=True)}

    # reporting

    async def _report(self, cluster: KafkaCluster, status: KafkaClusterStatus) -> None:
        if not await self._reporting.report(KIND, cluster.metadata, before=cluster.status, now=status):
            return
        if change := turned(cluster.status, status):
            warning = change.status != "True"
            await self._announcing.say(
                KIND, cluster.metadata, reason=change.reason, message=change.message, warning=warning
            )


def _now() -> datetime:
    return datetime.now(UTC)
