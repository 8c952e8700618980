"""Strangers at the ports where brokers talk to each other: the quorum's, and that of replication.

A fleet of three, always: a broker alone has neither.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress

import grpc
import msgspec
import pytest
from confluent_kafka.admin import AdminClient
from ottla.errors import Code
from ottla.pb import quorum_pb2 as pb
from ottla.wire import replication as frames
from support.fleet import FleetOf
from support.librdkafka import make_topic
from support.ports import free_port
from support.process import BrokerProcess

LARGEST = (1 << 63) - 1
ROUNDS = 50
SETTING = "ottla.replication.port"
STRANGER = 99

Attack = Callable[..., AbstractContextManager[BrokerProcess]]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetOf]:
    fleet = FleetOf("ottla", tmp_path_factory.mktemp("fleet"))
    for member in fleet.members:
        member.settings[SETTING] = str(free_port())
    try:
        fleet.start()
        yield fleet
        fleet.stop()
    finally:
        fleet.close()


@pytest.fixture(scope="module")
def brokers(fleet: FleetOf) -> dict[int, BrokerProcess]:
    return dict(enumerate(fleet.members))


def hello(fleet: FleetOf, source: int, target: int) -> pb.QuorumFrame:
    return pb.QuorumFrame(
        hello=pb.Hello(
            cluster_id=fleet.members[0].settings["cluster.id"],
            node_id=source,
            directory=bytes(15) + b"\1",
            incarnation=bytes(15) + b"\2",
            version_min=1,
            version_max=1,
            endpoint="127.0.0.1:1",
            target=target,
        )
    )


def messages() -> list[pb.QuorumMessage]:
    """What would move the log, the lead or the term, if it were believed."""
    entry = pb.Entry(index=1, term=LARGEST, kind=0, data=b"mine")
    return [
        pb.QuorumMessage(term=LARGEST, vote_request=pb.VoteRequest(last_index=LARGEST, last_term=LARGEST)),
        pb.QuorumMessage(term=LARGEST, vote_request=pb.VoteRequest(last_index=9, last_term=9, handover=True)),
        pb.QuorumMessage(term=1000, vote_request=pb.VoteRequest(last_index=9, last_term=9, handover=True)),
        pb.QuorumMessage(term=LARGEST, append=pb.Append(entries=[entry], commit=LARGEST)),
        pb.QuorumMessage(term=1000, append=pb.Append(entries=[entry], commit=1)),
        pb.QuorumMessage(term=LARGEST, append_reply=pb.AppendReply(accepted=True, index=LARGEST)),
        pb.QuorumMessage(term=LARGEST, vote_reply=pb.VoteReply(granted=True)),
        pb.QuorumMessage(term=LARGEST, leader_hint=pb.LeaderHint(leader=STRANGER, endpoint="127.0.0.1:1")),
        pb.QuorumMessage(term=LARGEST, timeout_now=pb.TimeoutNow()),
    ]


def say(fleet: FleetOf, source: int, target: int) -> None:
    """All of them, again and again, on one stream."""
    said = [pb.QuorumFrame(message=message) for message in messages()] * ROUNDS
    address = f"127.0.0.1:{fleet.members[target].settings['ottla.grpc.port']}"
    with grpc.insecure_channel(address) as channel:
        call = channel.stream_stream(
            "/ottla.pb.Quorum/Exchange", pb.QuorumFrame.SerializeToString, pb.Welcome.FromString
        )
        with suppress(grpc.RpcError):
            list(call(iter([hello(fleet, source, target), *said]), timeout=20))


@pytest.mark.parametrize("targets", [(1,), (0, 1, 2)], ids=["one", "all"])
def test_messages_of_nobodys_quorum(attack: Attack, fleet: FleetOf, name: str, targets: Sequence[int]) -> None:
    """A term of 2^63-1 ended a fleet for good: it is on disk, and behind it there is no election."""
    make_topic(fleet.bootstrap, f"{name}-before", partitions=3, replicas=3)
    with attack():
        for target in targets:
            say(fleet, STRANGER, target)
            say(fleet, (target + 1) % 3, target)  # under the name of a node that is there
    fleet.members[targets[-1]].restart()
    fleet.wait_in_sync()
    make_topic(fleet.bootstrap, f"{name}-after", partitions=3, replicas=3)
    for member in fleet.members:
        there = AdminClient({"bootstrap.servers": member.bootstrap}).list_topics(timeout=20).topics
        assert {f"{name}-before", f"{name}-after"} <= there.keys()
        assert "out of reach" not in member.log_path.read_text()


def replication_port(member: BrokerProcess) -> str:
    return f"127.0.0.1:{member.settings[SETTING]}"


def answers(member: BrokerProcess, *said: frames.Frame | bytes) -> list[frames.Frame]:
    """Of a stream of replication, until the broker ends it."""
    with grpc.insecure_channel(replication_port(member)) as channel:
        copy = channel.stream_stream("/ottla.pb.Replication/Copy", None, None)
        sent = [each if isinstance(each, bytes) else frames.encode(each) for each in said]
        heard: list[frames.Frame] = []
        with suppress(grpc.RpcError):
            heard.extend(map(frames.decode, copy(iter(sent), timeout=20)))
        return heard


def test_a_broker_that_is_not_registered_copies_nothing(attack: Attack, fleet: FleetOf) -> None:
    """It was welcome, and could say what it likes about how far the copies of others are."""
    cluster_id = fleet.members[0].settings["cluster.id"]
    with attack():
        for member in fleet.members:
            for _ in range(20):
                (refused,) = answers(member, frames.Hello(cluster_id, STRANGER, 1))
                assert isinstance(refused, frames.Refused) and refused.code == Code.broker_id_not_registered
        other = frames.Hello(cluster_id, 1, LARGEST)
        (refused,) = answers(fleet.members[0], other)
        assert isinstance(refused, frames.Refused) and refused.code == Code.stale_broker_epoch
    assert not any("Traceback" in member.log_path.read_text() for member in fleet.members)


def test_a_message_of_very_many_markers(attack: Attack, fleet: FleetOf) -> None:
    """300,000 of them in one message were written in one slice: seconds in which nobody was served."""
    order = {
        "producer_id": 1,
        "epoch": 0,
        "coordinator_epoch": 0,
        "commit": False,
        "partitions": [("t", 0)] * 300_000,
    }
    data = msgspec.msgpack.encode({"orders": [order]})
    with attack():
        for member in fleet.members:
            with grpc.insecure_channel(replication_port(member)) as channel:
                ask = channel.unary_unary("/ottla.pb.Transactions/WriteMarkers", None, None)
                codes = msgspec.msgpack.decode(ask(data, timeout=30))["codes"]
                assert codes == [Code.invalid_request]
