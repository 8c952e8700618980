"""From an event to what is written, with an API server in memory and brokers that do not answer."""

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from ottla_operator.kube.client import Conflict, KubeRefused
from ottla_operator.manifests.disruption_budget import disruption_budget
from ottla_operator.reconcile.environment import Environment
from ottla_operator.reconcile.queue import Key
from ottla_operator.reconcile.reconcilers import Reconcilers
from support.operator_samples import UID, cluster, topic
from support.spark_samples import application

CLUSTER = Key("default", "events")
WAIT_SECONDS_MAX = 10.0


class MemoryKube:
    """The part of `kube.client.Kube` that reconciling uses: objects by kind and name, statuses by name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.statuses: dict[str, dict[str, Any]] = {}
        self.finalizers: list[tuple[str, str]] = []
        self.refused: dict[str, str] = {}  # kind or name → the API server's sentence
        self.events: list[tuple[str, str]] = []
        self._written = asyncio.Event()
        self._uids: Iterator[int] = iter(range(1, 10_000))

    async def get(self, kind, namespace, name):
        return self.objects.get((kind.kind, name))

    async def list(self, kind, namespace="", *, labels=None, fields=None):
        wanted = (labels or {}).items()
        found = [one for (of, _), one in self.objects.items() if of == kind.kind]
        return [one for one in found if wanted <= one["metadata"].get("labels", {}).items()]

    async def apply(self, manifest, kind, *, uid=None):
        known = self.objects.get((kind.kind, manifest["metadata"]["name"]))
        if (known["metadata"]["uid"] if known else None) != uid:
            raise Conflict(409, "another object has this name")
        if text := self.refused.get(kind.kind):
            raise KubeRefused(403, text)
        metadata = {"uid": str(next(self._uids)), "resourceVersion": "1", **manifest["metadata"]}
        made = {**manifest, "metadata": metadata}
        self.objects[kind.kind, metadata["name"]] = made
        return made

    async def create(self, manifest, kind):
        if kind.kind == "Event":
            self.events.append((manifest["involvedObject"]["name"], manifest["reason"]))
            return manifest
        return await self.apply(manifest, kind)

    async def apply_status(self, kind, about, status):
        self.statuses[f"{kind.kind}/{about.name}"] = status
        self._written.set()

    async def mark(self, kind, about, *, finalizers, annotations):
        if text := self.refused.get(about.name):
            raise KubeRefused(403, text)
        self.finalizers.append(("add", about.name))

    async def remove_finalizer(self, kind, about, finalizer):
        if text := self.refused.get(about.name):
            raise KubeRefused(403, text)
        self.finalizers.append(("remove", about.name))

    async def delete(self, kind, namespace, name, *, uid, version=None):
        assert self.objects[kind.kind, name]["metadata"]["uid"] == uid
        del self.objects[kind.kind, name]

    async def close(self):
        pass

    async def reason_of(self, name: str) -> str:
        """Of its Ready condition, as soon as there is one."""
        return (await self.condition_of(name))["reason"]

    async def condition_of(self, name: str) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while name not in self.statuses:
                self._written.clear()
                await self._written.wait()
        conditions = {one["type"]: one for one in self.statuses[name]["conditions"]}
        ready: dict[str, Any] = conditions["Ready"]
        return ready

    def put(self, kind: str, name: str, **metadata: Any) -> dict[str, Any]:
        """An object that is there already."""
        made = {"kind": kind, "metadata": {"name": name, "namespace": "default", "uid": f"{kind}-{name}", **metadata}}
        self.objects[kind, name] = made
        return made


@pytest.fixture
def kube() -> MemoryKube:
    made = MemoryKube()
    made.put("KafkaCluster", "events", uid=UID)
    return made


def run(kube: MemoryKube, scenario) -> None:
    async def play() -> None:
        reconcilers = Reconcilers(kube, Environment.read({}))
        try:
            await scenario(reconcilers)
        finally:
            await reconcilers.close()

    asyncio.run(play())


def test_a_new_cluster_gets_its_objects_and_a_status(kube):
    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(racks=None), deleted=False)
        assert await kube.reason_of("KafkaCluster/events") == "NodesNotReady"

    run(kube, scenario)
    assert made_by(kube) == {"Service", "ConfigMap", "PodDisruptionBudget", "StatefulSet"}
    assert kube.events == [("events", "NodesNotReady")]


def made_by(kube: MemoryKube) -> set[str]:
    return {kind for kind, _ in kube.objects} - {"KafkaCluster"}


def test_a_cluster_whose_pods_no_node_may_run_says_so_and_gets_nothing(kube):
    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(), deleted=False)
        assert await kube.reason_of("KafkaCluster/events") == "NoNodes"

    run(kube, scenario)
    assert made_by(kube) == set()


def test_a_cluster_on_nodes_without_zones_gets_one_set(kube):
    kube.put("Node", "laptop")

    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(), deleted=False)
        await kube.reason_of("KafkaCluster/events")

    run(kube, scenario)
    template = kube.objects["StatefulSet", "events-main"]["spec"]["template"]["spec"]
    assert "nodeAffinity" not in template["affinity"]
    conditions = {one["type"]: one["reason"] for one in kube.statuses["KafkaCluster/events"]["conditions"]}
    assert conditions["RackAware"] == "NoZones"


LABELLED = {"ottla.dev/cluster": "events"}
WANTED = [
    ("Service", "events-bootstrap"),
    ("ConfigMap", "events-config"),
    ("PodDisruptionBudget", "events-brokers"),
    ("StatefulSet", "events-main"),
]
CLAIM = ("PersistentVolumeClaim", "data-events-main-1")  # it has no owner: with the label it would be the cluster's


@pytest.mark.parametrize(
    ("kind", "name", "labels"), [(*one, labels) for one in WANTED for labels in ({}, LABELLED)] + [(*CLAIM, {})]
)
def test_what_bears_our_name_and_is_not_ours_stays_as_it_is(kube, kind, name, labels):
    before = copy.deepcopy(kube.put(kind, name, labels=labels))

    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(racks=None), deleted=False)
        condition = await kube.condition_of("KafkaCluster/events")
        assert condition["reason"] == "NameTaken" and f"{kind} {name} in namespace default" in condition["message"]

    run(kube, scenario)
    assert kube.objects[kind, name] == before


OURS = disruption_budget(cluster())["metadata"]["ownerReferences"]


@pytest.mark.parametrize(("owners", "left"), [([], {"events", "events-brokers"}), (OURS, {"events-brokers"})])
def test_a_budget_with_the_clusters_name_stays_unless_it_is_our_former_one(kube, owners, left):
    kube.put("PodDisruptionBudget", "events", labels=LABELLED, ownerReferences=owners)

    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(racks=None), deleted=False)
        assert await kube.reason_of("KafkaCluster/events") == "NodesNotReady"

    run(kube, scenario)
    assert {name for kind, name in kube.objects if kind == "PodDisruptionBudget"} == left


def test_what_kubernetes_refuses_is_a_condition(kube):
    kube.refused["StatefulSet"] = 'statefulsets.apps "events-main" is forbidden: exceeded quota: small, requested: …'

    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(racks=None), deleted=False)
        condition = await kube.condition_of("KafkaCluster/events")
        assert condition["reason"] == "QuotaExceeded" and "exceeded quota: small" in condition["message"]

    run(kube, scenario)


def test_a_cluster_that_was_deleted_while_the_watch_was_away_is_not_made_again(kube):
    del kube.objects["KafkaCluster", "events"]

    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(racks=None), deleted=False)
        reconcilers.topic_changed(topic(), deleted=False)
        assert await kube.reason_of("KafkaTopic/clicks") in ("ClusterNotFound", "ClusterNotReady")

    run(kube, scenario)
    assert made_by(kube) == set()


def test_a_finalizer_that_is_refused_stops_no_other_topic(kube):
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["ottla.dev/topic"]}
    del kube.objects["KafkaCluster", "events"]
    kube.refused["bad"] = "admission webhook policy denied the request"

    async def scenario(reconcilers):
        for name in ("bad", "good"):
            reconcilers.topic_changed(topic(name, reclaimPolicy="Delete", metadata=gone), deleted=False)
        assert await kube.reason_of("KafkaTopic/good") == "ClusterNotFound"

    run(kube, scenario)
    assert kube.finalizers == [("remove", "good")]


def test_late_news_of_a_deleted_object_do_not_forget_the_new_one_of_its_name(kube):
    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(racks=None), deleted=False)
        former = cluster(racks=None)
        former = msgspec.structs.replace(former, metadata=msgspec.structs.replace(former.metadata, uid="former"))
        reconcilers.cluster_changed(former, deleted=True)
        assert await kube.reason_of("KafkaCluster/events") == "NodesNotReady"

    run(kube, scenario)


def test_a_topic_waits_for_its_cluster_and_keeps_its_finalizer_meanwhile(kube):
    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(racks=None), deleted=False)
        reconcilers.topic_changed(topic(reclaimPolicy="Delete"), deleted=False)
        assert await kube.reason_of("KafkaTopic/clicks") == "ClusterNotReady"

    run(kube, scenario)
    assert kube.finalizers == []


def test_a_topic_of_no_cluster_is_released(kube):
    del kube.objects["KafkaCluster", "events"]
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["ottla.dev/topic"]}

    async def scenario(reconcilers):
        reconcilers.topic_changed(topic(reclaimPolicy="Delete", metadata=gone), deleted=False)
        assert await kube.reason_of("KafkaTopic/clicks") == "ClusterNotFound"

    run(kube, scenario)
    assert kube.finalizers == [("remove", "clicks")]


def play_application(kube: MemoryKube, until) -> None:
    """Until the condition holds of what is in memory."""
    one = application()
    body = kube.put("SparkApplication", "sessions", uid=one.metadata.uid, generation=1)
    body["spec"] = {"mainApplicationFile": "local:///opt/app.py"}

    async def scenario(reconcilers):
        key = Key("default", "sessions")
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while not until():
                if written := kube.statuses.get("SparkApplication/sessions"):
                    body["status"] = written
                reconcilers.application_changed(key)
                await asyncio.sleep(0.01)

    run(kube, scenario)


def ready_reason(kube: MemoryKube) -> str:
    conditions = kube.statuses.get("SparkApplication/sessions", {}).get("conditions", [])
    return next((one["reason"] for one in conditions if one["type"] == "Ready"), "")


@pytest.mark.parametrize("kind", ["Pod", "Service", "ServiceAccount", "Role"])
def test_an_application_leaves_what_has_its_drivers_name(kube, kind):
    theirs = kube.put(kind, "sessions-driver")
    before = copy.deepcopy(theirs)
    play_application(kube, lambda: ready_reason(kube) == "NameTaken")
    assert kube.objects[kind, "sessions-driver"] == before
    assert kube.events[-1] == ("sessions", "NameTaken")


def test_a_driver_that_is_refused_is_a_condition(kube):
    kube.refused["Pod"] = 'pods "sessions-driver" is forbidden: violates PodSecurity "restricted:latest"'
    play_application(kube, lambda: ready_reason(kube) == "PodSecurity")


def test_an_application_goes_from_new_to_a_driver(kube):
    play_application(kube, lambda: ("Pod", "sessions-driver") in kube.objects)
    assert kube.statuses["SparkApplication/sessions"]["applicationState"]["state"] == "Submitted"
    assert [reason for _, reason in kube.events] == ["Waiting", "Submitted"]
