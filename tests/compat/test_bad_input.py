"""Bytes that no client sends: refused with Kafka's error where there is one, else that connection alone is closed."""

import random
import struct
from datetime import timedelta

import pytest
from kio.schema.api_versions.v3.request import ApiVersionsRequest as ApiVersionsRequestV3
from kio.schema.api_versions.v3.response import ApiVersionsResponse as ApiVersionsResponseV3
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse
from kio.schema.metadata.v9.request import MetadataRequest as MetadataRequestV9
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from support.frames import Connection, encode_request, framed
from support.librdkafka import Sent, make_topic, read, send, watermarks
from support.process import BrokerProcess
from support.raw_batches import RawBatch

BROKER_SETTINGS = {"socket.request.max.bytes": "10000000"}
MEGABYTE = 1 << 20
CORRUPT_MESSAGE, UNSUPPORTED_VERSION = 2, 35
OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_RECORD = 45, 47, 87


@pytest.fixture
def connection(broker: BrokerProcess):  # type: ignore[no-untyped-def]
    with Connection(broker.port) as opened:
        yield opened


@pytest.fixture(autouse=True)
def others_go_on(broker: BrokerProcess):  # type: ignore[no-untyped-def]
    """Whatever one connection does, another that is already open stays served."""
    with Connection(broker.port) as bystander:
        bystander.ask(MetadataRequest(topics=()), MetadataResponse)
        yield
        assert bystander.ask(MetadataRequest(topics=()), MetadataResponse).brokers


def produce_request(topic: str, records: bytes, *, acks: int = -1) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    topic_data = (TopicProduceData(name=topic, partition_data=(partition,)),)
    return ProduceRequest(acks=acks, timeout=timedelta(seconds=5), topic_data=topic_data)


def produce(connection: Connection, topic: str, records: bytes) -> tuple[int, int]:
    """Error code and base offset."""
    answer = connection.ask(produce_request(topic, records), ProduceResponse)
    (partition,) = answer.responses[0].partition_responses
    return int(partition.error_code), partition.base_offset


def fetch_request(topic: str, *, size: int, wait_ms: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    return FetchRequest(
        max_wait=timedelta(milliseconds=wait_ms),
        min_bytes=1,
        max_bytes=size,
        isolation_level=0,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def test_unframed_bytes_close_the_connection(broker: BrokerProcess) -> None:
    cases = {
        "larger than socket.request.max.bytes": struct.pack(">i", 10_000_001) + b"x" * 100,
        "negative size": struct.pack(">i", -1) + b"x" * 100,
        "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "frame of zero bytes": struct.pack(">i", 0),
        "header cut off": framed(b"\0\x12\0"),
        "body cut off": framed(encode_request(produce_request("t", b"x" * 100))[:-60]),
        "unknown API key": framed(struct.pack(">hhih", 9999, 0, 7, -1)),
        "negative API key": framed(struct.pack(">hhih", -5, 0, 7, -1)),
        "version of Metadata far beyond": framed(struct.pack(">hhih", 3, 99, 7, -1)),
    }
    for case, data in cases.items():
        with Connection(broker.port) as connection:
            connection.send(data)
            assert connection.closed_by_peer(), case


def test_random_garbage(broker: BrokerProcess) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(40):
        with Connection(broker.port) as connection:
            header = struct.pack(">hhi", chance.choice([0, 1, 2, 3, 18, 19, 22, 32]), chance.randrange(12), 1)
            try:
                connection.send(framed(header + chance.randbytes(300)))
                connection.send(b"\xff")
            except ConnectionError:
                pass  # closed already: just what is wanted


def test_unfinished_frame_then_hangup(broker: BrokerProcess) -> None:
    for size in (1, 3, 4, 5, 20):
        with Connection(broker.port) as connection:
            connection.send(framed(encode_request(MetadataRequest(topics=())) + b"x" * 30)[:size])


def test_api_versions_of_the_future(connection: Connection) -> None:
    connection.send(framed(struct.pack(">hhih", 18, 99, 1234, -1) + b"\0\0\0\0"))
    answer = connection.read_frame()
    correlation, error, count = struct.unpack(">ihi", answer[:10])
    assert (correlation, error) == (1234, UNSUPPORTED_VERSION)
    ranges = [struct.unpack(">hhh", answer[10 + 6 * i : 16 + 6 * i]) for i in range(count)]
    assert (18, 0, 4) in ranges and len(answer) == 10 + 6 * count
    # The client asks again, lower, on the same connection.
    again = connection.ask(
        ApiVersionsRequestV3(client_software_name="raw", client_software_version="1"), ApiVersionsResponseV3
    )
    assert int(again.error_code) == 0 and any(key.api_key == 0 for key in again.api_keys)


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (RawBatch(crc_error=1).encode(), CORRUPT_MESSAGE),
        (RawBatch(length_error=-20).encode(), CORRUPT_MESSAGE),
        (RawBatch(length_error=7).encode(), INVALID_RECORD),
        (RawBatch(values=(b"a", b"b")).encode()[:-3], INVALID_RECORD),
        (RawBatch().encode()[:40], INVALID_RECORD),
    ],
    ids=["crc", "too-short", "too-long", "cut-off", "header-cut-off"],
)
def test_broken_batches_write_nothing(
    connection: Connection, bootstrap: str, name: str, batch: bytes, error: int
) -> None:
    make_topic(bootstrap, name)
    assert produce(connection, name, batch)[0] == error
    assert watermarks(bootstrap, name) == (0, 0)


