"""librdkafka inside and outside the pods' network, and under load while pods roll, vanish and lose their kubelet."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from cluster.fleet_access import Applied, KafkaOnKubernetes
from cluster.visited import VisitedCluster
from support.history import Read, anomalies
from support.librdkafka import Sent, read, send
from support.steady import SteadyLibrdkafka
from support.waiting import eventually

from scripts.local_kubernetes import own
from scripts.local_kubernetes.access import Access
from scripts.local_kubernetes.commands import run
from scripts.local_kubernetes.places import NODES

PARTITIONS = 3
RECORDS_PER_SECOND = 400
PROGRESS_RECORDS, PROGRESS_S = 400, 60.0


@dataclass(frozen=True)
class Load:
    """An acks=all, idempotent producer at work."""

    fleet: KafkaOnKubernetes
    topic: str
    producer: SteadyLibrdkafka

    def goes_on(self) -> None:
        self.producer.wait_for_progress(PROGRESS_RECORDS, PROGRESS_S)

    def judge(self) -> None:
        """0 lost, 0 duplicated, none out of order, and no error beyond those that the client retries."""
        self.goes_on()
        sends = self.producer.finish()
        reads = [
            Read(message.partition(), message.offset(), message.value())  # type: ignore[arg-type]
            for partition in range(PARTITIONS)
            for message in read(self.fleet.outside, self.topic, partition)
        ]
        print(f"{len(sends)} sent, {len(reads)} read; longest silence {self.producer.silence.longest_s:.1f} s")
        assert all(send.offset is not None for send in sends), "every record is acknowledged at the end"
        assert anomalies(sends, reads) == []
        assert len(reads) == len(sends)


@pytest.fixture
def load(events: Applied, topic: str) -> Iterator[Load]:
    fleet = events.fleet
    fleet.wait_until_whole()
    producer = SteadyLibrdkafka(fleet.outside, topic, partitions=PARTITIONS, rate=RECORDS_PER_SECOND)
    made = Load(fleet, topic, producer)
    made.goes_on()
    producer.silence.reset()
    yield made


def test_librdkafka_inside_and_outside_the_pods_network(events: Applied, topic: str) -> None:
    fleet = events.fleet
    outside = [f"outside-{number}" for number in range(300)]
    reports = send(fleet.outside, topic, [Sent(v.encode(), partition=i % PARTITIONS) for i, v in enumerate(outside)])
    assert not reports.errors
    said = run_in_pod(fleet.access, fleet.inside, topic, str(PARTITIONS), "300", "inside")
    assert len(said["confirmed"]) == 300
    expected = sorted([*outside, *(f"inside-{number}" for number in range(300))])
    assert sorted(said["read"]) == expected
    messages = [message for index in range(PARTITIONS) for message in read(fleet.outside, topic, index)]
    assert sorted((message.value() or b"").decode() for message in messages) == expected


def run_in_pod(access: VisitedCluster, *arguments: str) -> dict[str, list[str]]:
    """The client image as a pod, to its end; what it printed."""
    image = ("--image", access.visit.image("client"), f"--image-pull-policy={access.visit.pull_policy}")
    options = ("--restart=Never", "--rm", "--attach", "--quiet")
    said = access.kubectl("run", "client", "-n", access.namespace, *image, *options, "--", *arguments)
    answer: dict[str, list[str]] = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    return answer


def test_a_changed_setting_rolls_all_brokers_under_load(load: Load) -> None:
    before = load.fleet.pod_ids()
    load.fleet.set_config(message_max_bytes="2000000")
    eventually(lambda: replaced(before, load.fleet.pod_ids()), lambda new: len(new) == 3, timeout_s=240.0)
    load.fleet.wait_until_whole()
    load.judge()
    assert load.fleet.object()["status"].get("rollout", []) == []


def test_a_deleted_pod_comes_back_under_load(load: Load) -> None:
    before = load.fleet.pod_ids()
    victim = sorted(before)[0]
    load.fleet.access.kubectl("delete", "pod", victim, "-n", load.fleet.namespace)
    eventually(lambda: replaced(before, load.fleet.pod_ids()), lambda new: new == {victim}, timeout_s=120.0)
    load.fleet.wait_until_whole()
    load.judge()


def test_a_killed_kubelet_harms_nobody(load: Load) -> None:
    access = load.fleet.access
    if access.kind == "existing":
        pytest.skip("the kubelets of a cluster that KUBECONFIG names are not ours to kill")
    before = load.fleet.pod_ids()
    node = load.fleet.pods()[0]["spec"]["nodeName"]
    try:
        stop_kubelet(access, node)
        eventually(lambda: node_ready(access, node), lambda ready: not ready, timeout_s=90.0)
        load.goes_on()
    finally:
        start_kubelet(access, node)
    eventually(lambda: node_ready(access, node), bool, timeout_s=60.0)
    load.fleet.wait_until_whole()
    load.judge()
    assert load.fleet.pod_ids() == before, "no broker is restarted because its kubelet was gone for a while"


def replaced(before: dict[str, str], now: dict[str, str]) -> set[str]:
    return {name for name, uid in now.items() if before.get(name) != uid}


def node_ready(access: Access, name: str) -> bool:
    conditions = access.get("node", name)["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def stop_kubelet(access: Access, name: str) -> None:
    if access.kind == "own":
        own.kill_kubelet(next(place for place in NODES if place.name == name))
    else:
        run("docker", "exec", name, "systemctl", "stop", "kubelet")


def start_kubelet(access: Access, name: str) -> None:
    if access.kind == "own":
        own.start_kubelet(next(place for place in NODES if place.name == name))
    else:
        run("docker", "exec", name, "systemctl", "start", "kubelet")
