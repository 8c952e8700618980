"""kafka-topics, kafka-reassign-partitions, kafka-leader-election, kafka-metadata-quorum on a fleet, unmodified."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fleet import FleetOf
from support.java import Finished, java_tool
from support.librdkafka import Sent, send
from support.waiting import eventually

TOOLS = "org.apache.kafka.tools"
# Leaders stay where a test put them, and a dead broker is noticed soon.
FLEET_SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
PARTITION_LINE = re.compile(
    r"Topic: (\S+)\s+Partition: (\d+)\s+Leader: (\S+)\s+Replicas: ([\d,]+)\s+Isr: ([\d,]*)"
    r"(?:\s+Adding Replicas: ([\d,]+))?(?:\s+Removing Replicas: ([\d,]+))?\s+Elr: ([\d,]*)\s+LastKnownElr:\s*([\d,]*)"
)
MOVES_A_MB = 20


def topics(fleet: FleetOf, *arguments: str) -> Finished:
    return java_tool(f"{TOOLS}.TopicCommand", "--bootstrap-server", fleet.bootstrap, *arguments)


def reassign(fleet: FleetOf, *arguments: str, code: int = 0) -> Finished:
    command = f"{TOOLS}.reassign.ReassignPartitionsCommand"
    return java_tool(command, "--bootstrap-server", fleet.bootstrap, *arguments, code=code)


def plan_file(folder: Path, topic: str, *replicas: list[int]) -> str:
    parts = [{"topic": topic, "partition": index, "replicas": listed} for index, listed in enumerate(replicas)]
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": parts}))
    return str(path)


def replicas_of(fleet: FleetOf, topic: str, partition: int = 0) -> tuple[int, ...]:
    seen = fleet.partition(topic, partition)
    return seen.replicas if seen else ()


@pytest.fixture
def away(fleet: FleetOf) -> Iterator[Callable[[], None]]:
    """Sends broker 2 away; it is back after the test."""

    def send_away() -> None:
        fleet.members[2].stop()

    yield send_away
    fleet.members[2].start()
    fleet.wait_in_sync()


class TestTopics:
    def test_describe(self, fleet: FleetOf, name: str) -> None:
        made = topics(fleet, "--create", "--topic", name, "--partitions", "3", "--replication-factor", "3")
        assert made.lines[-1] == f"Created topic {name}."
        head, *rows = topics(fleet, "--describe", "--topic", name).lines
        assert re.match(rf"Topic: {name}\s+TopicId: \S+\s+PartitionCount: 3\s+ReplicationFactor: 3\s+Configs:", head)
        parts = [PARTITION_LINE.match(row) for row in rows]
        assert all(parts)
        for part in parts:
            assert part is not None
            assert part[3] == part[4].split(",")[0], "the preferred replica leads"
            assert sorted(part[4]) == sorted(part[5]), "all in sync"
        assert {part[3] for part in parts if part} == {"0", "1", "2"}, "leaders are even"

    def test_views_of_a_topic_in_trouble(self, fleet: FleetOf, name: str, away: Callable[[], None]) -> None:
        make_topic_on(fleet, name, "0:1:2", min_isr=2)
        make_topic_on(fleet, f"{name}-strict", "0:1:2", min_isr=3)
        make_topic_on(fleet, f"{name}-alone", "2", min_isr=1)
        away()
        shown = {view: set(re.findall(rf"Topic: ({name}\S*)", topics(fleet, "--describe", f"--{view}").out))
                 for view in ("under-replicated-partitions", "at-min-isr-partitions", "under-min-isr-partitions",
                              "unavailable-partitions")}  # fmt: skip
        assert shown == {
            "under-replicated-partitions": {name, f"{name}-strict", f"{name}-alone"},
            "at-min-isr-partitions": {name},
            "under-min-isr-partitions": {f"{name}-strict", f"{name}-alone"},
            "unavailable-partitions": {f"{name}-alone"},
        }

    def test_more_replicas_than_brokers(self, fleet: FleetOf, name: str) -> None:
        command = (f"{TOOLS}.TopicCommand", "--bootstrap-server", fleet.bootstrap, "--create", "--topic", name)
        refused = java_tool(*command, "--partitions", "1", "--replication-factor", "4", code=1)
        assert refused.lines[0] == (
            "Error while executing topic command : Unable to replicate the partition 4 time(s): "
            "The target replication factor of 4 cannot be reached because only 3 broker(s) are registered."
        )


class TestReassign:
    def test_execute_list_verify(self, fleet: FleetOf, name: str, tmp_path: Path) -> None:
        """Another factor and another order in one go."""
        make_topic_on(fleet, name, "0:1,1:2", min_isr=1)
        plan = plan_file(tmp_path, name, [2, 1, 0], [2])
        started = reassign(fleet, "--execute", "--reassignment-json-file", plan)
        assert "Current partition replica assignment" in started.out
        before = json.loads(next(line for line in started.lines if line.startswith("{")))
        assert [one["replicas"] for one in before["partitions"]] == [[0, 1], [1, 2]]
        assert started.lines[-1] == f"Successfully started partition reassignments for {name}-0,{name}-1"
        done = eventually(
            lambda: reassign(fleet, "--verify", "--reassignment-json-file", plan).lines,
            lambda lines: "still in progress" not in " ".join(lines),
        )
        assert done[:3] == [
            "Status of partition reassignment:",
            f"Reassignment of partition {name}-0 is completed.",
            f"Reassignment of partition {name}-1 is completed.",
        ]
        assert (replicas_of(fleet, name, 0), replicas_of(fleet, name, 1)) == ((2, 1, 0), (2,))
        assert reassign(fleet, "--list").lines == ["No partition reassignments found."]

    def test_throttle_then_cancel(self, fleet: FleetOf, name: str, tmp_path: Path) -> None:
        """At 100 kB/s a move of 20 MB is still under way when it is listed and cancelled."""
        make_topic_on(fleet, name, "0", min_isr=1)
        send(fleet.bootstrap, name, [Sent(bytes(500_000)) for _ in range(2 * MOVES_A_MB)])
        plan = plan_file(tmp_path, name, [1])
        started = reassign(fleet, "--execute", "--reassignment-json-file", plan, "--throttle", "100000")
        assert "The inter-broker throttle limit was set to 100000 B/s" in started.out
        assert throttles(fleet, name) == {"leader.replication.throttled.replicas": "0:0",
                                          "follower.replication.throttled.replicas": "0:1"}  # fmt: skip
        assert reassign(fleet, "--list").lines == [
            "Current partition reassignments:",
            f"{name}-0: replicas: 1,0. adding: 1. removing: 0.",
        ]
        running = reassign(fleet, "--verify", "--reassignment-json-file", plan)
        assert f"Reassignment of partition {name}-0 is still in progress." in running.lines
        cancelled = reassign(fleet, "--cancel", "--reassignment-json-file", plan)
        assert f"Successfully cancelled partition reassignment for: {name}-0" in cancelled.out
        eventually(lambda: replicas_of(fleet, name), lambda seen: seen == (0,))
        assert throttles(fleet, name) == {}, "cancel takes the throttles away"

    def test_verify_takes_the_throttle_away(self, fleet: FleetOf, name: str, tmp_path: Path) -> None:
        make_topic_on(fleet, name, "0", min_isr=1)
        plan = plan_file(tmp_path, name, [0, 2])
        reassign(fleet, "--execute", "--reassignment-json-file", plan, "--throttle", "10000000")
        assert throttles(fleet, name)
        text = eventually(
            lambda: reassign(fleet, "--verify", "--reassignment-json-file", plan).out,
            lambda out: "is completed" in out,
        )
        assert f"Clearing topic-level throttles on topic {name}" in text
        assert throttles(fleet, name) == {}

    def test_to_a_broker_that_is_not_there(self, fleet: FleetOf, name: str, tmp_path: Path) -> None:
        make_topic_on(fleet, name, "0", min_isr=1)
        plan = plan_file(tmp_path, name, [0, 9])
        refused = reassign(fleet, "--execute", "--reassignment-json-file", plan, code=1)
        assert "Unknown broker id 9" in refused.text


class TestLeaderElection:
    def elect(self, fleet: FleetOf, *arguments: str) -> Finished:
        return java_tool(f"{TOOLS}.LeaderElectionCommand", "--bootstrap-server", fleet.bootstrap, *arguments)

    def test_preferred(self, fleet: FleetOf, name: str) -> None:
        make_topic_on(fleet, name, "1:0:2", min_isr=1)
        fleet.members[1].restart()
        fleet.wait_in_sync()
        assert fleet.leader_of(name) != 1, "it left, and nobody asked it back"
        place = ("--topic", name, "--partition", "0")
        done = self.elect(fleet, "--election-type", "preferred", *place)
        assert f"Successfully completed leader election (PREFERRED) for partitions {name}-0" in done.out
        assert fleet.leader_of(name) == 1
        again = self.elect(fleet, "--election-type", "preferred", *place)
        assert f"Valid replica already elected for partitions {name}-0" in again.out

    def test_unclean_is_not_needed(self, fleet: FleetOf, name: str) -> None:
        make_topic_on(fleet, name, "0:1:2", min_isr=1)
        done = self.elect(fleet, "--election-type", "unclean", "--topic", name, "--partition", "0")
        assert f"Valid replica already elected for partitions {name}-0" in done.out


class TestQuorum:
    def describe(self, fleet: FleetOf, what: str) -> list[str]:
        command = f"{TOOLS}.MetadataQuorumCommand"
        return java_tool(command, "--bootstrap-server", fleet.bootstrap, "describe", what).lines

    def test_status(self, fleet: FleetOf) -> None:
        status = {
            key: value.strip() for key, value in (line.split(":", 1) for line in self.describe(fleet, "--status"))
        }
        assert status["LeaderId"] in {"0", "1", "2"}
        assert int(status["LeaderEpoch"]) >= 1 and int(status["HighWatermark"]) > 1
        assert {voter["id"] for voter in json.loads(status["CurrentVoters"])} == {0, 1, 2}
        assert status["CurrentObservers"] == "[]"

    def test_replication(self, fleet: FleetOf) -> None:
        head, *rows = self.describe(fleet, "--replication")
        assert head.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
        assert {row.split()[0] for row in rows} == {"0", "1", "2"}
        assert sorted(row.split()[-1] for row in rows) == ["Follower", "Follower", "Leader"]
        assert all(int(row.split()[3]) < 100 for row in rows), "everybody is close behind the leader"

    def test_another_leader_after_the_death_of_one(self, fleet: FleetOf) -> None:
        leader = self.leader(fleet)
        fleet.members[leader].kill()
        try:
            assert eventually(lambda: self.leader(fleet), lambda seen: seen != leader) in fleet.ids
        finally:
            fleet.members[leader].start()
            fleet.wait_in_sync()

    def leader(self, fleet: FleetOf) -> int:
        return next(int(line.split(":")[1]) for line in self.describe(fleet, "--status") if line.startswith("LeaderId"))


def make_topic_on(fleet: FleetOf, topic: str, assignment: str, *, min_isr: int) -> None:
    """With replicas where they are wanted: `0:1,1:2` is two partitions."""
    options = ("--replica-assignment", assignment, "--config", f"min.insync.replicas={min_isr}")
    topics(fleet, "--create", "--topic", topic, *options)


def throttles(fleet: FleetOf, topic: str) -> dict[str, str]:
    command = ("kafka.admin.ConfigCommand", "--bootstrap-server", fleet.bootstrap, "--describe", "--topic", topic)
    shown = java_tool(*command)
    return dict(
        re.findall(r"^\s*((?:leader|follower)\.replication\.throttled\.replicas)=(\S+) sensitive", shown.out, re.M)
    )