def test_after_a_wrong_crc_the_connection_lives(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    assert produce(connection, name, RawBatch(crc_error=1).encode())[0] == CORRUPT_MESSAGE
    assert produce(connection, name, RawBatch().encode()) == (0, 0)
    assert [m.value() for m in read(bootstrap, name)] == [b"value"]


@pytest.mark.parametrize(("magic", "error"), [(0, INVALID_RECORD), (1, INVALID_RECORD), (3, CORRUPT_MESSAGE)])
def test_other_magic_is_refused(connection: Connection, bootstrap: str, name: str, magic: int, error: int) -> None:
    make_topic(bootstrap, name)
    assert produce(connection, name, RawBatch(magic=magic).encode())[0] == error
    assert watermarks(bootstrap, name) == (0, 0)


def test_wrong_record_count_is_refused(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    assert produce(connection, name, RawBatch(count_error=1).encode())[0] == INVALID_RECORD
    assert watermarks(bootstrap, name) == (0, 0)


def test_two_batches_in_one_request_are_refused(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    assert produce(connection, name, RawBatch().encode() * 2)[0] == INVALID_RECORD
    assert watermarks(bootstrap, name) == (0, 0)


def test_sequences(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)

    def batch(sequence: int, *values: bytes, epoch: int = 0) -> bytes:
        return RawBatch(values=values, producer_id=7_000_000, producer_epoch=epoch, base_sequence=sequence).encode()

    first = batch(0, b"0", b"1")
    assert produce(connection, name, first) == (0, 0)
    assert produce(connection, name, batch(2, b"2")) == (0, 2)
    assert produce(connection, name, first) == (0, 0), "a repeated batch is answered as the first time"
    assert produce(connection, name, batch(5, b"gap"))[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(connection, name, batch(3, b"3")) == (0, 3)
    assert produce(connection, name, batch(1, b"new epoch, not from zero", epoch=1))[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(connection, name, batch(0, b"4", epoch=1)) == (0, 4)
    assert produce(connection, name, batch(4, b"zombie"))[0] == INVALID_PRODUCER_EPOCH
    assert [m.value() for m in read(bootstrap, name)] == [b"0", b"1", b"2", b"3", b"4"]


def test_pipelined_requests_are_answered_in_order(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    # The first waits at the broker for data that comes by the second: order of answers must hold all the same
    # for a client that pipelines (the fetch times out, then the produce is done).
    waits = fetch_request(name, size=MEGABYTE, wait_ms=300)
    connection.send(
        framed(encode_request(waits, correlation_id=100))
        + framed(encode_request(produce_request(name, RawBatch().encode()), correlation_id=101))
        + b"".join(framed(encode_request(MetadataRequest(topics=()), correlation_id=102 + i)) for i in range(50))
    )
    answers = [struct.unpack(">i", connection.read_frame()[:4])[0] for _ in range(52)]
    assert answers == list(range(100, 152))


def test_bytes_one_at_a_time(connection: Connection, bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    data = framed(encode_request(produce_request(name, RawBatch().encode())))
    connection.send_in_pieces(data, [1] * len(data))
    connection.read_frame()
    assert watermarks(bootstrap, name) == (0, 1)


def test_huge_array_length_takes_no_memory(broker: BrokerProcess) -> None:
    before = broker.resident_bytes()
    lengths = [(1, struct.pack(">i", 0x7FFFFFFF)), (1, struct.pack(">i", 5_000_000)), (9, b"\xff\xff\xff\xff\x07")]
    for version, length in lengths:
        header = struct.pack(">hhih", 3, version, 1, -1) + (b"\0" if version >= 9 else b"")
        with Connection(broker.port) as connection:
            connection.send(framed(header + length + b"\0" * 20))
            assert connection.closed_by_peer()
    assert broker.resident_bytes() - before < 150 * MEGABYTE


def test_unknown_tagged_fields_are_skipped(connection: Connection) -> None:
    asked = MetadataRequestV9(
        topics=(),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    body = encode_request(asked)
    # Header v2 ends with an empty tag section after the client id "raw"; the body ends with one too.
    header_end = 2 + 2 + 4 + 2 + 3
    tags = b"\x02" + b"\x64\x03abc" + b"\xc8\x01\x00"
    tagged = body[:header_end] + tags + body[header_end + 1 : -1] + tags
    connection.send(framed(tagged))
    assert connection.read_frame()[:4] == struct.pack(">i", 1)


def test_a_client_that_does_not_read(broker: BrokerProcess, name: str) -> None:
    """It asks for far more than it takes: the broker must not pile up answers in memory, and others go on."""
    make_topic(broker.bootstrap, name)
    send(broker.bootstrap, name, [Sent(b"x" * 100_000) for _ in range(100)], batch_size=1_000_000)
    ask = fetch_request(name, size=5 * MEGABYTE, wait_ms=0)
    before = broker.resident_bytes()
    with Connection(broker.port, read_timeout_s=2.0) as greedy:
        requests = framed(encode_request(ask)) * 200
        try:
            greedy.socket.settimeout(1.0)
            greedy.send(requests)
        except TimeoutError:
            pass  # the broker stopped reading: as it should
        assert len(read(broker.bootstrap, name)) == 100
        assert broker.resident_bytes() - before < 200 * MEGABYTE
