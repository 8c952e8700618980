"""Lookups by time: they open batches, which may have very many records or decompress to very much."""

import gzip
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta

from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from support.frames import Connection
from support.librdkafka import make_topic
from support.process import BrokerProcess
from support.raw_batches import enclosed, later_record, raw_record
from support.raw_requests import list_offsets

LARGE_BYTES = 200 << 20
GZIP = 1
LATER_MS = 1000
RECORDS = 60_000
PARTITIONS = 6
CLIENTS = 12
# Every write takes a thread: it would wait where all are taken.
BROKER_SETTINGS = {"log.flush.interval.messages": "1"}

Attack = Callable[..., AbstractContextManager[BrokerProcess]]


def in_between(batch: bytes) -> int:
    """A time that only the batch's last record has reached."""
    base_timestamp, _ = struct.unpack_from(">qq", batch, 27)
    return int(base_timestamp) + LATER_MS // 2


def produce(connection: Connection, topic: str, partition: int, batch: bytes) -> None:
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),))
    request = ProduceRequest(acks=-1, timeout=timedelta(seconds=30), topic_data=(data,))
    (outcome,) = connection.ask(request, ProduceResponse).responses[0].partition_responses
    assert not outcome.error_code, outcome


def found(connection: Connection, topic: str, **asked: int) -> list[bytes]:
    connection.send(list_offsets(topic, **asked))
    frame = connection.read_frame()
    results = frame[4 + 4 + 2 + len(topic) + 4 :]
    return [results[begin : begin + 22] for begin in range(0, len(results), 22)]


def test_many_lookups_leave_threads_to_others(attack: Attack, broker: BrokerProcess, name: str) -> None:
    """Thirty batches of 100,000 records kept all threads for 12 s, and with them other clients' writes."""
    make_topic(broker.bootstrap, name, partitions=PARTITIONS)
    many = b"".join(raw_record(number, None) for number in range(RECORDS - 1)) + later_record(RECORDS - 1, LATER_MS)
    batch = enclosed(many, count=RECORDS, times=LATER_MS)
    with Connection(broker.port, read_timeout_s=60) as connection:
        for partition in range(PARTITIONS):
            produce(connection, name, partition, batch)
    with attack(), ExitStack() as stack:
        connections = [stack.enter_context(Connection(broker.port, read_timeout_s=60)) for _ in range(CLIENTS)]
        for connection in connections:
            connection.send(list_offsets(name, partitions=PARTITIONS, timestamp=in_between(batch)))
        for connection in connections:
            assert connection.read_frame()
    with Connection(broker.port, read_timeout_s=60) as connection:
        (result,) = found(connection, name, partitions=1, timestamp=in_between(batch))
        assert int.from_bytes(result[-8:]) == RECORDS - 1


def test_a_batch_that_decompresses_to_very_much(attack: Attack, broker: BrokerProcess, name: str) -> None:
    """It was held in memory as a whole: 200 KB that a client sent took 400 MB with each lookup."""
    make_topic(broker.bootstrap, name)
    bomb = gzip.compress(raw_record(0, bytes(LARGE_BYTES)) + later_record(1, LATER_MS), 6)
    batch = enclosed(bomb, count=2, attributes=GZIP, times=LATER_MS)
    with Connection(broker.port, read_timeout_s=60) as connection:
        produce(connection, name, 0, batch)
        with attack():
            for _ in range(3):
                (result,) = found(connection, name, partitions=1, timestamp=in_between(batch))
                assert int.from_bytes(result[-8:]) == 1
