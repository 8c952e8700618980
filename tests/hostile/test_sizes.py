"""Requests, names and messages between nodes that are far larger than anybody needs."""

import struct
import uuid
from collections.abc import Callable, Iterator

import grpc
import pytest
from confluent_kafka.admin import AdminClient
from ottla.pb import quorum_pb2 as pb
from support.frames import Connection, framed
from support.ottla_broker import OttlaBroker
from support.ports import free_port
from support.process import BrokerProcess
from support.raw_requests import compact, header, text, uvarint
from support.waiting import eventually

GRPC_PORT = free_port()
BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
MANY_BYTES = 95 << 20
LINES_BYTES_MAX = 100 * 1024  # what the log may grow by
NO_ANSWER_SECONDS = 10.0
KEPT_BYTES_MAX = 24 << 20


def flexible(key: int, version: int) -> bytes:
    return header(key, version) + b"\0"


def api_versions_of(software: bytes) -> bytes:
    return framed(flexible(18, 3) + compact(software) + compact(b"1") + b"\0")


def metadata_of(names: list[bytes], *, create: bool = False) -> bytes:
    topics = b"".join(compact(name) + b"\0" for name in names)
    return framed(flexible(3, 9) + uvarint(len(names) + 1) + topics + bytes([create, 0, 0, 0]))


def join(group: str, metadata: bytes, *, version: int = 6, reason: bytes = b"") -> bytes:
    """Of a static member whose session lasts for half an hour."""
    head = flexible(11, version) + compact(group.encode()) + struct.pack(">ii", 1_800_000, 10_000)
    who = compact(b"") + compact(b"instance") + compact(b"consumer")
    protocols = b"\2" + compact(b"range") + compact(metadata) + b"\0"
    return framed(head + who + protocols + (compact(reason) if version >= 8 else b"") + b"\0")


@pytest.fixture(scope="module")
def coordinated(broker: BrokerProcess) -> None:
    """The broker coordinates groups."""

    def find() -> bytes:
        with Connection(broker.port) as connection:
            connection.send(framed(header(10, 0) + text("any")))
            return connection.read_frame()[4:6]

    eventually(find, lambda code: code == b"\0\0")


