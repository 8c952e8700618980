"""Small requests with large answers: one thing named a thousand times, many clients that ask for much at once."""

import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.wire.assembly import assemble
from support.frames import Connection, framed
from support.process import BrokerProcess
from support.raw_requests import header, text
from support.waiting import eventually

BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
PARTITIONS = 2_000
PRODUCERS = 1_000
MEMBERS = 100
INVALID_REQUEST = struct.pack(">h", 42)


def flexible(key: int, version: int) -> bytes:
    return header(key, version) + b"\0"


def compact(data: str | bytes) -> bytes:
    raw = data.encode() if isinstance(data, str) else data
    return many(len(raw)) + raw


def many(count: int) -> bytes:
    """The length of a compact array or string."""
    raw, out = count + 1, b""
    while raw >= 0x80:
        out += bytes([raw & 0x7F | 0x80])
        raw >>= 7
    return out + bytes([raw])


def batch(producer_id: int = -1) -> bytes:
    now_ms = int(time.time() * 1000)
    sequence = 0 if producer_id >= 0 else -1
    return bytes(
        assemble(
            b"\x0e\0\0\0\1\2x\0",
            base_offset=0,
            leader_epoch=-1,
            attributes=0,
            last_offset_delta=0,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=producer_id,
            producer_epoch=sequence,
            base_sequence=sequence,
            count=1,
        )
    )


def produce(topic: str, indexes: list[int], data: bytes) -> bytes:
    parts = b"".join(struct.pack(">ii", index, len(data)) + data for index in indexes)
    body = struct.pack(">hhii", -1, -1, 5000, 1) + text(topic) + struct.pack(">i", len(indexes))
    return framed(header(0, 3) + body + parts)


def offset_commit(group: str, topic: str, count: int) -> bytes:
    parts = b"".join(struct.pack(">iqh", index, 5, 0) for index in range(count))
    body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">qi", -1, 1) + text(topic)
    return framed(header(8, 2) + body + struct.pack(">i", count) + parts)


def offset_fetch(group: str, times: int) -> bytes:
    return framed(flexible(9, 8) + many(times) + (compact(group) + b"\0\0") * times + b"\0\0")


def describe_producers(topic: str, times: int) -> bytes:
    return framed(flexible(61, 0) + b"\2" + compact(topic) + many(times) + bytes(4) * times + b"\0\0")


def describe_groups(group: str, times: int) -> bytes:
    return framed(flexible(15, 5) + many(times) + compact(group) * times + b"\0\0")


def consumer_group_describe(group: str, times: int) -> bytes:
    return framed(flexible(69, 0) + many(times) + compact(group) * times + b"\0\0")


def list_transactions(filters: int) -> bytes:
    return framed(flexible(66, 0) + many(filters) + compact("Dead") * filters + b"\1\0")


def describe_configs(topic: str, times: int) -> bytes:
    resource = struct.pack(">b", 2) + text(topic) + struct.pack(">i", -1)
    return framed(header(32, 3) + struct.pack(">i", times) + resource * times + b"\1\1")


def metadata(topic: str, times: int) -> bytes:
    return framed(header(3, 4) + struct.pack(">i", times) + text(topic) * times + b"\0")


def heartbeat(group: str, member: str, topic: str) -> bytes:
    """A member of KIP-848 joins."""
    body = compact(group) + compact(member) + bytes(4) + b"\0\0" + struct.pack(">i", 60_000)
    return framed(flexible(68, 1) + body + b"\2" + compact(topic) + b"\0\0\1\0")


@pytest.fixture(scope="module")
def wide(broker: BrokerProcess) -> Iterator[str]:
    """A topic of many partitions: a group has an offset in each, and many producers wrote to the first."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("wide", PARTITIONS, 1)])["wide"].result(60)
    with Connection(broker.port) as connection:

        def ask(request: bytes) -> bytes:
            connection.send(request)
            return connection.read_frame()

        for kind in (b"\0", b"\1"):
            eventually(
                lambda kind=kind: ask(framed(header(10, 1) + text("many") + kind))[8:10], lambda got: got == b"\0\0"
            )
        eventually(lambda: ask(offset_commit("many", "wide", PARTITIONS))[-2:], lambda code: code == b"\0\0")
        for number in range(PRODUCERS):
            ask(produce("wide", [0], batch(10_000 + number)))
        for number in range(MEMBERS):
            ask(heartbeat("members", f"member-{number}", "wide"))
    yield "wide"


TIMES = 1_000
REQUESTS: dict[str, tuple[Callable[[], bytes], int]] = {
    "offset-fetch": (lambda: offset_fetch("many", TIMES), TIMES * 4),
    "describe-producers": (lambda: describe_producers("wide", TIMES), TIMES * 8),
    "describe-groups": (lambda: describe_groups("many", TIMES), TIMES * 8),
    "consumer-group-describe": (lambda: consumer_group_describe("members", TIMES), TIMES * 8),
    "list-transactions": (lambda: list_transactions(1_990), 10),
    "metadata": (lambda: metadata("wide", 1_990), 1_990 * 4),
}


def test_one_thing_named_very_often(attack, wide):
    """It took up to 18 seconds of one slice and 2.4 GB."""
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:
        for kind, (make, bytes_min) in REQUESTS.items():
            for _ in range(3):
                connection.send(make())
                assert len(connection.read_frame()) >= bytes_min, kind


def test_an_answer_that_would_be_too_large_is_refused(broker, wide):
    """Each line says so, and asking for fewer is answered."""
    with Connection(broker.port, read_timeout_s=60) as connection:
        connection.send(offset_fetch("many", 1_990))
        refused = connection.read_frame()
        assert refused.count(INVALID_REQUEST) == 1_990
        connection.send(describe_producers("wide", 1_990))
        assert b"ottla.response.bytes.max" in connection.read_frame()
        connection.send(offset_fetch("many", 3))
        assert len(connection.read_frame()) > 3 * PARTITIONS * 10


def test_many_clients_share_the_slices(attack, wide):
    """Many that read their answers of five megabytes: a slice for each in every turn of the loop of 150 was
    370 ms, and their answers 369 MB. None loses its connection."""
    clients = 100
    with attack() as broker, ExitStack() as stack, ThreadPoolExecutor(clients) as pool:
        connections = [stack.enter_context(Connection(broker.port, read_timeout_s=60)) for _ in range(clients)]
        for connection in connections:
            connection.send(describe_configs("wide", 1_000))
        assert all(len(answer) > 1_000_000 for answer in pool.map(Connection.read_frame, connections))


def test_very_many_batches_in_one_request(attack, wide):
    """A fifth of a second in one go. Those of one partition keep their order."""
    count = 9_900
    with attack() as broker, Connection(broker.port) as connection:
        connection.send(produce("wide", [1] * count, batch()))
        connection.send(produce("wide", [1], batch()))
        answer = connection.read_frame()
        first = len(text("wide")) + 12
        lines = [struct.unpack_from(">ihq", answer, first + number * 22) for number in range(count)]
        base = lines[0][2]
        assert lines == [(1, 0, base + number) for number in range(count)]
        assert struct.unpack_from(">ihq", connection.read_frame(), first) == (1, 0, base + count)


def test_a_connection_gives_way_to_others(attack, wide):
    """Pipelined joins of one group: half a second in one turn of the loop."""
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:
        connection.send(b"".join(heartbeat("joining", f"m{number}", "wide") for number in range(100)))
        for _ in range(100):
            assert connection.read_frame()[9:11] == b"\0\0"
