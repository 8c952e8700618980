"""The operator among other people's things: names that are taken, quotas, topics that were there before."""

import asyncio
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from cluster.fleet_access import GROUP, Applied, ready_now
from cluster.visited import VisitedCluster
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from ottla_operator.kube.client import CONFIG_MAPS, Conflict, Kube, kind_of
from ottla_operator.resources.kafka_topic import KafkaTopic
from ottla_operator.resources.model import Metadata
from support.waiting import eventually

SEEN_S_MAX = 60.0
ADMIN_TIMEOUT_S = 30.0
NAME = "shop"  # the KafkaCluster's, and that of what an application has beside it
QUOTA = f"{NAME}-quota"


def theirs(namespace: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    api = {"PodDisruptionBudget": "policy/v1"}.get(kind, "v1")
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **more}


def strangers(namespace: str) -> list[dict[str, Any]]:
    budget = {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": NAME}}}}
    service = {"spec": {"selector": {"app": NAME}, "ports": [{"port": 80}]}}
    return [
        theirs(namespace, "PodDisruptionBudget", NAME, **budget),
        theirs(namespace, "PodDisruptionBudget", f"{NAME}-brokers", **budget),
        theirs(namespace, "Service", f"{NAME}-bootstrap", **service),
        theirs(namespace, "Secret", NAME, stringData={"password": "theirs"}),
        theirs(namespace, "Secret", f"{NAME}-config", stringData={"password": "theirs"}),
    ]


@pytest.fixture
def shop(installed: VisitedCluster) -> Iterator[VisitedCluster]:
    """A namespace with an application's objects that have a KafkaCluster's names, and no room for a pod."""
    namespace, objects = installed.namespace, strangers(installed.namespace)
    installed.create(*objects, theirs(namespace, "ResourceQuota", QUOTA, spec={"hard": {"pods": "0"}}))
    yield installed
    here = ("-n", namespace, "--ignore-not-found")
    installed.kubectl("delete", "kafkacluster", NAME, *here)
    installed.kubectl("delete", "resourcequota", QUOTA, *here)
    for one in objects:
        installed.kubectl("delete", one["kind"], one["metadata"]["name"], *here)
    installed.kubectl("delete", "pvc", "-l", f"ottla.dev/cluster={NAME}", *here)


def ready(cluster: VisitedCluster, kind: str, name: str) -> tuple[str, str]:
    """Reason and message of its condition Ready."""
    status = cluster.get(kind, name, "-n", cluster.namespace).get("status", {})
    one: dict[str, str] = {each["type"]: each for each in status.get("conditions", [])}.get("Ready", {})
    return one.get("reason", ""), one.get("message", "")


def await_reason(cluster: VisitedCluster, kind: str, name: str, reason: str, word: str = "") -> str:
    seen = eventually(
        lambda: ready(cluster, kind, name), lambda one: one[0] == reason and word in one[1], timeout_s=SEEN_S_MAX
    )
    return seen[1]


def versions(cluster: VisitedCluster) -> dict[str, tuple[str, str]]:
    found = cluster.get("poddisruptionbudgets,services,secrets", "-n", cluster.namespace)["items"]
    ours = [one for one in found if "ottla.dev/cluster" in one["metadata"].get("labels", {})]
    metadata = [(one["kind"], one["metadata"]) for one in found if one not in ours]
    return {f"{kind}/{one['name']}": (one["uid"], one["resourceVersion"]) for kind, one in metadata}


def test_what_bears_our_names_stays_and_what_kubernetes_refuses_is_said(shop: VisitedCluster) -> None:
    before, namespace = versions(shop), shop.namespace
    pool = {"name": "main", "replicas": 1, "storage": {"size": "64Mi"}}
    cluster = {"apiVersion": GROUP, "kind": "KafkaCluster", "metadata": {"name": NAME, "namespace": namespace}}
    shop.apply({**cluster, "spec": {"pools": [pool]}})
    for kind, name in (("Service", f"{NAME}-bootstrap"), ("PodDisruptionBudget", f"{NAME}-brokers")):
        message = await_reason(shop, "kafkacluster", NAME, "NameTaken", f"{kind} {name}")
        assert "left as it is" in message
        assert versions(shop) == before, "nothing of another owner is touched"
        shop.kubectl("delete", kind, name, "-n", namespace)
        before.pop(f"{kind}/{name}")
        notify(shop)
    await_reason(shop, "kafkacluster", NAME, "QuotaExceeded", QUOTA)
    shop.kubectl("delete", "resourcequota", QUOTA, "-n", namespace)
    eventually(lambda: shop.get("kafkacluster", NAME, "-n", namespace), ready_now, timeout_s=120)
    assert versions(shop) == before
    budget = shop.get("pdb", f"{NAME}-brokers", "-n", namespace)["spec"]
    assert budget["unhealthyPodEvictionPolicy"] == "IfHealthyBudget"


def notify(cluster: VisitedCluster) -> None:
    """A change that means nothing, so that the next look comes at once."""
    words = ("annotate", "kafkacluster", NAME, "-n", cluster.namespace, "--overwrite")
    cluster.kubectl(*words, f"tests/generation={len(versions(cluster))}")


@pytest.fixture
def found_topic(events: Applied) -> Iterator[str]:
    """One that a client made, and settings that it gave it."""
    admin, name = AdminClient({"bootstrap.servers": events.fleet.outside}), "found-before"
    made = admin.create_topics([NewTopic(name, 1, 3, config={"retention.ms": "3600000", "min.insync.replicas": "2"})])
    made[name].result(ADMIN_TIMEOUT_S)
    yield name
    events.fleet.access.kubectl(
        "delete", "kafkatopic", name, "offsets", "-n", events.fleet.namespace, "--ignore-not-found"
    )
    admin.delete_topics([name])[name].result(ADMIN_TIMEOUT_S)


def retention(outside: str, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": outside})
    return str(admin.describe_configs([resource])[resource].result(ADMIN_TIMEOUT_S)["retention.ms"].value)


def test_topics_of_others_are_adopted_only_when_asked_and_those_of_the_brokers_never(
    events: Applied, found_topic: str
) -> None:
    fleet, access = events.fleet, events.fleet.access
    wanted = fleet.topic_object(found_topic, partitions=1, replicas=3)
    wanted["spec"] |= {"reclaimPolicy": "Retain", "config": {"retention.ms": 7200000}}
    internal = fleet.topic_object("offsets", partitions=50, replicas=3)
    internal["spec"]["topicName"] = "__consumer_offsets"
    access.apply(wanted, internal)
    assert "spec.adopt: true" in await_reason(access, "kafkatopic", found_topic, "NotAdopted")
    await_reason(access, "kafkatopic", "offsets", "InternalTopic")
    assert retention(fleet.outside, found_topic) == "3600000"
    patch = ("--type=merge", "-p", json.dumps({"spec": {"adopt": True}}))
    access.kubectl("patch", "kafkatopic", found_topic, "-n", fleet.namespace, *patch)
    await_reason(access, "kafkatopic", found_topic, "UpToDate")
    assert retention(fleet.outside, found_topic) == "7200000"
    # The same object from a backup, without its status, finds its own.
    body = access.get("kafkatopic", found_topic, "-n", fleet.namespace)
    access.kubectl("delete", "kafkatopic", found_topic, "-n", fleet.namespace)
    del body["status"], body["spec"]["adopt"]
    kept = {name: body["metadata"][name] for name in ("name", "namespace", "annotations")}
    access.create({**body, "metadata": kept})
    await_reason(access, "kafkatopic", found_topic, "UpToDate")


def test_the_api_server_holds_to_uids_and_versions(installed: VisitedCluster) -> None:
    """What was decided about one object is not done to another of its name, nor to one that has changed since."""
    name, namespace = "of-an-application", installed.namespace
    installed.create(theirs(namespace, "ConfigMap", name, data={"a": "theirs"}))
    place, topic = {"name": name, "namespace": namespace}, {"clusterRef": {"name": "nowhere"}}
    installed.create({"apiVersion": GROUP, "kind": "KafkaTopic", "metadata": place, "spec": topic})
    asyncio.run(act_on_former_objects(installed.kubeconfig, namespace, name))
    assert installed.get("configmap", name, "-n", namespace)["data"] == {"a": "theirs"}
    seen = installed.get("kafkatopic", name, "-n", namespace)["metadata"]
    assert "finalizers" not in seen and "annotations" not in seen
    for kind in ("configmap", "kafkatopic"):
        installed.kubectl("delete", kind, name, "-n", namespace)


async def act_on_former_objects(kubeconfig: str, namespace: str, name: str) -> None:
    kube, former = await Kube.connect(kubeconfig), str(uuid.uuid4())
    try:
        ours = theirs(namespace, "ConfigMap", name, data={"a": "ours"})
        live = await kube.get(CONFIG_MAPS, namespace, name)
        assert live is not None
        uid, version = live["metadata"]["uid"], live["metadata"]["resourceVersion"]
        for refused in (
            kube.apply(ours, CONFIG_MAPS),
            kube.apply(ours, CONFIG_MAPS, uid=former),
            kube.delete(CONFIG_MAPS, namespace, name, uid=former),
            kube.delete(CONFIG_MAPS, namespace, name, uid=uid, version=f"{int(version) - 1}"),
        ):
            with pytest.raises(Conflict):
                await refused
        about = Metadata(name=name, namespace=namespace, uid=former)
        await kube.mark(kind_of(KafkaTopic), about, finalizers=["ottla.dev/topic"], annotations={"a": "b"})
    finally:
        await kube.close()
