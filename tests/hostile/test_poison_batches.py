"""Batches that no client could read again: refused with a code that is not retried for ever, nothing written, the
connection kept; and bodies that decompress to very much stall nobody. Apache Kafka's codes stand beside ours."""

import gzip
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import cramjam
import lz4.frame
import psutil
import pytest
from backports import zstd
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from support.frames import Connection, decode_response, encode_request, framed
from support.librdkafka import Sent, make_topic, read, send, watermarks
from support.ottla_broker import OttlaBroker
from support.peers import PEERS
from support.process import BrokerProcess
from support.raw_batches import enclosed, raw_record, sized, varint
from support.waiting import eventually

UNKNOWN_SERVER_ERROR, NONE, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, STORAGE_ERROR = -1, 0, 2, 10, 56
UNSUPPORTED_COMPRESSION, INVALID_RECORD = 76, 87
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
GOOD = raw_record(0, b"value", key=b"key")
TWO = GOOD + raw_record(1, b"value", key=b"key")
BOMB_BYTES = 120_000_000


def lz4_frame(data: bytes, *, linked: bool = False) -> bytes:
    return lz4.frame.compress(data, block_linked=linked)


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


# name → the batch, and what Kafka 4.1.1 answers where that differs from INVALID_RECORD
POISON: dict[str, tuple[bytes, int]] = {
    "nothing at all": (enclosed(b"", count=1), INVALID_RECORD),
    "71 bytes claim 2^31-1 records": (enclosed(bytes(10), count=2**31 - 1), INVALID_RECORD),
    "fewer records than claimed": (enclosed(GOOD, count=2), INVALID_RECORD),
    "more records than claimed": (enclosed(TWO, count=1), INVALID_RECORD),
    "last offset delta is not count - 1": (enclosed(TWO, count=2, last_offset_delta=5), INVALID_RECORD),
    "cut off in the last record": (enclosed(TWO[:-3], count=2), INVALID_RECORD),
    "bytes behind the records": (enclosed(GOOD + b"tail", count=1), INVALID_RECORD),
    "a record of negative length": (enclosed(varint(-5) + GOOD[1:], count=1), INVALID_RECORD),
    "a record of 2^31-1 bytes": (enclosed(varint(2**31 - 1) + GOOD[1:], count=1), INVALID_RECORD),
    "a key of 2^30 bytes": (enclosed(sized(b"\0\0\0" + varint(2**30) + b"kk"), count=1), INVALID_RECORD),
    "2^30 headers": (enclosed(raw_record(0, b"v", tail=varint(2**30)), count=1), INVALID_RECORD),
    "a header without a name": (
        enclosed(raw_record(0, b"v", tail=varint(1) + varint(-1) * 2), count=1),
        INVALID_RECORD,
    ),
    "a header cut off": (enclosed(raw_record(0, b"v", tail=varint(1) + varint(9) + b"n"), count=1), INVALID_RECORD),
    # Kafka stores these as they are: it looks at offset deltas and at lengths below -1 nowhere.
    "offset deltas 0, 0": (enclosed(GOOD + GOOD, count=2), NONE),
    "offset delta 7": (enclosed(raw_record(7, b"v"), count=1), NONE),
    "a value of length -2": (enclosed(sized(b"\0\0\0\1" + varint(-2) + b"\0"), count=1), NONE),
    # Kafka fails with an exception that it does not expect; clients take both codes for final.
    "garbage": (enclosed(b"\xde\xad\xbe\xef" * 20, count=1), UNKNOWN_SERVER_ERROR),
    "a varint of 10 bytes": (enclosed(b"\xff" * 10 + GOOD, count=1), UNKNOWN_SERVER_ERROR),
    "gzip that is none": (enclosed(b"this is no gzip", count=1, attributes=GZIP), UNKNOWN_SERVER_ERROR),
    "snappy that is none": (enclosed(b"\x82SNAPPY\0" + b"x" * 30, count=1, attributes=SNAPPY), UNKNOWN_SERVER_ERROR),
    "lz4 that is none": (enclosed(b"this is no lz4!", count=1, attributes=LZ4), UNKNOWN_SERVER_ERROR),
    "zstd that is none": (enclosed(b"this is no zstd", count=1, attributes=ZSTD), UNKNOWN_SERVER_ERROR),
    "lz4 with linked blocks": (
        enclosed(lz4_frame(raw_record(0, bytes(200_000)), linked=True), count=1, attributes=LZ4),
        UNKNOWN_SERVER_ERROR,
    ),
    "gzip cut off": (enclosed(gzip.compress(TWO)[:-12], count=2, attributes=GZIP), UNKNOWN_SERVER_ERROR),
    "zstd cut off": (enclosed(zstd.compress(bytes(TWO))[:-8], count=2, attributes=ZSTD), UNKNOWN_SERVER_ERROR),
    "gzip of garbage": (enclosed(gzip.compress(b"\xde\xad" * 30), count=1, attributes=GZIP), INVALID_RECORD),
    "zstd of fewer records": (enclosed(zstd.compress(GOOD), count=2, attributes=ZSTD), INVALID_RECORD),
    "zstd of more records": (enclosed(zstd.compress(TWO), count=1, attributes=ZSTD), INVALID_RECORD),
    "lz4 of fewer records": (enclosed(lz4_frame(GOOD), count=2, attributes=LZ4), INVALID_RECORD),
    "snappy of fewer records": (enclosed(raw_snappy(GOOD), count=2, attributes=SNAPPY), INVALID_RECORD),
}
OTHER_CODES = {
    "a wrong CRC": (enclosed(GOOD, count=1)[:-1] + b"\1", CORRUPT_MESSAGE),
    "codec 5": (enclosed(GOOD, count=1, attributes=5), UNKNOWN_SERVER_ERROR),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    # The cleaner has a worker process of its own, which is not meant here.
    started = OttlaBroker(tmp_path_factory.mktemp("ottla"), settings={"log.cleaner.enable": "false"})
    started.start()
    yield started
    started.close()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    started = PEERS["kafka"](tmp_path_factory.mktemp("kafka"))
    started.start()
    yield started
    started.close()


def produce_request(topic: str, *batches: bytes) -> ProduceRequest:
    """One batch for each partition."""
    partitions = tuple(PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches))
    topics = (TopicProduceData(name=topic, partition_data=partitions),)
    return ProduceRequest(acks=-1, timeout=timedelta(seconds=20), topic_data=topics)


