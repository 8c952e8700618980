"""kafka-metadata-quorum add-controller and remove-controller, unmodified, given the settings of a node."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fleet import FleetOf
from support.fleet_members import OttlaMember, Seat
from support.fleet_view import view_of
from support.java import Finished, java_tool
from support.librdkafka import make_topic
from support.ports import free_port
from support.waiting import eventually

TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
NOBODY = "AAAAAAAAAAAAAAAAAAAAZw"
JOINS = 3
ERRORS = "org.apache.kafka.common.errors"


@pytest.fixture(autouse=True)
def only_ottla(fleet: FleetOf) -> None:
    if fleet.peer != "ottla":
        pytest.skip("Kafka's fleets have the voters of their settings, which cannot be changed")


def quorum(bootstrap: str, *arguments: str, code: int = 0) -> Finished:
    return java_tool(TOOL, "--bootstrap-server", bootstrap, *arguments, code=code)


def add(bootstrap: str, settings: str, *, code: int = 0) -> Finished:
    return quorum(bootstrap, "--command-config", settings, "add-controller", code=code)


def remove(bootstrap: str, node: int, place: str, *, code: int = 0) -> Finished:
    who = ("--controller-id", str(node), "--controller-directory-id", place)
    return quorum(bootstrap, "remove-controller", *who, code=code)


def replication(fleet: FleetOf) -> dict[int, tuple[str, str]]:
    """By node: directory and status."""
    rows = [row.split() for row in quorum(fleet.bootstrap, "describe", "--replication").lines[1:]]
    return {int(row[0]): (row[1], row[-1]) for row in rows}


def server_properties(member: OttlaMember, folder: Path, **more: str) -> str:
    """As Kafka's documentation has it for a node with both roles; the tool's client takes its time-outs from it too."""
    both = f"PLAINTEXT://{member.bootstrap},CONTROLLER://{member.host}:{member.seat.quorum_port}"
    settings = {
        **member.seat.settings(member.port),
        "listeners": both,
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(member.data_dir),
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    path = folder / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


def test_a_voter_goes_and_comes_back(fleet: FleetOf, tmp_path: Path) -> None:
    before = replication(fleet)
    node = next(node for node, (_, status) in before.items() if status == "Follower")
    place, member = before[node][0], fleet.members[node]
    assert isinstance(member, OttlaMember)
    settings = server_properties(member, tmp_path)

    taken = add(member.bootstrap, settings, code=1)
    assert f"{ERRORS}.DuplicateVoterException: Node {node} is a voter already." in taken.err
    stranger = remove(fleet.bootstrap, node, NOBODY, code=1)
    assert f"{ERRORS}.VoterNotFoundException: Node {node} with directory {NOBODY} is not a voter" in stranger.err

    # Through the node itself, which does not lead: it asks the one that does.
    removed = remove(member.bootstrap, node, place)
    assert re.fullmatch(rf"Removed +KRaft controller {node} with directory id {place}", removed.lines[0])
    assert replication(fleet)[node] == (place, "Observer")
    again = remove(fleet.bootstrap, node, place, code=1)
    assert f"Node {node} with directory {place} is not a voter" in again.err

    added = add(member.bootstrap, settings)
    where = f"CONTROLLER://{member.host}:{member.seat.quorum_port}"
    assert added.lines == [f"Added controller {node} with directory id {place} and endpoints: {where}"]
    assert replication(fleet)[node] == (place, "Follower")


def test_the_leader_goes_and_comes_back(fleet: FleetOf, tmp_path: Path) -> None:
    before = replication(fleet)
    node = next(node for node, (_, status) in before.items() if status == "Leader")
    place, member = before[node][0], fleet.members[node]
    assert isinstance(member, OttlaMember)
    remove(fleet.bootstrap, node, place)
    # It follows again when it has noticed that another one leads.
    after = eventually(lambda: replication(fleet), lambda seen: node in seen)
    assert after[node] == (place, "Observer")
    assert sorted(status for _, status in after.values()) == ["Follower", "Leader", "Observer"]
    add(fleet.bootstrap, server_properties(member, tmp_path))
    assert replication(fleet)[node] == (place, "Follower")


def test_a_node_that_does_not_follow_is_not_added(fleet: FleetOf, tmp_path: Path) -> None:
    """The settings are those of a node that was formatted and never started."""
    member = fleet.members[0]
    assert isinstance(member, OttlaMember)
    folder = tmp_path / "data"
    folder.mkdir()
    cluster_id = member.seat.cluster_id
    lines = ("version=1", "node.id=9", f"cluster.id={cluster_id}", f"directory.id={NOBODY}")
    (folder / "meta.properties").write_text("\n".join(lines))
    more = {"node_id": "9", "log_dirs": str(folder), "request_timeout_ms": "1000"}
    refused = add(fleet.bootstrap, server_properties(member, tmp_path, **more), code=1)
    problem = "The voters were not changed: node 9 does not follow the metadata log; try again."
    assert f"{ERRORS}.TimeoutException: {problem}" in refused.err


@pytest.fixture
def joining(make_fleet: Callable[..., FleetOf], tmp_path: Path) -> Iterator[tuple[FleetOf, OttlaMember]]:
    """A fleet, started, and a node with both roles that knows of it only where some of its nodes are."""
    fleet = make_fleet()
    fleet.start()
    known = fleet.members[0]
    assert isinstance(known, OttlaMember)
    seat = Seat(JOINS, "d", known.host, free_port(), known.seat.cluster_id, "")
    member = OttlaMember(tmp_path / "joins", seat, {})
    del member.settings["controller.quorum.voters"]
    yield fleet, member
    member.close()


def ports_of(fleet: FleetOf) -> list[int]:
    return [member.seat.quorum_port for member in fleet.members if isinstance(member, OttlaMember)]


def test_a_node_joins_by_bootstrap_servers(joining: tuple[FleetOf, OttlaMember], tmp_path: Path, name: str) -> None:
    """The first of the servers is dead. When all nodes stop, they start without asking each other."""
    fleet, member = joining
    servers = ",".join(f"127.0.0.1:{port}" for port in (free_port(), *ports_of(fleet)[:2], member.seat.quorum_port))
    member.settings["controller.quorum.bootstrap.servers"] = servers
    member.start()
    view = eventually(lambda: view_of(member), lambda seen: seen is not None and len(seen.brokers) == 4)
    assert view is not None
    make_topic(member.bootstrap, name, partitions=1, replicas=4)
    eventually(lambda: fleet.partition(name, 0), lambda seen: seen is not None and seen.whole)
    place, status = replication(fleet)[JOINS]
    assert status == "Observer"

    member.stop()
    fleet.stop()
    for one in (member, *fleet.members):
        one.start(wait=False)
    for one in (member, *fleet.members):
        one.wait_until_ready()
    eventually(lambda: fleet.partition(name, 0), lambda seen: seen is not None and seen.whole)
    assert replication(fleet)[JOINS] == (place, "Observer")
    assert member.log_path.read_text().count("names the voters") == 1

    add(fleet.bootstrap, server_properties(member, tmp_path))
    assert replication(fleet)[JOINS] == (place, "Follower")


def test_a_node_refuses_a_fleet_that_is_not_its_own_and_a_port_for_clients(fleet: FleetOf, tmp_path: Path) -> None:
    known = fleet.members[0]
    assert isinstance(known, OttlaMember)
    own, theirs = "AAAAAAAAAAAAAAAAAAAAAA", known.seat.cluster_id
    cases = (
        (own, f"127.0.0.1:{known.seat.quorum_port}", f"belongs to cluster {theirs}, node {JOINS} to cluster {own}"),
        (theirs, known.bootstrap, f"{known.bootstrap} is a port for Kafka clients; give the node's ottla.grpc.port"),
    )
    for cluster_id, server, sentence in cases:
        seat = Seat(JOINS, "d", known.host, free_port(), cluster_id, "")
        stray = OttlaMember(tmp_path / cluster_id, seat, {"process.roles": "broker"})
        del stray.settings["controller.quorum.voters"]
        stray.settings["controller.quorum.bootstrap.servers"] = server
        try:
            stray.start(wait=False)
            eventually(lambda: stray.running, lambda runs: not runs)  # noqa: B023
            assert "controller.quorum.bootstrap.servers: " in stray.log_tail()
            assert sentence in stray.log_tail()
        finally:
            stray.close()
