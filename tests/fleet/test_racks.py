"""Racks: where replicas are placed, and reading from the replica near by (KIP-392)."""

import json
from collections import Counter
from collections.abc import Callable

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from support.fleet import FleetOf
from support.fleet_view import PartitionView
from support.java import java_program, java_tool
from support.librdkafka import Sent, consumer_settings, make_topic, send
from support.waiting import eventually

FLEET_SETTINGS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
RECORDS = 200


@pytest.fixture(scope="module")
def uneven(make_fleet: Callable[..., FleetOf]) -> FleetOf:
    """Two brokers share a rack."""
    fleet = make_fleet(racks=("a", "a", "b", "c"))
    fleet.start()
    return fleet


def partitions_of(fleet: FleetOf, topic: str) -> list[PartitionView]:
    view = fleet.views([topic])[0]
    return [view.partitions[key] for key in sorted(view.partitions)]


@pytest.mark.parametrize("replicas", [2, 3])
def test_no_two_replicas_in_a_rack(uneven: FleetOf, name: str, replicas: int) -> None:
    make_topic(uneven.bootstrap, name, partitions=12, replicas=replicas)
    racks = {0: "a", 1: "a", 2: "b", 3: "c"}
    found = partitions_of(uneven, name)
    assert all(len({racks[broker] for broker in one.replicas}) == replicas for one in found)
    leaders = Counter(one.leader for one in found)
    assert set(leaders) == set(uneven.ids) and max(leaders.values()) <= 4, leaders


def test_more_replicas_than_racks(uneven: FleetOf, name: str) -> None:
    make_topic(uneven.bootstrap, name, partitions=4, replicas=4)
    assert all(set(one.replicas) == {0, 1, 2, 3} for one in partitions_of(uneven, name))


def test_even_racks_have_even_leaders(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=9, replicas=2)
    assert Counter(one.leader for one in partitions_of(fleet, name)) == {0: 3, 1: 3, 2: 3}


@pytest.fixture(scope="module")
def led_by_0(fleet: FleetOf) -> str:
    command = ("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", fleet.bootstrap)
    java_tool(*command, "--create", "--topic", "near", "--replica-assignment", "0:1:2")
    sent = send(fleet.bootstrap, "near", [Sent(bytes(1000)) for _ in range(RECORDS)])
    assert len(sent.offsets) == RECORDS
    return "near"


@pytest.mark.parametrize(("rack", "node"), [("a", 0), ("b", 1), ("c", 2), ("nowhere", 0)])
def test_librdkafka_reads_near_by(fleet: FleetOf, led_by_0: str, rack: str, node: int) -> None:
    read_from: list[int] = []

    def note(text: str) -> None:
        topics = json.loads(text)["topics"]
        if led_by_0 in topics:
            read_from.append(topics[led_by_0]["partitions"]["0"]["broker"])

    settings = {"client_rack": rack, "statistics_interval_ms": 100, "fetch_message_max_bytes": 4096}
    consumer = Consumer({**consumer_settings(fleet.bootstrap, **settings), "stats_cb": note})
    consumer.assign([TopicPartition(led_by_0, 0, OFFSET_BEGINNING)])
    try:
        got = 0
        while got < RECORDS:
            got += sum(message.error() is None for message in consumer.consume(RECORDS, 0.2))
        eventually(lambda: (consumer.poll(0.1), read_from[-1:])[1], lambda seen: seen == [node])
    finally:
        consumer.close()


@pytest.mark.parametrize(("rack", "node"), [("b", 1), ("c", 2)])
def test_java_reads_near_by(fleet: FleetOf, led_by_0: str, rack: str, node: int) -> None:
    shown = java_program("NearReader", fleet.bootstrap, led_by_0, rack, str(RECORDS))
    assert shown.lines == [f"{node} {RECORDS}"]
