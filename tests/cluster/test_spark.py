"""SparkApplications on real kubelets: the exact answer, a driver killed, a program that fails, specs that cannot be."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.fleet_access import GROUP, Applied
from cluster.tables import readme_commands, rows
from cluster.visited import VisitedCluster
from ottla_pipelines.sample.answer import closed_sessions, differences
from ottla_pipelines.sample.clicks import COMPLETE_AT, PARTITIONS, make_waves
from ottla_pipelines.sample.feed import Feeder
from ottla_pipelines.sample.kafka import read_topic
from ottla_pipelines.sample.outcome import read_sessions
from support.waiting import eventually

from scripts.local_kubernetes.commands import CommandFailed

PROGRAM = "local:///opt/ottla/spark-apps/ottla_pipelines/sessions.py"
RUN_S_MAX = 600
SMALL = {"cores": 1, "coreRequest": "100m", "memory": "512m"}
Making = Callable[..., str]


def application(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": "SparkApplication",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"mainApplicationFile": PROGRAM, "driver": SMALL, "executor": {**SMALL, "cores": 2}, **spec},
    }


@pytest.fixture
def make(installed: VisitedCluster) -> Iterator[Making]:
    """Applies an application; it ends with the test."""
    made: list[str] = []

    def make_one(name: str, **spec: Any) -> str:
        installed.apply(application(installed.namespace, name, **spec))
        made.append(name)
        return name

    yield make_one
    for name in made:
        installed.kubectl("delete", "sparkapplication", name, "-n", installed.namespace, "--ignore-not-found")


def state_of(cluster: VisitedCluster, name: str) -> dict[str, Any]:
    status: dict[str, Any] = cluster.get("sparkapplication", name, "-n", cluster.namespace).get("status", {})
    return status


def condition(cluster: VisitedCluster, name: str, kind: str) -> tuple[str, str, str]:
    found = {one["type"]: one for one in state_of(cluster, name).get("conditions", [])}
    one = found.get(kind, {})
    return one.get("status", ""), one.get("reason", ""), one.get("message", "")


def wait(cluster: VisitedCluster, name: str, what: str) -> None:
    words = ("wait", f"--for=condition={what}", f"sparkapplication/{name}", "-n", cluster.namespace)
    cluster.kubectl(*words, f"--timeout={RUN_S_MAX}s", timeout_s=RUN_S_MAX + 10)


@pytest.fixture
def example(events: Applied, examples: Path) -> Iterator[Applied]:
    """What the README's kubectl lines do. It is taken away again, or its Job would not feed another fleet."""
    access, here = events.fleet.access, ("-n", events.fleet.namespace)
    apply, *then = readme_commands("kubectl")
    assert apply == ["apply", "-f", "examples/"]
    for words in (("apply", "-f", examples), *then):
        print(access.kubectl(*words, *here))
    yield events
    access.kubectl("delete", *here, "-f", examples / "sessions.yaml", "--ignore-not-found")


def test_the_example_gives_the_known_answer(example: Applied) -> None:
    """Its sample is 20,000 events from seed 1."""
    cluster, outside = example.fleet.access, example.fleet.outside
    wait(cluster, "sessions", "Ready")
    wait(cluster, "sessions", "Succeeded")
    records = [record for wave in make_waves(seed=1, events=20_000) for record in wave]
    assert differences(closed_sessions(records), read_sessions(outside, "sessions-result")) == []
    letters = {
        (dict(one.headers() or [])["ottla.offset"], one.value()) for one in read_topic(outside, "clicks-dead-letter")
    }
    assert len(letters) > 0 and {value for _, value in letters} == {one.value for one in records if one.click is None}
    table = rows(cluster.kubectl("get", "kfc,kft,sparkapp", "-n", cluster.namespace))
    heading, cells = table["sparkapplication.ottla.dev/sessions"]
    assert heading[0] == "NAME" and "Completed" in cells, cells
    assert {"kafkacluster.ottla.dev/events", "kafkatopic.ottla.dev/clicks"} < table.keys()
    executors = ("get", "pods", "-n", cluster.namespace, "-l", "ottla.dev/application=sessions,spark-role=executor")
    eventually(lambda: cluster.kubectl(*executors, "-o", "name"), lambda seen: seen.strip() == "")


