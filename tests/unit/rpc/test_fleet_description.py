"""What operators see of nodes that vote and are not registered as brokers."""

import uuid

import msgspec
import pytest
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Broker
from ottla.raft.core.messages import Voter
from ottla.raft.driver import QuorumState, ReplicaState
from ottla.rpc.fleet_description import describe_fleet

DIRECTORY = uuid.UUID(int=7)


@pytest.mark.parametrize(("heard", "fenced"), [({1, 2}, [False, False]), ({1}, [False, True])])
def test_a_voter_that_the_leader_does_not_hear_is_out_of_the_fleet(heard: set[int], fenced: list[bool]) -> None:
    voters = tuple(
        ReplicaState(node, DIRECTORY, log_end_offset=5, last_fetch_ms=-1, last_caught_up_ms=-1) for node in (1, 2)
    )
    quorum = QuorumState(1, 3, 5, voters, (), tuple(Voter(node, DIRECTORY, f"h:{node}") for node in (1, 2)))
    reply = describe_fleet(
        Image(cluster_id="c"),
        quorum,
        voters_heard=heard,
        version_of=lambda node: -1,
        address_of=lambda node: f"h:{node}",
        isr_size_min_of=lambda topic: 1,
    )
    assert [node.fenced for node in reply.nodes] == fenced
    assert [list(node.roles) for node in reply.nodes] == [["controller"]] * 2


def test_a_broker_that_an_earlier_version_registered_has_the_address_of_its_quorum() -> None:
    """Its registration does not say where it serves control: the port there is that of replication."""
    broker = Broker(1, 5, uuid.UUID(int=1), grpc_host="h", grpc_port=7000)
    reply = describe_fleet(
        Image(cluster_id="c", brokers={1: broker, 2: msgspec.structs.replace(broker, id=2, control_port=7002)}),
        QuorumState(1, 3, 5, (), (), (Voter(1, DIRECTORY, "h:9000"),)),
        voters_heard={1},
        version_of=lambda node: -1,
        address_of=lambda node: "h:9000" if node == 1 else "",
        isr_size_min_of=lambda topic: 1,
    )
    assert [node.address for node in reply.nodes] == ["h:9000", "h:7002"]