def codes_of(answer: ProduceResponse) -> list[int]:
    return [int(one.error_code) for one in answer.responses[0].partition_responses]


def produce(connection: Connection, topic: str, *batches: bytes) -> list[int]:
    return codes_of(connection.ask(produce_request(topic, *batches), ProduceResponse))


@pytest.mark.parametrize("name", POISON)
def test_poison_is_refused_and_nothing_is_written(broker: BrokerProcess, name: str) -> None:
    topic = "poison-" + "".join(c if c.isalnum() else "-" for c in name)
    make_topic(broker.bootstrap, topic)
    with Connection(broker.port) as connection:
        answer = connection.ask(produce_request(topic, POISON[name][0]), ProduceResponse)
        (outcome,) = answer.responses[0].partition_responses
        assert (int(outcome.error_code), outcome.base_offset) == (INVALID_RECORD, -1)
        assert outcome.error_message
        assert watermarks(broker.bootstrap, topic, 0) == (0, 0)
        assert produce(connection, topic, enclosed(TWO, count=2)) == [NONE], "the connection is kept"
    assert [one.value() for one in read(broker.bootstrap, topic)] == [b"value"] * 2


def accepts_a_good_batch(peer: BrokerProcess, topic: str) -> bool:
    """A broker that has not heard yet that it leads the new topic answers NOT_LEADER_OR_FOLLOWER."""
    with Connection(peer.port) as connection:
        return produce(connection, topic, enclosed(GOOD, count=1)) == [NONE]


