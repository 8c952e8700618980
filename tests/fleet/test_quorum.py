"""The metadata quorum of real processes: who leads, who follows, who is kept out, what survives."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from ottla.pb import control_pb2 as pb
from ottla.pb.control_pb2_grpc import ControlStub
from support.fleet import FleetOf
from support.fleet_members import OttlaMember, Seat
from support.fleet_view import view_of
from support.java import java_tool
from support.librdkafka import make_topic
from support.ports import free_port
from support.waiting import eventually

ELECTION_S_MAX = 10.0
OBSERVER = 3


@pytest.fixture(autouse=True)
def only_ottla(fleet: FleetOf) -> None:
    if fleet.peer != "ottla":
        pytest.skip("asks by gRPC")


def seat_of(fleet: FleetOf, broker: int) -> Seat:
    member = fleet.members[broker]
    assert isinstance(member, OttlaMember)
    return member.seat


def control(fleet: FleetOf, broker: int) -> ControlStub:
    seat = seat_of(fleet, broker)
    return ControlStub(grpc.insecure_channel(f"{seat.host}:{seat.quorum_port}"))


def controller_of(fleet: FleetOf) -> int:
    """The node that leads the quorum, as itself says."""

    def ask() -> list[int]:
        found = []
        for broker in fleet.ids:
            if fleet.members[broker].running:
                try:
                    reply = control(fleet, broker).DescribeFleet(pb.DescribeFleetRequest(), timeout=2)
                    found.append(reply.leader)
                except grpc.RpcError:
                    pass
        return found

    return eventually(ask, lambda seen: len(seen) == 1, timeout_s=ELECTION_S_MAX)[0]


def describe(fleet: FleetOf) -> pb.DescribeFleetReply:
    return control(fleet, controller_of(fleet)).DescribeFleet(pb.DescribeFleetRequest(), timeout=5)


def quorum_status(bootstrap: str) -> dict[str, str]:
    tool = ("org.apache.kafka.tools.MetadataQuorumCommand", "--bootstrap-server", bootstrap, "describe", "--status")
    lines = java_tool(*tool).lines
    return {key: value.strip() for key, value in (line.split(":", 1) for line in lines)}


def test_any_node_names_the_controller(fleet: FleetOf) -> None:
    leader = controller_of(fleet)
    for broker in set(fleet.ids) - {leader}:
        with pytest.raises(grpc.RpcError) as refused:
            control(fleet, broker).DescribeFleet(pb.DescribeFleetRequest(), timeout=5)
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        told = dict(refused.value.trailing_metadata())
        seat = seat_of(fleet, leader)
        assert (told["ottla-leader"], told["ottla-leader-address"]) == (str(leader), f"{seat.host}:{seat.quorum_port}")


def test_the_fleet_describes_itself(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=3, replicas=3)
    fleet.wait_in_sync()
    seen = describe(fleet)
    assert [(node.id, node.rack, list(node.roles), node.fenced) for node in seen.nodes] == [
        (broker, "abc"[broker], ["broker", "controller"], False) for broker in fleet.ids
    ]
    assert [node.leads_quorum for node in seen.nodes] == [broker == seen.leader for broker in fleet.ids]
    assert seen.partitions_offline == seen.partitions_under_replicated == 0
    assert all(node.version >= 1 for node in seen.nodes)


def test_a_new_controller_knows_what_the_dead_one_did(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=4, replicas=3)
    before = describe(fleet)
    fleet.members[before.leader].kill()
    successor = controller_of(fleet)
    assert successor != before.leader
    after = eventually(lambda: describe(fleet), lambda seen: seen.nodes[before.leader].fenced)
    assert after.leader_epoch > before.leader_epoch
    described = control(fleet, successor).DescribeTopics(pb.DescribeTopicsRequest(names=[name]), timeout=5)
    assert len(described.topics[0].partitions) == 4
    assert all(part.leader != before.leader for part in described.topics[0].partitions)
    survivors = [fleet.members[broker].bootstrap for broker in fleet.ids if broker != before.leader]
    make_topic(",".join(survivors), f"{name}-later", partitions=1, replicas=2)
    fleet.members[before.leader].start()
    fleet.wait_in_sync()
    assert (f"{name}-later", 0) in view_of(fleet.members[before.leader]).partitions  # type: ignore[union-attr]


def test_every_node_restarts_and_the_fleet_is_whole_again(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=3, replicas=3)
    for broker in fleet.ids:
        assert fleet.members[broker].stop() == 0
        # It said goodbye: nobody has to wait for its session to end.
        assert describe(fleet).nodes[broker].fenced
        fleet.members[broker].start()
        fleet.wait_in_sync()
    assert len(describe(fleet).nodes) == len(fleet.ids)


def test_a_fleet_that_was_stopped_as_a_whole_goes_on(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=2, replicas=3)
    version = describe(fleet).version
    fleet.stop()
    fleet.start()
    fleet.wait_in_sync()
    seen = describe(fleet)
    assert seen.version > version
    assert fleet.partition(name, 1) is not None


def test_a_voter_that_lost_its_disk_votes_again_when_it_is_added(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=1, replicas=3)
    fleet.wait_in_sync()
    lost = (controller_of(fleet) + 1) % len(fleet.members)
    fleet.members[lost].kill()
    shutil.rmtree(fleet.members[lost].data_dir)
    fleet.members[lost].start()
    leader = control(fleet, controller_of(fleet))
    status = quorum_status(fleet.bootstrap)
    assert lost in [observer["id"] for observer in json.loads(status["CurrentObservers"])]
    voters = leader.AddVoter(pb.AddVoterRequest(node=lost), timeout=10).voters
    assert sorted(voter.id for voter in voters) == list(fleet.ids)
    assert json.loads(quorum_status(fleet.bootstrap)["CurrentObservers"]) == []
    fleet.wait_in_sync()
    # Its vote counts: with another one dead the fleet still decides.
    dead = (lost + 1) % len(fleet.members)
    fleet.members[dead].kill()
    survivors = ",".join(fleet.members[broker].bootstrap for broker in fleet.ids if broker != dead)
    make_topic(survivors, f"{name}-later", partitions=1, replicas=2)
    fleet.members[dead].start()
    fleet.wait_in_sync()


@pytest.fixture
def fourth(fleet: FleetOf, tmp_path: Path) -> Iterator[OttlaMember]:
    """A broker that does not vote, not yet started."""
    known = seat_of(fleet, 0)
    seat = Seat(OBSERVER, "d", known.host, free_port(), known.cluster_id, known.voters)
    member = OttlaMember(tmp_path / "fourth", seat, {"process.roles": "broker"})
    yield member
    member.close()


def test_a_broker_without_a_vote_follows(fleet: FleetOf, fourth: OttlaMember, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=1, replicas=3)
    fourth.start()
    view = eventually(lambda: view_of(fourth), lambda seen: seen is not None and len(seen.brokers) == 4)
    assert view is not None and (name, 0) in view.partitions
    for bootstrap in (fourth.bootstrap, fleet.members[0].bootstrap):
        status = quorum_status(bootstrap)
        assert int(status["LeaderId"]) == controller_of(fleet)
        voters = json.loads(status["CurrentVoters"])
        assert sorted(voter["id"] for voter in voters) == list(fleet.ids)
        ports = {voter["id"]: int(re.findall(r":(\d+)", voter["endpoints"][0])[-1]) for voter in voters}
        assert ports == {broker: seat_of(fleet, broker).quorum_port for broker in fleet.ids}
        assert [observer["id"] for observer in json.loads(status["CurrentObservers"])] == [OBSERVER]
        assert int(status["MaxFollowerLag"]) >= 0
    make_topic(fourth.bootstrap, f"{name}-spread", partitions=1, replicas=4)
    fourth.kill()
    controller = control(fleet, controller_of(fleet))
    eventually(
        lambda: controller.DescribeFleet(pb.DescribeFleetRequest(), timeout=5).nodes[OBSERVER],
        lambda node: node.fenced and list(node.roles) == ["broker"],
    )
    assert controller.Unregister(pb.UnregisterRequest(broker=OBSERVER), timeout=5).outcome.code == 0
    deleted = controller.DeleteTopics(pb.DeleteTopicsRequest(names=[f"{name}-spread"]), timeout=5)
    assert deleted.topics[0].outcome.code == 0


def test_a_node_of_another_fleet_is_kept_out(fleet: FleetOf, fourth: OttlaMember) -> None:
    fourth.settings["cluster.id"] = "AAAAAAAAAAAAAAAAAAAAAA"
    fourth.start(wait=False)
    refused = "belongs to cluster AAAAAAAAAAAAAAAAAAAAAA"
    eventually(fourth.log_tail, lambda text: "refused by node" in text and refused in text)
    eventually(fleet.log_tails, lambda text: f"refused: node {OBSERVER}" in text and refused in text)
    assert len(describe(fleet).nodes) == len(fleet.ids)
    assert fourth.stop() == 0


def test_a_second_node_with_a_taken_id_is_kept_out(fleet: FleetOf, tmp_path: Path) -> None:
    taken = seat_of(fleet, 1)
    seat = Seat(1, "z", taken.host, free_port(), taken.cluster_id, taken.voters)
    double = OttlaMember(tmp_path / "double", seat, {})
    double.start(wait=False)
    try:
        eventually(double.log_tail, lambda text: "node id 1 is taken" in text)
        eventually(fleet.log_tails, lambda text: "refused: node id 1 is taken" in text)
        seen = describe(fleet)
        assert [(node.id, node.rack, node.fenced) for node in seen.nodes] == [
            (broker, "abc"[broker], False) for broker in fleet.ids
        ]
    finally:
        double.close()


def test_a_voter_that_is_not_listed_does_not_start(fleet: FleetOf, tmp_path: Path) -> None:
    known = seat_of(fleet, 0)
    stray = OttlaMember(tmp_path / "stray", Seat(7, "z", known.host, free_port(), known.cluster_id, known.voters), {})
    done = subprocess.run(stray.command(), capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert "node 7 has the role controller, but is not among controller.quorum.voters=" in done.stderr
    assert not (tmp_path / "stray" / "data").exists()


class ControllerAlone(OttlaMember):
    """Has no listener for clients: it is ready when its control service answers."""

    def _answers(self) -> bool:
        channel = grpc.insecure_channel(f"{self.seat.host}:{self.seat.quorum_port}")
        try:
            ControlStub(channel).DescribeFleet(pb.DescribeFleetRequest(), timeout=2)
        except grpc.RpcError:
            return False
        return True


def test_a_controller_without_a_broker_and_a_broker_without_a_controller(fleet: FleetOf, tmp_path: Path) -> None:
    cluster_id, port = seat_of(fleet, 0).cluster_id, free_port()
    voters = f"1@127.0.0.1:{port}"
    seats = [Seat(1, "a", "127.0.0.1", port, cluster_id, voters), Seat(2, "b", "127.0.0.1", 0, cluster_id, voters)]
    controller = ControllerAlone(tmp_path / "controller", seats[0], {"process.roles": "controller"})
    broker = OttlaMember(tmp_path / "broker", seats[1], {"process.roles": "broker"})
    try:
        controller.start()
        broker.start()
        make_topic(broker.bootstrap, "t", partitions=1, replicas=1)
        stub = ControlStub(grpc.insecure_channel(f"127.0.0.1:{port}"))
        seen = stub.DescribeFleet(pb.DescribeFleetRequest(), timeout=5)
        assert [(node.id, list(node.roles)) for node in seen.nodes] == [(2, ["broker"]), (1, ["controller"])]
        assert (broker.stop(), controller.stop()) == (0, 0)
    finally:
        broker.close()
        controller.close()


def test_a_broker_alone_does_without_grpc(fleet: FleetOf, tmp_path: Path) -> None:
    from support.ottla_broker import OttlaBroker

    alone = OttlaBroker(tmp_path / "alone")
    alone.start()
    loaded = Path(f"/proc/{alone.pid}/maps").read_text()
    alone.close()
    assert "cygrpc" not in loaded
    assert "cygrpc" in Path(f"/proc/{fleet.members[0].pid}/maps").read_text()
