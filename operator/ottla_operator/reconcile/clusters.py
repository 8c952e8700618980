"""Reconciling one KafkaCluster: observe → decide → act → write the status. At most one pod is restarted each time."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence

import msgspec

from ottla_operator.brokers.fleet import Fleet, FleetUnavailable
from ottla_operator.brokers.settings import refused_settings
from ottla_operator.kube import moments, observing
from ottla_operator.kube.applying import Applier
from ottla_operator.kube.client import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Conflict,
    Kind,
    Kube,
    Manifest,
    kind_of,
)
from ottla_operator.kube.events import EventRecorder
from ottla_operator.kube.status import StatusWriter
from ottla_operator.manifests.config_map import config_map
from ottla_operator.manifests.disruption_budget import disruption_budget
from ottla_operator.manifests.names import selector_of
from ottla_operator.manifests.server_properties import NodePorts
from ottla_operator.manifests.services import services
from ottla_operator.manifests.stateful_set import claim_names, stateful_set
from ottla_operator.plans.cluster_status import blocked_status, cluster_status, is_settled
from ottla_operator.plans.comparison import covers
from ottla_operator.plans.conditions import changed_condition
from ottla_operator.plans.layout import Layout, plan_layout
from ottla_operator.plans.observed import ObservedPod, ObservedSet, set_of
from ottla_operator.plans.obstacle import Blocked, Obstacle
from ottla_operator.plans.ownership import Ownership, name_taken, ownership
from ottla_operator.plans.rollout import FleetView, Rollout, Verdict, outdated, plan_rollout
from ottla_operator.reconcile.environment import Environment
from ottla_operator.reconcile.queue import Key
from ottla_operator.resources.kafka_cluster import KafkaCluster, KafkaClusterStatus
from ottla_operator.resources.labels import LISTENER
from ottla_operator.resources.model import is_same

__all__ = ["ClusterReconciler"]

log = logging.getLogger("ottla.operator")

KIND = kind_of(KafkaCluster)
UNFINISHED_SECONDS, OBSTACLE_SECONDS, RESYNC_SECONDS = 1.0, 10.0, 60.0


class ClusterReconciler:
    """Also what others ask about clusters: their objects as the watch has brought them, and their fleets."""

    def __init__(self, kube: Kube, environment: Environment) -> None:
        self._kube = kube
        self._environment = environment
        self._applier = Applier(kube)
        self._statuses = StatusWriter(kube)
        self._events = EventRecorder(kube, clock=time.monotonic)
        self._fleets: dict[Key, Fleet] = {}
        self._known: dict[Key, KafkaCluster] = {}

    def update(self, key: Key, cluster: KafkaCluster, *, deleted: bool) -> None:
        """From the watch."""
        if not deleted:
            self._known[key] = cluster
        elif is_same(self._known.get(key), cluster):
            del self._known[key]

    def known(self, key: Key) -> KafkaCluster | None:
        return self._known.get(key)

    def fleet(self, key: Key) -> Fleet:
        return self._fleets.setdefault(key, Fleet())

    async def close(self) -> None:
        for fleet in self._fleets.values():
            await fleet.close()

    async def reconcile(self, key: Key) -> float | None:
        """After how many seconds to do it again, at the latest."""
        cluster = await self._still_there(key)
        if cluster is None or cluster.metadata.deletion_timestamp:  # Kubernetes deletes its objects: it owns them
            await self._close_fleet(key)
            return None
        cluster = msgspec.structs.replace(cluster, status=self._statuses.known(cluster.metadata, cluster.status))
        try:
            status = await self._status_after_acting(key, cluster)
        except Blocked as blocked:
            await self._write_status(cluster, blocked_status(cluster, blocked.obstacle, now=moments.now()))
            return OBSTACLE_SECONDS
        await self._write_status(cluster, status)
        return RESYNC_SECONDS if is_settled(status) else UNFINISHED_SECONDS

    async def _still_there(self, key: Key) -> KafkaCluster | None:
        """The watch does not tell of objects that were deleted while it was away."""
        cluster = self.known(key)
        if cluster is None:
            return None
        live = await self._kube.get(KIND, key.namespace, key.name)
        if live is not None and live["metadata"]["uid"] == cluster.metadata.uid:
            return cluster
        self.update(key, cluster, deleted=True)
        return None

    async def _status_after_acting(self, key: Key, cluster: KafkaCluster) -> KafkaClusterStatus:
        observed = await observing.observe(self._kube, cluster)
        layout = plan_layout(cluster, observed.records, observed.zones)
        if isinstance(layout, Obstacle):
            raise Blocked(layout)
        sets, ports = await self._apply(cluster, layout, observed)
        await self.fleet(key).reach(observing.addresses(observed.pods))
        fleet = await self._describe(key, observed.pods)
        rollout = await self._roll(cluster, layout, observed.pods, sets, fleet)
        return cluster_status(
            cluster,
            layout,
            pods=observed.pods,
            fleet=fleet,
            rollout=rollout,
            node_ports=ports,
            domain=self._environment.cluster_domain,
            now=moments.now(),
            missing=await observing.why_missing(self._kube, key.namespace, _incomplete(layout, sets, observed.pods)),
        )

    async def _close_fleet(self, key: Key) -> None:
        if fleet := self._fleets.pop(key, None):
            await fleet.close()

    # acting

    async def _apply(
        self, cluster: KafkaCluster, layout: Layout, observed: observing.Observed
    ) -> tuple[list[ObservedSet], NodePorts]:
        """Services first: the configuration has the node ports that Kubernetes gives them."""
        domain, image = self._environment.cluster_domain, self._environment.broker_image
        wanted = services(cluster, layout)
        made = await self._applier.apply(SERVICES, wanted, observed.services)
        surplus = [one for one in observed.services if LISTENER in one["metadata"]["labels"]]
        await self._remove_surplus(SERVICES, wanted, surplus)  # of listeners that are no longer in the spec
        ports = observing.node_ports(list(made.values()))
        configuration = config_map(cluster, layout, node_ports=ports, domain=domain)
        if refusal := next(filter(None, map(refused_settings, configuration["data"].values())), None):
            raise Blocked(Obstacle("InvalidConfig", f"{refusal}; nothing was changed, correct spec.config"))
        await self._applier.apply(CONFIG_MAPS, [configuration], observed.config_maps)
        budget = disruption_budget(cluster)
        await self._applier.apply(DISRUPTION_BUDGETS, [budget], observed.budgets)
        await self._remove_surplus(DISRUPTION_BUDGETS, [budget], observed.budgets)  # under its former name
        await self._check_claims(cluster, layout, observed)
        manifests = [stateful_set(cluster, layout, one, image=image, domain=domain) for one in layout.sets]
        sets = await self._applier.apply(STATEFUL_SETS, manifests, observed.sets)
        return [set_of(one) for one in sets.values()], ports

    async def _remove_surplus(self, kind: Kind, wanted: list[Manifest], live: list[Manifest]) -> None:
        names = {one["metadata"]["name"] for one in wanted}
        for one in live:
            metadata = one["metadata"]
            if metadata["name"] not in names and ownership(one, wanted[0]) is Ownership.OURS:
                await self._kube.delete(kind, metadata["namespace"], metadata["name"], uid=metadata["uid"])

    async def _check_claims(self, cluster: KafkaCluster, layout: Layout, observed: observing.Observed) -> None:
        """A StatefulSet would mount whatever volume claim has the name that it wants."""
        ours = {claim["metadata"]["name"] for claim in observed.claims}
        names = [name for one in layout.sets for name in claim_names(cluster, one) if name not in ours]
        for name in names:
            claim = await self._kube.get(VOLUME_CLAIMS, cluster.metadata.namespace, name)
            if claim and not covers(claim["metadata"].get("labels", {}), selector_of(cluster)):
                raise Blocked(name_taken(claim))

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
            await self._restart(cluster, pod, due[pod.name])
        return rollout

    async def _restart(self, cluster: KafkaCluster, pod: ObservedPod, reason: str) -> None:
        """Only the pod that the decision was made about: one that has changed meanwhile is looked at again."""
        try:
            await self._kube.delete(PODS, cluster.metadata.namespace, pod.name, uid=pod.uid, version=pod.version)
        except Conflict as conflict:
            log.debug("%s: %s", pod.name, conflict)
            return
        text = f"pod {pod.name} is restarted: {reason}"
        await self._events.record(KIND, cluster.metadata, reason="Restarting", message=text)

    # asking the brokers

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

    # the status

    async def _write_status(self, cluster: KafkaCluster, status: KafkaClusterStatus) -> None:
        if not await self._statuses.write(KIND, cluster.metadata, before=cluster.status, now=status):
            return
        if change := changed_condition(cluster.status, status):
            warning = change.status != "True"
            await self._events.record(
                KIND, cluster.metadata, reason=change.reason, message=change.message, warning=warning
            )


def _incomplete(layout: Layout, sets: Sequence[ObservedSet], pods: Sequence[ObservedPod]) -> list[ObservedSet]:
    """Those that have fewer pods than they should."""
    there = Counter(pod.owner_uid for pod in pods)
    return [one for one, wanted in zip(sets, layout.sets, strict=True) if there[one.uid] < wanted.nodes]