def test_codes_are_kafkas_own_but_for_those_that_are_listed(kafka: BrokerProcess, broker: BrokerProcess) -> None:
    found: dict[str, tuple[int, int]] = {}
    expected = {name: (INVALID_RECORD, code) for name, (_, code) in POISON.items()}
    expected |= {"a wrong CRC": (CORRUPT_MESSAGE, CORRUPT_MESSAGE)}
    expected |= {"codec 5": (UNSUPPORTED_COMPRESSION, OTHER_CODES["codec 5"][1])}
    for peer in (broker, kafka):
        make_topic(peer.bootstrap, "judged")
        eventually(lambda peer=peer: accepts_a_good_batch(peer, "judged"), lambda accepted: accepted)
    for name, (batch, _) in {**POISON, **OTHER_CODES}.items():
        codes = []
        for peer in (broker, kafka):
            with Connection(peer.port) as connection:
                codes += produce(connection, "judged", batch)
        found[name] = (codes[0], codes[1])
    assert found == expected


def test_records_without_a_key_are_named_in_a_bounded_answer(broker: BrokerProcess) -> None:
    make_topic(broker.bootstrap, "compacted", cleanup_policy="compact")
    records = b"".join(raw_record(i, b"v", key=b"k" if i == 1 else None) for i in range(50_000))
    for attributes, body in ((0, records), (ZSTD, zstd.compress(records))):
        with Connection(broker.port) as connection:
            batch = enclosed(body, count=50_000, attributes=attributes)
            answer = connection.ask(produce_request("compacted", batch), ProduceResponse)
        (outcome,) = answer.responses[0].partition_responses
        assert int(outcome.error_code) == INVALID_RECORD
        assert [one.batch_index for one in outcome.record_errors] == [0, *range(2, 101)]
        assert "49999 record errors in total" in (outcome.error_message or "")


def test_a_batch_behind_a_large_one_of_the_same_client_is_appended_behind_it(broker: BrokerProcess) -> None:
    make_topic(broker.bootstrap, "ordered")
    large = enclosed(zstd.compress(raw_record(0, b"L" * 20_000_000)), count=1, attributes=ZSTD)
    small = enclosed(raw_record(0, b"small"), count=1)
    with Connection(broker.port) as connection:
        for number, batch in enumerate((small, large, small, large, small)):
            connection.send(framed(encode_request(produce_request("ordered", batch), correlation_id=number)))
        offsets = []
        for _ in range(5):
            answer = decode_response(connection.read_frame(), ProduceResponse)
            (outcome,) = answer.responses[0].partition_responses
            offsets.append((int(outcome.error_code), outcome.base_offset))
    assert offsets == [(NONE, 0), (NONE, 1), (NONE, 2), (NONE, 3), (NONE, 4)]


