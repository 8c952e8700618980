"""librdkafka's transactional producer: the flow from before KIP-890, with partitions added by the client."""

import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from support.librdkafka import DEADLINE_S, make_topic
from support.process import BrokerProcess
from support.transactions import producer, read_all, transact, write

BROKER_SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


def test_committed_and_aborted(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=3)
    made = producer(bootstrap, name)
    for number in range(6):
        transact(made, name, [f"{number}-{i}" for i in range(30)], commit=number % 2 == 0, partitions=3)
    expected = sorted(f"{number}-{i}" for number in (0, 2, 4) for i in range(30))
    assert sorted(read_all(bootstrap, name, partitions=3)) == expected
    assert len(read_all(bootstrap, name, partitions=3, isolation="read_uncommitted")) == 180


def test_an_open_transaction_hides_all_behind_it_until_it_ends(bootstrap: str, name: str) -> None:
    """The consumer's fetch is waiting at the broker when the marker comes."""
    make_topic(bootstrap, name)
    first, second = producer(bootstrap, f"{name}-1"), producer(bootstrap, f"{name}-2")
    first.begin_transaction()
    write(first, name, ["held back"])
    transact(second, name, ["behind"])
    assert read_all(bootstrap, name) == []
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 20_000,
            "fetch.min.bytes": 100,
        }
    )
    consumer.assign([TopicPartition(name, 0, 0)])
    assert consumer.poll(1.0) is None
    begun = time.monotonic()
    first.commit_transaction(DEADLINE_S)
    values = [message.value() for message in consumer.consume(2, DEADLINE_S)]
    assert values == [b"held back", b"behind"]
    assert time.monotonic() - begun < 5, "the waiting fetch was not woken by the marker"
    consumer.close()


def test_a_second_producer_shuts_the_first_out(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    first = producer(bootstrap, name)
    first.begin_transaction()
    write(first, name, ["of the first"])
    second = producer(bootstrap, name)
    transact(second, name, ["of the second"])
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(DEADLINE_S)
    assert fenced.value.args[0].fatal()
    assert fenced.value.args[0].code() in (
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    )
    assert read_all(bootstrap, name) == ["of the second"]


def test_a_transaction_that_takes_too_long_is_aborted(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    made = producer(bootstrap, name, transaction_timeout_ms=1000, message_timeout_ms=1000)
    made.begin_transaction()
    write(made, name, ["too late"])
    transact(producer(bootstrap, f"{name}-other"), name, ["in time"])
    deadline = time.monotonic() + DEADLINE_S
    while read_all(bootstrap, name) != ["in time"]:
        assert time.monotonic() < deadline, "the late transaction still hides the other"
    with pytest.raises(KafkaException):
        made.commit_transaction(DEADLINE_S)
    assert read_all(bootstrap, name) == ["in time"]


def test_a_timeout_above_the_maximum_is_refused(bootstrap: str, name: str) -> None:
    made = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": 900_001})
    with pytest.raises(KafkaException) as refused:
        made.init_transactions(DEADLINE_S)
    assert refused.value.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT


def copied(bootstrap: str, source: str, made: Producer, target: str, group: str, *, commit: bool) -> int:
    """Read what the group has not read, write it to `target` with the offsets, all in one transaction."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([source])
    messages = []
    deadline = time.monotonic() + 6
    while len(messages) < 10 and time.monotonic() < deadline:
        messages += [one for one in consumer.consume(10 - len(messages), 0.5) if one.error() is None]
    made.begin_transaction()
    write(made, target, [(message.value() or b"").decode().upper() for message in messages])
    made.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), DEADLINE_S
    )
    end = made.commit_transaction if commit else made.abort_transaction
    end(DEADLINE_S)
    consumer.close()
    return len(messages)


def committed_offset(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], DEADLINE_S)
    consumer.close()
    return int(found.offset)


def test_offsets_are_part_of_the_transaction(bootstrap: str, name: str) -> None:
    source, target, group = f"{name}-in", f"{name}-out", f"{name}-group"
    make_topic(bootstrap, source)
    make_topic(bootstrap, target)
    transact(producer(bootstrap, f"{name}-feed"), source, [f"v{i}" for i in range(10)])
    made = producer(bootstrap, name)
    assert copied(bootstrap, source, made, target, group, commit=False) == 10
    assert committed_offset(bootstrap, group, source) < 0
    assert copied(bootstrap, source, made, target, group, commit=True) == 10
    assert committed_offset(bootstrap, group, source) >= 10
    assert read_all(bootstrap, target) == [f"V{i}" for i in range(10)]


def test_a_killed_broker_forgets_nothing(broker: BrokerProcess, name: str) -> None:
    """Open, committed and aborted transactions, and the coordinator's memory, across kill -9."""
    bootstrap = broker.bootstrap
    make_topic(bootstrap, name, partitions=2)
    made = producer(bootstrap, name, transaction_timeout_ms=300_000)
    transact(made, name, ["committed"] * 20, partitions=2)
    transact(made, name, ["aborted"] * 20, partitions=2, commit=False)
    made.begin_transaction()
    write(made, name, ["open"] * 20, partitions=2)
    broker.kill()
    broker.start()
    assert set(read_all(bootstrap, name, partitions=2)) == {"committed"}
    made.commit_transaction(DEADLINE_S)
    values = read_all(bootstrap, name, partitions=2)
    assert (values.count("committed"), values.count("aborted"), values.count("open")) == (20, 0, 20)
    transact(made, name, ["after"] * 4, partitions=2)
    assert read_all(bootstrap, name, partitions=2).count("after") == 4


def test_killed_while_transactions_end(broker: BrokerProcess, name: str) -> None:
    """Kills at any moment: every transaction that was acknowledged is there as a whole, none is there in part."""
    bootstrap = broker.bootstrap
    make_topic(bootstrap, name, partitions=3)
    made = producer(bootstrap, name, transaction_timeout_ms=300_000)
    done: list[int] = []
    stop = threading.Event()

    def run() -> None:
        number = 0
        while not stop.is_set():
            transact(made, name, [f"{number}"] * 6, partitions=3, commit=number % 3 != 2)
            if number % 3 != 2:
                done.append(number)
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    for _ in range(4):
        seen, deadline = len(done), time.monotonic() + DEADLINE_S
        while len(done) < seen + 20:
            assert time.monotonic() < deadline and thread.is_alive(), "no transaction gets through"
            time.sleep(0.005)
        broker.kill()
        broker.start()
    stop.set()
    thread.join()
    values = read_all(bootstrap, name, partitions=3)
    counts = {value: values.count(value) for value in set(values)}
    assert set(counts.values()) == {6}
    assert sorted(map(int, counts)) == sorted(done)
