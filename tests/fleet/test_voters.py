"""kafka-metadata-quorum add-controller and remove-controller, unmodified, given the settings of a node."""

import re
from pathlib import Path

import pytest
from support.fleet import FleetOf
from support.fleet_members import OttlaMember
from support.java import Finished, java_tool
from support.waiting import eventually

TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
NOBODY = "AAAAAAAAAAAAAAAAAAAAZw"
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