class Pulse:
    """Asks for metadata all the time, and knows the longest wait."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat)
        self.waits_s: list[float] = []

    def _beat(self) -> None:
        with Connection(self._broker.port) as connection:
            while not self._over.is_set():
                started = time.monotonic()
                connection.ask(MetadataRequest(topics=()), MetadataResponse)
                self.waits_s.append(time.monotonic() - started)
                self._over.wait(0.002)

    def __enter__(self) -> "Pulse":
        self._thread.start()
        eventually(lambda: len(self.waits_s), lambda beats: beats > 10)
        self.waits_s.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def bombs() -> dict[str, bytes]:
    huge = raw_record(0, bytes(BOMB_BYTES), key=b"k")
    tiny = b"".join(raw_record(i, b"", key=b"") for i in range(1_000_000))
    return {
        "zstd": enclosed(zstd.compress(huge), count=1, attributes=ZSTD),
        "gzip": enclosed(gzip.compress(huge), count=1, attributes=GZIP),
        "lz4": enclosed(lz4_frame(huge), count=1, attributes=LZ4),
        "a million records": enclosed(zstd.compress(tiny), count=1_000_000, attributes=ZSTD),
        "empty gzip members": enclosed(gzip.compress(b"") * 40_000 + gzip.compress(GOOD), count=1, attributes=GZIP),
        "empty zstd frames": enclosed(zstd.compress(b"") * 70_000 + zstd.compress(GOOD), count=1, attributes=ZSTD),
    }


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_bombs_stall_nobody(broker: BrokerProcess, policy: str) -> None:
    """Each as twenty requests at once on one connection; whoever shares the partition does not wait for them."""
    topic = f"bombed-{policy}"
    make_topic(broker.bootstrap, topic, cleanup_policy=policy, max_message_bytes=2_000_000)
    memory = psutil.Process(broker.pid)
    before = memory.memory_info().rss
    outcomes: dict[str, set[int]] = {}
    waits: dict[str, float] = {}
    beside: dict[str, float] = {}
    for name, bomb in bombs().items():
        times = 20 if len(bomb) < 10_000 else 3
        with Connection(broker.port, read_timeout_s=60) as attacker, Connection(broker.port) as other:
            with Pulse(broker) as pulse:
                for _ in range(times):
                    attacker.send(framed(encode_request(produce_request(topic, bomb))))
                started = time.monotonic()
                assert produce(other, topic, enclosed(GOOD, count=1)) == [NONE]
                beside[name] = time.monotonic() - started
                answers = (decode_response(attacker.read_frame(), ProduceResponse) for _ in range(times))
                outcomes[name] = {code for answer in answers for code in codes_of(answer)}
            waits[name] = max(pulse.waits_s, default=0.0)
    print("longest waits", waits, "beside", beside)
    assert outcomes == {name: {NONE} for name in outcomes}, "Kafka takes any ratio"
    assert max(waits.values()) < 0.15, waits
    assert max(beside.values()) < 0.5, beside
    assert memory.memory_info().rss - before < 64 << 20


def test_what_decompresses_to_more_than_the_limit_is_too_large(broker: BrokerProcess) -> None:
    make_topic(broker.bootstrap, "too-large")
    value_bytes = 66 << 24
    head = b"\0\0\0" + varint(-1) + varint(value_bytes)
    bomb = zstd.ZstdCompressor()
    parts = [bomb.compress(varint(len(head) + value_bytes + 1) + head)]
    parts += [bomb.compress(bytes(1 << 24)) for _ in range(66)]
    batch = enclosed(b"".join([*parts, bomb.compress(b"\0"), bomb.flush()]), count=1, attributes=ZSTD)
    with Connection(broker.port, read_timeout_s=60) as connection:
        assert produce(connection, "too-large", batch) == [MESSAGE_TOO_LARGE]
    assert watermarks(broker.bootstrap, "too-large", 0) == (0, 0)


def test_a_worker_that_dies_fails_its_producers_at_once_and_is_replaced(broker: BrokerProcess) -> None:
    make_topic(broker.bootstrap, "deaths", partitions=8)
    slow = enclosed(gzip.compress(raw_record(0, bytes(300_000_000)), 9), count=1, attributes=GZIP)
    with Connection(broker.port) as connection:
        assert produce(connection, "deaths", slow) == [NONE]
        (worker,) = workers(broker)
        request = framed(encode_request(produce_request("deaths", *[slow] * 8)))
        connection.send(request)
        eventually(worker.status, lambda status: status == psutil.STATUS_RUNNING)
        worker.kill()
        started = time.monotonic()
        codes = codes_of(decode_response(connection.read_frame(), ProduceResponse))
        assert time.monotonic() - started < 15
        assert codes[0] == STORAGE_ERROR, "it held the worker when that died"
        assert set(codes) <= {STORAGE_ERROR, NONE}
        assert produce(connection, "deaths", slow) == [NONE]
        assert [one.pid for one in workers(broker)] != [worker.pid]


def workers(broker: BrokerProcess) -> list[psutil.Process]:
    children = psutil.Process(broker.pid).children()
    return [one for one in children if "ottla.storage.workers.worker_process" in one.cmdline()]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_good_batches_of_librdkafka_go_in(broker: BrokerProcess, codec: str) -> None:
    topic = f"good-{codec}"
    make_topic(broker.bootstrap, topic)
    records = [Sent(b"%d " % i * (i % 500), key=b"%d" % i, headers=[("h", b"x"), ("n", None)]) for i in range(3000)]
    reports = send(broker.bootstrap, topic, records, compression_type=codec, linger_ms=50)
    assert not reports.errors
    assert [one.value() for one in read(broker.bootstrap, topic)] == [one.value for one in records]
