"""Regular expressions that are made to be slow, in heartbeats of KIP-848, while a neighbour produces and consumes."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.schema.errors import ErrorCode as Code
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import ListTransactionsResponse
from support.frames import Connection, encode_request, framed
from support.process import BrokerProcess
from support.waiting import eventually

TOPICS = 1000
NAME_CHARACTERS = 249
ANSWER_S = 20.0
BROKER_SETTINGS = {"offsets.topic.num.partitions": "1"}  # one coordinator of all groups

Attack = Callable[..., AbstractContextManager[BrokerProcess]]

# Each once hung a broker, or would with another engine.
SLOW = {
    "repeated-empty-groups": "((((){1000}){1000}){1000}){1000}",
    "many-optional-characters": "(.?){1000}" * 4 + "x",
    "fits-but-slow": "((a?b?)){1000}",
    "wide": "((?i)a|(((([ab])*|(?i)a[^a])|(?i)a)){500})",
    "nested-repeats": "a{1000}{1000}",
    "nested-stars": "(((a*)*)*)*b",
    "alternation": "|".join("a?" * count for count in range(1, 60)),
    "deep": "(" * 2000 + ")" * 2000,
    "long": "(a?)" * 8000,
}


@pytest.fixture(scope="module")
def coordinator(brokers: dict[int, BrokerProcess]) -> BrokerProcess:
    """Of every group; there are topics with names that are as long as they may be."""
    first = next(iter(brokers.values()))
    admin = AdminClient({"bootstrap.servers": first.bootstrap})
    names = [f"{'ab' * 122}.{number:04}" for number in range(TOPICS)]
    assert {len(name) for name in names} == {NAME_CHARACTERS}
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        made.result(60)
    wanted = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
    with Connection(first.port) as connection:
        found = eventually(
            lambda: connection.ask(wanted, FindCoordinatorResponse).coordinators[0],
            lambda seen: seen.error_code is Code.none,
        )
    broker = brokers[int(found.node_id)]
    with Connection(broker.port) as connection:
        eventually(lambda: asked(connection, "first", "none"), lambda code: code is Code.none)
    return broker


def joining(group: str, regex: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=f"member-of-{group}",
        member_epoch=0,
        rebalance_timeout=timedelta(seconds=60),
        subscribed_topic_names=(),
        subscribed_topic_regex=regex,
        topic_partitions=(),
    )


def asked(connection: Connection, group: str, regex: str) -> Code:
    return connection.ask(joining(group, regex), ConsumerGroupHeartbeatResponse).error_code


def test_heartbeats(attack: Attack, coordinator: BrokerProcess) -> None:
    """Each is refused or served; either way nobody else waits."""
    with attack(coordinator), Connection(coordinator.port, read_timeout_s=ANSWER_S) as connection:
        for what, regex in SLOW.items():
            assert asked(connection, what, regex) in (Code.none, Code.invalid_regular_expression), what


def test_many_at_once(attack: Attack, coordinator: BrokerProcess) -> None:
    """Expressions that are all different, from connections that do not wait for answers."""
    slow = [f"((a?b?)){{{1000 - number}}}" for number in range(30)]
    connections = [Connection(coordinator.port, read_timeout_s=60.0) for _ in range(10)]
    with attack(coordinator):
        for number, regex in enumerate(slow):
            connections[number % len(connections)].send(framed(encode_request(joining(f"many-{number}", regex))))
        for connection in connections:
            for _ in range(len(slow) // len(connections)):
                connection.read_frame()
            connection.socket.close()


def test_a_good_one_beside_them(coordinator: BrokerProcess) -> None:
    with Connection(coordinator.port) as good, Connection(coordinator.port, read_timeout_s=60.0) as bad:
        for number in range(20):
            bad.send(framed(encode_request(joining(f"beside-{number}", f"((a?b?)){{{900 - number}}}"))))
        begun = time.monotonic()
        assert asked(good, "good", ".*000[0-9]") is Code.none
        assert time.monotonic() - begun < ANSWER_S
        for _ in range(20):
            bad.read_frame()


def test_transactional_ids(attack: Attack, coordinator: BrokerProcess) -> None:
    with attack(coordinator), Connection(coordinator.port, read_timeout_s=ANSWER_S) as connection:
        for what, regex in SLOW.items():
            request = ListTransactionsRequest(
                state_filters=(), producer_id_filters=(), duration_filter=-1, transactional_id_pattern=regex
            )
            code = connection.ask(request, ListTransactionsResponse).error_code
            assert code in (Code.none, Code.invalid_regular_expression), what
