"""ElectLeaders, the two reassignment APIs and UnregisterBroker: kio's requests in, kio reads the answers."""

import asyncio
import dataclasses
import datetime
import inspect
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.static.primitive import i32Timedelta
from ottla.api import slices
from ottla.api.call import Call
from ottla.api.pacing import LongWork, Pace
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions import commands as ask
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import ResourceType
from support.calls import call_of, decoded, handle, read
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


# -- 48 and 74


def quota(served: Served, *entities: tuple[tuple[str, str | None], ...]) -> None:
    for entity in entities:
        served.fleet.ask(ask.AlterClientQuotas([ask.QuotaChange(entity, [("producer_byte_rate", 5.0)])]))


def described(served: Served, *components: tuple[str, int, str | None], strict: bool) -> Any:
    one = part(48, 1, "ComponentData")
    lines = tuple(one(entity_type=kind, match_type=how, match=name) for kind, how, name in components)
    return served.request(48, 1, components=lines, strict=strict)


def test_quotas_are_described(served: Served) -> None:
    quota(served, (("user", "ann"),), (("user", None),), (("user", "ann"), ("client-id", "app")))
    response = described(served, ("user", 0, "ann"), strict=False)
    found = [[(each.entity_type, each.entity_name) for each in entry.entity] for entry in response.entries]
    assert found == [[("user", "ann")], [("client-id", "app"), ("user", "ann")]]
    assert [value.value for entry in response.entries for value in entry.values] == [5.0, 5.0]
    assert len(described(served, ("user", 0, "ann"), strict=True).entries) == 1
    assert described(served, ("user", 0, "bob"), strict=True).entries == ()
    refused = described(served, ("user", 7, None), strict=False)
    assert refused.error_code is Code.invalid_request and refused.entries is None


def test_resources_are_listed(served: Served) -> None:
    served.fleet.ask(ask.AlterConfigs([((ResourceType.GROUP, "g"), {"consumer.session.timeout.ms": "50000"})]))
    response = served.request(74, 1, resource_types=())
    listed = [(each.resource_type, each.resource_name) for each in response.config_resources]
    assert (2, "a") in listed and (4, "0") in listed and (32, "g") in listed
    assert [each for each in listed if each[1] == "g"] == [(32, "g")]
    only = served.request(74, 1, resource_types=(32,))
    assert [each.resource_name for each in only.config_resources] == ["g"]


@pytest.mark.parametrize("key", [48, 74])
def test_a_description_that_is_too_large_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch, key: int) -> None:
    for number in range(3):
        quota(served, (("client-id", f"{number}" * 900),))
        served.fleet.topic([0], name=f"{number}" * 249)
    call = call_of(key, 1)
    call.long_work = LongWork(Pace(), call.long_work.answers, 500)
    monkeypatch.setattr(slices, "COUNTED_BYTES", 100)
    fields: dict[str, Any] = {"components": (), "strict": False} if key == 48 else {"resource_types": (2,)}
    message = read(load_request_schema(key, 1)(**fields))
    response = asyncio.run(answered(message, call, served))
    assert response.error_code is Code.invalid_request


async def answered(message: Any, call: Call, served: Served) -> Any:
    try:
        return await handle(message, call, feed=served)
    except KafkaError as error:  # as a connection answers it
        return decoded(call.failure(error), call)


# -- 75


LIMITS = {"max.request.partition.size.limit": 2000}


def pages(served: Served, cursor: tuple[str, int] | None, *topics: str, limit: int = 3) -> Any:
    message = load_request_schema(75, 0)(
        topics=tuple(part(75, 0, "TopicRequest")(name=name) for name in topics),
        response_partition_limit=limit,
        cursor=part(75, 0, "Cursor")(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None,
    )
    return asyncio.run(handle(read(message), call_of(75, 0), feed=served, config=LIMITS))


def page(response: Any) -> tuple[list[tuple[str, Code, list[int]]], tuple[str, int] | None]:
    cursor = response.next_cursor
    lines = [(each.name, each.error_code, [p.partition_index for p in each.partitions]) for each in response.topics]
    return lines, (cursor.topic_name, cursor.partition_index) if cursor else None


def test_a_cursor_behind_the_last_partition_does_not_lift_the_limit(served: Served) -> None:
    served.fleet.topic(*[[0]] * 5, name="b")
    for behind in (2, 9, 2**31 - 1):
        lines, cursor = page(pages(served, ("a", behind)))
        assert lines == [("a", Code.none, []), ("b", Code.none, [0, 1, 2])]
        assert cursor == ("b", 3)
    assert page(pages(served, ("a", 1)))[0] == [("a", Code.none, [1]), ("b", Code.none, [0, 1])]


def test_a_cursor_without_a_place_is_refused(served: Served) -> None:
    assert page(pages(served, ("a", -5))) == ([("a", Code.invalid_request, [])], None)
    assert page(pages(served, ("a", -5), "a", "b"))[0] == [
        ("a", Code.invalid_request, []),
        ("b", Code.invalid_request, []),
    ]
    assert page(pages(served, ("b", 0), "a"))[0] == [("a", Code.invalid_request, [])]
    assert page(pages(served, ("Zero", 0)))[0][0][:2] == ("a", Code.none), "it may have been deleted since"
