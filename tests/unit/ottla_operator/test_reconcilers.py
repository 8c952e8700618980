"""From an event to what is written, with an API server in memory and brokers that do not answer."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from ottla_operator.reconcile.environment import Environment
from ottla_operator.reconcile.queue import Key
from ottla_operator.reconcile.reconcilers import Reconcilers
from support.operator_samples import cluster, topic
from support.spark_samples import application

CLUSTER = Key("default", "events")
WAIT_SECONDS_MAX = 10.0


class MemoryKube:
    """The part of `kube.client.Kube` that reconciling uses: objects by kind and name, statuses by name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.statuses: dict[str, dict[str, Any]] = {}
        self.finalizers: list[tuple[str, str]] = []
        self.events: list[tuple[str, str]] = []
        self._written = asyncio.Event()
        self._uids: Iterator[int] = iter(range(1, 10_000))

    async def get(self, kind, namespace, name):
        return self.objects.get((kind.kind, name))

    async def list(self, kind, namespace="", *, labels=None):
        wanted = (labels or {}).items()
        found = [one for (of, _), one in self.objects.items() if of == kind.kind]
        return [one for one in found if wanted <= one["metadata"].get("labels", {}).items()]

    async def apply(self, manifest, kind):
        metadata = {"uid": str(next(self._uids)), "resourceVersion": "1", **manifest["metadata"]}
        made = {**manifest, "metadata": metadata}
        self.objects[kind.kind, metadata["name"]] = made
        return made

    async def create(self, manifest, kind):
        if kind.kind == "Event":
            self.events.append((manifest["involvedObject"]["name"], manifest["reason"]))
            return manifest
        return await self.apply(manifest, kind)

    async def apply_status(self, kind, *, namespace, name, status):
        self.statuses[f"{kind.kind}/{name}"] = status
        self._written.set()

    async def add_finalizer(self, kind, about, finalizer):
        self.finalizers.append(("add", about.name))

    async def remove_finalizer(self, kind, about, finalizer):
        self.finalizers.append(("remove", about.name))

    async def delete(self, kind, namespace, name, *, uid=None):
        self.objects.pop((kind.kind, name), None)

    async def close(self):
        pass

    async def reason_of(self, name: str) -> str:
        """Of its Ready condition, as soon as there is one."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while name not in self.statuses:
                self._written.clear()
                await self._written.wait()
        conditions = {one["type"]: one for one in self.statuses[name]["conditions"]}
        return conditions["Ready"]["reason"]


@pytest.fixture
def kube() -> MemoryKube:
    return MemoryKube()


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
    assert {kind for kind, _ in kube.objects} == {"Service", "ConfigMap", "PodDisruptionBudget", "StatefulSet"}
    assert kube.events == [("events", "NodesNotReady")]


def test_a_cluster_without_zones_says_so_and_gets_nothing(kube):
    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(), deleted=False)
        assert await kube.reason_of("KafkaCluster/events") == "NoZones"

    run(kube, scenario)
    assert kube.objects == {}


def test_a_topic_waits_for_its_cluster_and_keeps_its_finalizer_meanwhile(kube):
    async def scenario(reconcilers):
        reconcilers.cluster_changed(cluster(racks=None), deleted=False)
        reconcilers.topic_changed(topic(reclaimPolicy="Delete"), deleted=False)
        assert await kube.reason_of("KafkaTopic/clicks") == "ClusterNotReady"

    run(kube, scenario)
    assert kube.finalizers == []


def test_a_topic_of_no_cluster_is_released(kube):
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["ottla.dev/topic"]}

    async def scenario(reconcilers):
        reconcilers.topic_changed(topic(reclaimPolicy="Delete", metadata=gone), deleted=False)
        assert await kube.reason_of("KafkaTopic/clicks") == "ClusterNotFound"

    run(kube, scenario)
    assert kube.finalizers == [("remove", "clicks")]


def test_an_application_goes_from_new_to_a_driver(kube):
    one = application()
    body = {
        "metadata": {"name": one.metadata.name, "namespace": "default", "uid": one.metadata.uid, "generation": 1},
        "spec": {"mainApplicationFile": "local:///opt/app.py"},
    }
    kube.objects["SparkApplication", "sessions"] = body

    async def scenario(reconcilers):
        key = Key("default", "sessions")
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while ("Pod", "sessions-driver") not in kube.objects:
                if written := kube.statuses.get("SparkApplication/sessions"):
                    body["status"] = written
                reconcilers.application_changed(key)
                await asyncio.sleep(0.01)

    run(kube, scenario)
    assert kube.statuses["SparkApplication/sessions"]["applicationState"]["state"] == "Submitted"
    assert [reason for _, reason in kube.events] == ["Waiting", "Submitted"]
