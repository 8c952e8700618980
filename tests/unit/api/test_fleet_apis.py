"""ElectLeaders, the two reassignment APIs and UnregisterBroker: kio's requests in, kio reads the answers."""

import asyncio
import dataclasses
import datetime
import inspect
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.static.primitive import i32Timedelta
from ottla.errors import Code
from ottla.metadata.decisions import commands as ask
from ottla.metadata.model.image import Image
from support.calls import call_of, handle, read
from support.decisions import Fleet

SECOND = i32Timedelta.parse(datetime.timedelta(seconds=1))
Results = list[tuple[str, int, Code]]


class Served:
    """The parts of a node that these handlers use, over the controller's own decisions."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    @property
    def image(self) -> Image:
        return self.fleet.image

    async def submit(self, command: ask.Command[Any]) -> Any:
        return self.fleet.ask(command)

    def request(self, key: int, version: int, **fields: Any) -> Any:
        request_type = load_request_schema(key, version)
        known = {field.name for field in dataclasses.fields(request_type)}
        values = {name: value for name, value in {"timeout": SECOND, **fields}.items() if name in known}
        message = read(request_type(**values))
        return asyncio.run(handle(message, call_of(key, version), controller=self, feed=self))


def part(key: int, version: int, name: str) -> Any:
    """A class that requests of this API are made of."""
    return getattr(inspect.getmodule(load_request_schema(key, version)), name)


@pytest.fixture
def served() -> Served:
    fleet = Fleet(brokers=4)
    fleet.topic([0, 1, 2], [1, 2, 0])
    return Served(fleet)


# -- 43


def elect(served: Served, version: int, kind: int, partitions: dict[str, tuple[int, ...]] | None) -> Any:
    one = part(43, version, "TopicPartitions")
    asked = None if partitions is None else tuple(one(topic=n, partitions=p) for n, p in partitions.items())
    return served.request(43, version, election_type=kind, topic_partitions=asked)


def elected(response: Any) -> Results:
    return [
        (t.topic, p.partition_id, p.error_code) for t in response.replica_election_results for p in t.partition_result
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_elect_leaders(served: Served, version: int) -> None:
    served.fleet.ask(ask.MoveLeadersAway(0))
    response = elect(served, version, 0, {"a": (0, 1, 7), "none": (0,)})
    assert elected(response) == [
        ("a", 0, Code.none),
        ("a", 1, Code.election_not_needed),
        ("a", 7, Code.unknown_topic_or_partition),
        ("none", 0, Code.unknown_topic_or_partition),
    ]
    assert served.fleet.partition().leader == 0
    assert elected(elect(served, version, 0, None)) == []


def test_unclean_elections_by_hand(served: Served) -> None:
    served.fleet.sync(0)
    served.fleet.fence(0)
    assert elected(elect(served, 2, 0, {"a": (0,)})) == [("a", 0, Code.preferred_leader_not_available)]
    assert elected(elect(served, 2, 1, {"a": (0, 1)})) == [("a", 0, Code.none), ("a", 1, Code.election_not_needed)]
    assert served.fleet.partition().leader == 1
    refused = elect(served, 2, 7, {"a": (0,)})
    assert refused.error_code is Code.invalid_request
    assert elected(refused) == [("a", 0, Code.invalid_request)]


# -- 45 and 46


def alter(served: Served, version: int, replicas: tuple[int, ...] | None, index: int = 0, **fields: bool) -> Any:
    topic, line = part(45, version, "ReassignableTopic"), part(45, version, "ReassignablePartition")
    topics = (topic(name="a", partitions=(line(partition_index=index, replicas=replicas),)),)
    return served.request(45, version, topics=topics, **fields)


def altered(response: Any) -> Results:
    assert response.error_code is Code.none
    return [(t.name, p.partition_index, p.error_code) for t in response.responses for p in t.partitions]


def listed(served: Served, asked: dict[str, tuple[int, ...]] | None = None) -> Any:
    one = part(46, 0, "ListPartitionReassignmentsTopics")
    topics = None if asked is None else tuple(one(name=name, partition_indexes=idx) for name, idx in asked.items())
    response = served.request(46, 0, topics=topics)
    return [
        (t.name, p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas)
        for t in response.topics
        for p in t.partitions
    ]


@pytest.mark.parametrize("version", [0, 1])
def test_reassign_list_and_cancel(served: Served, version: int) -> None:
    assert listed(served) == []
    assert altered(alter(served, version, (3, 1))) == [("a", 0, Code.none)], "the factor may change by default"
    moving = [("a", 0, (3, 1, 0, 2), (3,), (0, 2))]
    assert listed(served) == listed(served, {"a": (0, 1), "none": (0,)}) == moving
    assert listed(served, {"a": (1,)}) == []
    assert altered(alter(served, version, None)) == [("a", 0, Code.none)]
    assert listed(served) == [] and served.fleet.partition().replicas == (1, 0, 2), "Kafka forgets the order"
    assert altered(alter(served, version, None)) == [("a", 0, Code.no_reassignment_in_progress)]
    assert altered(alter(served, version, (9,))) == [("a", 0, Code.invalid_replica_assignment)]
    assert altered(alter(served, version, (1,), index=5)) == [("a", 5, Code.unknown_topic_or_partition)]


def test_the_factor_may_be_kept(served: Served) -> None:
    response = alter(served, 1, (3, 1), allow_replication_factor_change=False)
    assert altered(response) == [("a", 0, Code.invalid_replication_factor)]
    assert response.allow_replication_factor_change is False


def test_a_replica_that_is_dropped_before_it_arrived_is_shown_once(served: Served) -> None:
    served.fleet.fence(2)
    alter(served, 1, (3, 2))
    assert listed(served) == [("a", 0, (3, 2, 0, 1), (3,), (0, 1))]
    alter(served, 1, (2, 0))
    assert listed(served) == [("a", 0, (2, 0, 1, 3), (), (1, 3))]


# -- 64


def test_unregister(served: Served) -> None:
    response = served.request(64, 0, broker_id=0)
    assert response.error_code is Code.none and 0 not in served.image.brokers
    assert served.fleet.partition().leader == 1
    again = served.request(64, 0, broker_id=0)
    assert again.error_code is Code.broker_id_not_registered
    assert again.error_message == "Broker ID 0 is not currently registered"
