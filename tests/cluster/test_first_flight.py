"""From `helm install` and `kubectl apply` to a fleet in three zones; how fast, and how quiet afterwards."""

import time
from typing import Any

import pytest
from cluster import audit
from cluster.fleet_access import Applied, KafkaOnKubernetes
from cluster.tables import rows
from cluster.visited import VisitedCluster
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from support.waiting import eventually

from scripts.local_kubernetes.access import Access
from scripts.local_kubernetes.commands import CommandFailed

BROKERS_READY_S_MAX = 60.0
TOPICS, TOPICS_READY_S_MAX = 500, 30.0
DELETED_S_MAX = 120.0
IDLE_S = 120.0
ZONES = {"zone-a", "zone-b", "zone-c"}
ADMIN_TIMEOUT_S = 30.0


def test_three_brokers_are_ready_within_a_minute(events: Applied) -> None:
    print(f"three brokers Ready after {events.ready_s:.1f} s")
    assert events.ready_s <= BROKERS_READY_S_MAX
    assert len(events.fleet.pods()) == 3


def test_the_three_brokers_stand_in_three_zones(events: Applied) -> None:
    zones = events.fleet.zones_of_pods()
    assert set(zones.values()) == ZONES
    for pod, zone in zones.items():
        assert zone in pod, "a pod's name says its zone"


def test_the_replicas_of_each_partition_stand_in_three_racks(events: Applied, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": events.fleet.outside})
    racks = {node.id: node.rack for node in admin.describe_cluster().result(ADMIN_TIMEOUT_S).nodes}
    assert set(racks.values()) == ZONES
    for name in ("clicks", topic):
        described = admin.describe_topics(TopicCollection([name]))[name].result(ADMIN_TIMEOUT_S)
        assert described.partitions
        for partition in described.partitions:
            assert {racks[replica.id] for replica in partition.replicas} == ZONES, f"{name}-{partition.id}"


def test_each_example_becomes_ready_and_reads_well(events: Applied) -> None:
    kubectl = events.fleet.access.kubectl
    for kind in ("kafkacluster", "kafkatopic"):
        kubectl("wait", "--for=condition=Ready", kind, "--all", "-n", events.fleet.namespace, "--timeout=60s")
    table = kubectl("get", "kfc,kft", "-n", events.fleet.namespace)
    print(table)
    heading, events_row = rows(table)["kafkacluster.ottla.dev/events"]
    assert heading[:4] == ["NAME", "READY", "NODES", "UP"] and heading[-1] == "AGE"
    assert events_row[1:4] == ["True", "3", "3"]
    heading, clicks_row = rows(table)["kafkatopic.ottla.dev/clicks"]
    assert heading[:5] == ["NAME", "CLUSTER", "PARTITIONS", "REPLICAS", "READY"]
    assert clicks_row[1] == "events" and clicks_row[4] == "True"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"pools": [{"name": "main", "roles": ["broker", "controller"], "replicas": 2}]}, "1, 3 or 5"),
        ({"config": {"node.id": "7"}}, "operator decides"),
        ({"listeners": [{"name": "x", "type": "carrier-pigeon"}]}, "carrier-pigeon"),
    ],
)
def test_a_spec_that_cannot_be_is_refused_in_one_sentence(
    installed: VisitedCluster, change: dict[str, Any], sentence: str
) -> None:
    pool = {"name": "main", "roles": ["broker", "controller"], "replicas": 3}
    internal = {"name": "internal", "type": "internal"}
    wrong = {
        "apiVersion": "ottla.dev/v1alpha1",
        "kind": "KafkaCluster",
        "metadata": {"name": "wrong", "namespace": installed.namespace},
        "spec": {"pools": [pool], "listeners": [internal], **change},
    }
    with pytest.raises(CommandFailed, match=sentence):
        installed.apply(wrong)


def test_five_hundred_topics_are_ready_within_half_a_minute(events: Applied) -> None:
    fleet = events.fleet
    names = [f"many-{number}" for number in range(TOPICS)]
    started = time.monotonic()
    fleet.access.create(*(fleet.topic_object(name, partitions=1, replicas=3, many="yes") for name in names))
    try:
        eventually(lambda: ready_topics(fleet), lambda ready: ready == TOPICS, timeout_s=TOPICS_READY_S_MAX * 3)
        took_s = time.monotonic() - started
        print(f"{TOPICS} topics Ready after {took_s:.1f} s")
        assert set(names) <= topics_in_kafka(fleet)
        assert took_s <= TOPICS_READY_S_MAX
    finally:
        delete = ("delete", "kafkatopics", "-n", fleet.namespace, "-l", "many=yes", "--wait=false")
        fleet.access.kubectl(*delete, timeout_s=DELETED_S_MAX)
    eventually(lambda: topics_in_kafka(fleet) & set(names), lambda left: not left, timeout_s=DELETED_S_MAX)


def topics_in_kafka(fleet: KafkaOnKubernetes) -> set[str]:
    return set(AdminClient({"bootstrap.servers": fleet.outside}).list_topics(timeout=ADMIN_TIMEOUT_S).topics)


def ready_topics(fleet: KafkaOnKubernetes) -> int:
    """By the column of the table, which costs the API server less than the objects."""
    table = fleet.access.kubectl("get", "kafkatopics", "-n", fleet.namespace, "-l", "many=yes", timeout_s=30.0)
    return sum(cells[4:5] == ["True"] for _, cells in rows(table).values())


def test_the_operator_writes_nothing_in_two_idle_minutes(events: Applied) -> None:
    fleet = events.fleet
    if not audit.readable(fleet.access):
        pytest.skip("a cluster that KUBECONFIG names keeps its audit log to itself")
    fleet.wait_until_whole()
    wait_for_quiet(fleet.access)
    since = audit.now(fleet.access)
    time.sleep(IDLE_S)  # the idle time itself, not a wait for something
    writes = audit.writes_of_operator(fleet.access, since=since)
    assert writes == [], f"{len(writes)} writes in {IDLE_S:g} idle seconds"
    assert audit.anybody_wrote(fleet.access, since=since), "the audit log itself must be alive"


def wait_for_quiet(access: Access, *, quiet_s: float = 5.0) -> None:
    """Until the work of the tests before has settled."""
    eventually(
        lambda: time.time() - audit.last_write_of_operator(access), lambda silent_s: silent_s > quiet_s, timeout_s=60.0
    )
