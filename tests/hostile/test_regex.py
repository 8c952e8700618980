"""Regular expressions that are made to be slow, in heartbeats of KIP-848, while a good client measures round trips."""

import threading
import time
from collections.abc import Iterator
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
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse
from support.frames import Connection, encode_request, framed
from support.ottla_broker import OttlaBroker
from support.process import BrokerProcess
from support.waiting import eventually

TOPICS = 1000
NAME_CHARACTERS = 249
WORST_S = 0.5
ANSWER_S = 20.0
GROWTH_BYTES_MAX = 64 << 20

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
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """With names that are as long as they may be."""
    started = OttlaBroker(tmp_path_factory.mktemp("broker"), settings={"offsets.topic.num.partitions": "1"})
    try:
        started.start()
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        names = [f"{'ab' * 122}.{number:04}" for number in range(TOPICS)]
        assert {len(name) for name in names} == {NAME_CHARACTERS}
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
            made.result(60)
        with Connection(started.port) as connection:
            wanted = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
            eventually(
                lambda: connection.ask(wanted, FindCoordinatorResponse).coordinators[0].error_code,
                lambda code: code is Code.none,
            )
        yield started
        assert started.stop() == 0, "SIGTERM ends it, whatever happened before"
    finally:
        started.close()


class RoundTrips:
    """A client that asks for metadata again and again; `with` gives it, and judges at the end."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._stopping = threading.Event()
        self._seconds: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        with Connection(self._broker.port) as connection:
            while not self._stopping.is_set():
                begun = time.monotonic()
                connection.ask(MetadataRequest(topics=()), MetadataResponse)
                self._seconds.append(time.monotonic() - begun)

    def __enter__(self) -> "RoundTrips":
        self._before_bytes = self._broker.resident_bytes()
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stopping.set()
        self._thread.join()
        ordered = sorted(self._seconds)
        p99, worst = ordered[len(ordered) * 99 // 100], ordered[-1]
        grown = self._broker.resident_bytes() - self._before_bytes
        print(f"{len(ordered)} round trips, p99 {1000 * p99:.1f} ms, worst {1000 * worst:.1f} ms, {grown >> 20:+} MB")
        if error is None:
            assert worst <= WORST_S, f"a round trip took {worst:.3f} s"
            assert grown <= GROWTH_BYTES_MAX, f"memory grew by {grown >> 20} MB"


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


@pytest.mark.parametrize("regex", SLOW.values(), ids=SLOW.keys())
def test_one_heartbeat(broker: BrokerProcess, regex: str) -> None:
    """It is refused or served; either way nobody else waits."""
    with RoundTrips(broker), Connection(broker.port, read_timeout_s=ANSWER_S) as connection:
        assert asked(connection, f"g{hash(regex)}", regex) in (Code.none, Code.invalid_regular_expression)


def test_many_at_once(broker: BrokerProcess) -> None:
    """Expressions that are all different, from connections that do not wait for answers."""
    slow = [f"((a?b?)){{{1000 - number}}}" for number in range(30)]
    connections = [Connection(broker.port, read_timeout_s=60.0) for _ in range(10)]
    with RoundTrips(broker):
        for number, regex in enumerate(slow):
            connections[number % len(connections)].send(framed(encode_request(joining(f"many-{number}", regex))))
        for connection in connections:
            for _ in range(len(slow) // len(connections)):
                connection.read_frame()
            connection.socket.close()


def test_a_good_one_beside_them(broker: BrokerProcess) -> None:
    with Connection(broker.port) as good, Connection(broker.port, read_timeout_s=60.0) as bad:
        for number in range(20):
            bad.send(framed(encode_request(joining(f"beside-{number}", f"((a?b?)){{{900 - number}}}"))))
        begun = time.monotonic()
        assert asked(good, "good", ".*000[0-9]") is Code.none
        assert time.monotonic() - begun < ANSWER_S
        for _ in range(20):
            bad.read_frame()


@pytest.mark.parametrize("regex", SLOW.values(), ids=SLOW.keys())
def test_transactional_ids(broker: BrokerProcess, regex: str) -> None:
    with RoundTrips(broker), Connection(broker.port, read_timeout_s=ANSWER_S) as connection:
        request = ListTransactionsRequest(
            state_filters=(), producer_id_filters=(), duration_filter=-1, transactional_id_pattern=regex
        )
        code = connection.ask(request, ListTransactionsResponse).error_code
        assert code in (Code.none, Code.invalid_regular_expression)