@pytest.mark.parametrize(
    "make",
    [
        lambda: api_versions_of(b"a" * MANY_BYTES),
        lambda: metadata_of(["é".encode() * (MANY_BYTES // 2)]),
        lambda: join("large", bytes(MANY_BYTES)),
    ],
    ids=["software", "topic", "member"],
)
def test_a_request_with_one_field_of_95_mb(attack, make: Callable[[], bytes]):
    """Decoding them held the loop for half a second and took 340 MB; a member's bytes stayed for half an hour."""
    request = make()
    with attack() as broker:
        logged = broker.log_path.stat().st_size
        with Connection(broker.port) as connection, pytest.raises(ConnectionError):
            connection.send(request)
            connection.read_frame()
        lines = broker.log_path.read_text(errors="replace")[logged:]
        assert "(ottla.request.bytes.max)" in lines
        assert len(lines) < LINES_BYTES_MAX


def test_a_name_of_many_megabytes_in_a_request_that_may_be_large(attack):
    with attack() as broker, Connection(broker.port) as connection, pytest.raises(ConnectionError):
        connection.send(metadata_of([b"a" * (15 << 20)]))
        connection.read_frame()


def test_requests_with_as_many_long_names_as_elements_are_allowed(broker):
    with Connection(broker.port) as connection:
        connection.send(metadata_of([f"{number:0>249}".encode() for number in range(49_000)]))
        assert len(connection.read_frame()) > 49_000 * 249


@pytest.mark.usefixtures("coordinated")
def test_members_keep_no_more_than_there_is_memory_for(attack):
    """Ten megabytes each, and their connections are gone at once."""
    with attack() as broker:
        codes = [joined(broker, f"group-{number}", bytes(10 << 20)) for number in range(12)]
        assert codes.count(0) == 6
        assert set(codes) == {0, 15}  # COORDINATOR_NOT_AVAILABLE
        for number in range(12):
            leave(broker, f"group-{number}")
        assert eventually(lambda: joined(broker, "later", bytes(10)), lambda code: code == 0) == 0


def joined(broker: BrokerProcess, group: str, metadata: bytes) -> int:
    with Connection(broker.port) as connection:
        connection.send(join(group, metadata))
        return int.from_bytes(connection.read_frame()[9:11], "big")


def leave(broker: BrokerProcess, group: str) -> None:
    """As an administrator asks for it: by instance."""
    member = compact(b"") + compact(b"instance") + b"\0"
    with Connection(broker.port) as connection:
        connection.send(framed(flexible(13, 4) + compact(group.encode()) + b"\2" + member + b"\0"))
        connection.read_frame()


@pytest.mark.usefixtures("coordinated")
def test_log_lines_have_an_end(attack):
    """A reason of 40 MB made 84 MB of log, forty thousand names that could not be made a line of 10 MB."""
    with attack() as broker:
        logged = broker.log_path.stat().st_size
        with Connection(broker.port) as connection:
            connection.send(join("reasons", bytes(6), version=8, reason=b"r" * (1 << 20)))
            connection.read_frame()
        with Connection(broker.port) as connection:
            connection.send(metadata_of([f"{number:0>249}".encode() for number in range(40_000)], create=True))
            connection.read_frame()
        assert broker.log_path.stat().st_size - logged < LINES_BYTES_MAX


# -- between nodes


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker alone that others might join: it has a port for them."""
    alone = OttlaBroker(tmp_path_factory.mktemp("node"), settings={"ottla.grpc.port": str(GRPC_PORT)})
    try:
        alone.start()
        yield alone
        assert alone.stop() == 0
    finally:
        alone.close()


def test_a_snapshot_of_400_mb_from_a_stranger(node):
    """The cluster's id is no secret: clients are told it. It took 420 MB, which stayed."""
    cluster = AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=10).cluster_id
    before = node.resident_bytes()
    with grpc.insecure_channel(f"127.0.0.1:{GRPC_PORT}", options=WITHOUT_LIMIT) as channel:
        send = channel.stream_unary("/ottla.pb.Quorum/SendSnapshot", pb.SnapshotFrame.SerializeToString)
        with pytest.raises(grpc.RpcError) as refused:
            send(snapshot(cluster), timeout=NO_ANSWER_SECONDS)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert node.resident_bytes() - before < KEPT_BYTES_MAX


@pytest.mark.parametrize(
    ("size", "code"),
    [(96 << 20, grpc.StatusCode.RESOURCE_EXHAUSTED), (15 << 20, grpc.StatusCode.FAILED_PRECONDITION)],
    ids=["too-large", "large"],
)
def test_large_first_messages_to_a_node(node, size: int, code: grpc.StatusCode):
    """Four of 96 MB took a gigabyte, which stayed."""
    before = node.resident_bytes()
    with grpc.insecure_channel(f"127.0.0.1:{GRPC_PORT}", options=WITHOUT_LIMIT) as channel:
        exchange = channel.stream_stream("/ottla.pb.Quorum/Exchange")
        for _ in range(4):
            with pytest.raises(grpc.RpcError) as refused:
                list(exchange(iter([b"\x7a" + uvarint(size) + bytes(size)]), timeout=NO_ANSWER_SECONDS))
            assert refused.value.code() is code
    eventually(lambda: node.resident_bytes() - before, lambda grown: grown < KEPT_BYTES_MAX)


WITHOUT_LIMIT = [("grpc.max_send_message_length", -1), ("grpc.enable_http_proxy", 0)]


def snapshot(cluster: str) -> Iterator[pb.SnapshotFrame]:
    hello = pb.Hello(
        cluster_id=cluster,
        node_id=77,
        directory=uuid.uuid4().bytes,
        incarnation=uuid.uuid4().bytes,
        version_min=1,
        version_max=1,
        endpoint="127.0.0.1:1",
        target=1,
    )
    yield pb.SnapshotFrame(hello=hello)
    yield pb.SnapshotFrame(head=pb.SnapshotHead(size=400 << 20))
    for _ in range(100):
        yield pb.SnapshotFrame(data=bytes(4 << 20))
