"""The two loops of a broker touch each other only through the hand-over: asyncio's debug mode refuses everything that
one thread schedules on the loop of another."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from support.fleet import FleetOf
from support.librdkafka import Sent, make_topic, read, send
from support.waiting import eventually

RECORDS = [Sent(value=b"%d" % number) for number in range(200)]
REFUSED = ("Non-thread-safe operation", "wrong loop", "ExecuteBatchError")


@pytest.fixture(scope="module")
def fleet(make_fleet: Callable[..., FleetOf]) -> FleetOf:
    made = make_fleet()
    if made.peer != "ottla":
        pytest.skip("looks for words of asyncio in the log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONASYNCIODEBUG", "1")
        made.start()
    return made


def test_no_loop_touches_the_other(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=3, replicas=3, min_insync_replicas="2")
    make_topic(fleet.bootstrap, f"{name}-zip", replicas=3, compression_type="gzip")  # by a worker process
    for topic in (name, f"{name}-zip"):
        send(fleet.bootstrap, topic, RECORDS)
        assert len(read(fleet.bootstrap, topic)) == len(RECORDS)
    consume_in_a_group(fleet, name)
    commit_a_transaction(fleet, name)
    fleet.members[fleet.leader_of(name)].restart()
    fleet.wait_in_sync()
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    admin.delete_topics([name])[name].result(30)
    eventually(lambda: fleet.partition(name, 0), lambda seen: seen is None)
    fleet.stop()
    for member in fleet.members:
        told = [line for line in member.log_path.read_text().splitlines() if any(word in line for word in REFUSED)]
        assert not told, member.log_tail(200)
        assert "everything is on the disk" in member.log_tail(3)


def consume_in_a_group(fleet: FleetOf, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got: list[object] = []
    eventually(lambda: got.extend(consumer.consume(100, 0.2)) or len(got), lambda seen: seen >= len(RECORDS))
    consumer.close()


def commit_a_transaction(fleet: FleetOf, topic: str) -> None:
    producer = Producer({"bootstrap.servers": fleet.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"once", partition=1)
    producer.commit_transaction(30)