def test_a_driver_killed_once_is_run_again_and_the_answer_is_exact(events: Applied, make: Making) -> None:
    cluster, outside = events.fleet.access, events.fleet.outside
    topics = [events.fleet.make_topic(f"killed-{name}", partitions=PARTITIONS) for name in ("in", "out", "dead")]
    name = make(
        "killed",
        arguments=[
            "--checkpoint=/checkpoint/killed",
            f"--until={COMPLETE_AT.isoformat()}",
            f"--topic={topics[0]}",
            f"--result-topic={topics[1]}",
            f"--dead-letter-topic={topics[2]}",
        ],
        sparkConf={"spark.sql.shuffle.partitions": "2"},
        kafka={"clusterRef": {"name": "events"}, "topics": topics},
        checkpoint={"volume": {"size": "1Gi"}},
        restartPolicy={"type": "OnFailure", "onFailureRetries": 1, "onFailureRetryInterval": 1},
    )
    feeder = Feeder(bootstrap=outside, topic=topics[0], result_topic=topics[1], seed=3, events=2000, report=print)
    feeder.feed(waves=[1])
    eventually(lambda: read_sessions(outside, topics[1]), bool, timeout_s=RUN_S_MAX)
    first = cluster.get("pod", "killed-driver", "-n", cluster.namespace)["metadata"]["uid"]
    cluster.kubectl("delete", "pod", "killed-driver", "-n", cluster.namespace, "--grace-period=0", "--force")
    eventually(lambda: state_of(cluster, name).get("executionAttempts"), lambda seen: seen == 2, timeout_s=RUN_S_MAX)
    assert "is gone" in state_of(cluster, name)["applicationState"]["errorMessage"]
    feeder.feed(waves=[2])
    wait(cluster, name, "Succeeded")
    assert cluster.get("pod", "killed-driver", "-n", cluster.namespace)["metadata"]["uid"] != first
    records = [record for wave in make_waves(seed=3, events=2000) for record in wave]
    assert differences(closed_sessions(records), read_sessions(outside, topics[1])) == []


def test_a_program_that_fails_is_quoted_and_runs_when_it_is_corrected(installed: VisitedCluster, make: Making) -> None:
    name = make("failing", arguments=["--until=yesterday"])
    eventually(lambda: state_of(installed, name).get("applicationState"), is_over, timeout_s=RUN_S_MAX)
    status, reason, message = condition(installed, name, "Succeeded")
    assert (status, reason) == ("False", "Failed")
    assert "pod failing-driver failed with exit code" in message
    assert "error: argument --until: invalid" in message, "the program's last words"
    patch = {"spec": {"arguments": ["--help"]}}
    installed.kubectl("patch", "sparkapp", name, "-n", installed.namespace, "--type=merge", "-p", json.dumps(patch))
    wait(installed, name, "Succeeded")
    again = state_of(installed, name)
    assert again["executionAttempts"] == 1 and "errorMessage" not in again["applicationState"]


def is_over(state: Any) -> bool:
    return state is not None and state["state"] in ("Completed", "Failed")


def test_everything_goes_with_the_application_but_its_state(installed: VisitedCluster, make: Making) -> None:
    make("leaving", arguments=["--help"], checkpoint={"volume": {"size": "10Mi"}})
    wait(installed, "leaving", "Succeeded")
    kinds = "pods,services,configmaps,serviceaccounts,roles,rolebindings"
    chosen = (kinds, "-n", installed.namespace, "-l", "ottla.dev/application=leaving", "-o", "name")
    assert len(installed.kubectl("get", *chosen).splitlines()) == 6
    installed.kubectl("delete", "sparkapplication", "leaving", "-n", installed.namespace)
    eventually(lambda: installed.kubectl("get", *chosen).strip(), lambda seen: seen == "", timeout_s=120)
    assert installed.get("pvc", "leaving-checkpoint", "-n", installed.namespace)["status"]["phase"] == "Bound"
    installed.kubectl("delete", "pvc", "leaving-checkpoint", "-n", installed.namespace)


@pytest.mark.parametrize(
    ("name", "spec", "reason", "step"),
    [
        (
            "homeless",
            {"kafka": {"clusterRef": {"name": "nowhere"}}},
            "ClusterNotFound",
            "make it, or correct spec.kafka.clusterRef",
        ),
        (
            "topicless",
            {"kafka": {"clusterRef": {"name": "events"}, "topics": ["no-such-topic"]}},
            "TopicsMissing",
            "make a KafkaTopic for each",
        ),
        ("imageless", {"image": "docker.io/ottla/nothing:1"}, "ImageMissing", "or set spec.image"),
        ("huge", {"driver": {"coreRequest": "900"}}, "Unschedulable", "or ask for less in spec.driver"),
    ],
)
def test_what_only_time_can_tell_becomes_a_condition(
    events: Applied, make: Making, name: str, spec: dict[str, Any], reason: str, step: str
) -> None:
    cluster = events.fleet.access
    make(name, **spec)
    seen = eventually(lambda: condition(cluster, name, "Ready"), lambda one: one[1] == reason, timeout_s=120)
    assert seen[0] == "False" and step in seen[2]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"type": "Java"}, "a Java or Scala program needs mainClass"),
        ({"sparkConf": {"spark.master": "local"}}, "spec.sparkConf must not set what the operator decides"),
        ({"checkpoint": {"volume": {}}}, "a checkpoint volume has either claimName or size"),
        ({"driver": {"memory": "lots"}}, "spec.driver.memory"),
        ({"restartPolicy": {"type": "Sometimes"}}, 'Unsupported value: "Sometimes"'),
    ],
)
def test_a_spec_that_cannot_be_is_refused_in_a_sentence(
    installed: VisitedCluster, spec: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(CommandFailed, match=sentence):
        installed.apply(application(installed.namespace, "refused", **spec))
