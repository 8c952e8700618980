"""A fleet under load is ill-treated for minutes: no acknowledged record may be missing, doubled or out of order.

`--fault-minutes 30` for a long run; `--secure`: nodes talk over mutual TLS, and clients log in by SCRAM over TLS and
may do what rules allow. The fault list with its times is printed, as is the seed of its choices.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType
from support.cells import cells_possible
from support.faults import FAULTS, IN_SYNC_S, all_run
from support.fleet import FleetOf
from support.history import Anomaly, Read, Send, anomalies, polled_anomalies
from support.librdkafka import make_topic, read
from support.polling import PollingConsumer, PollingJava, PollingLibrdkafka
from support.secure_fleet import Entrance, SecureFleet
from support.steady import SteadyJava, SteadyLibrdkafka, SteadyProducer

pytestmark = pytest.mark.skipif(
    not cells_possible(), reason="cutting brokers off needs namespaces, and those need root"
)

PARTITIONS = 4
RECORDS_PER_SECOND = 300
TOPIC = "ill-treated"
# Short sessions: more elections in the same time.
FLEET_SETTINGS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
SAFE = {"min_insync_replicas": "2", "segment_bytes": "1048576"}
PROGRESS_RECORDS, PROGRESS_S = 200, 60.0
DISK_MB, DISK_MB_PER_MINUTE = 128, 20


class Entrances(NamedTuple):
    writer: Entrance
    reader: Entrance
    stranger: Entrance | None = None
    """Who has a name and may do nothing."""


@pytest.fixture
def unstarted(request: pytest.FixtureRequest, make_fleet: Callable[..., FleetOf]) -> FleetOf:
    size_mb = DISK_MB + int(DISK_MB_PER_MINUTE * request.config.getoption("--fault-minutes"))
    return make_fleet(cells=True, disk_mb=size_mb)


@pytest.fixture
def security(request: pytest.FixtureRequest, unstarted: FleetOf, tmp_path: Path) -> SecureFleet | None:
    return SecureFleet(unstarted, tmp_path) if request.config.getoption("--secure") else None


@pytest.fixture
def fleet(unstarted: FleetOf, security: SecureFleet | None) -> FleetOf:
    unstarted.start()
    make_topic(unstarted.bootstrap, TOPIC, partitions=PARTITIONS, replicas=3, **SAFE)
    return unstarted


@pytest.fixture
def entrances(fleet: FleetOf, security: SecureFleet | None) -> Entrances:
    if security is None:
        return Entrances(Entrance(fleet.bootstrap), Entrance(fleet.bootstrap))
    made = Entrances(security.user("writer"), security.user("reader", "SCRAM-SHA-256"), security.user("eve"))
    security.allow("writer", AclOperation.WRITE, ResourceType.TOPIC, TOPIC)
    security.allow("reader", AclOperation.READ, ResourceType.TOPIC, TOPIC)
    # librdkafka looks for the coordinator of its group, also when it needs none.
    security.allow("reader", AclOperation.DESCRIBE, ResourceType.GROUP, "*")
    return made


@pytest.fixture
def producers(entrances: Entrances) -> Iterator[list[SteadyProducer]]:
    rates, entrance = {"partitions": PARTITIONS, "rate": RECORDS_PER_SECOND}, entrances.writer
    java = SteadyJava(entrance.bootstrap, TOPIC, login=entrance.java, **rates)
    yield [java, SteadyLibrdkafka(entrance.bootstrap, TOPIC, login=entrance.librdkafka, **rates)]
    java.close()


@pytest.fixture
def consumers(entrances: Entrances) -> Iterator[dict[str, PollingConsumer]]:
    entrance = entrances.reader
    made: dict[str, PollingConsumer] = {
        "librdkafka": PollingLibrdkafka(entrance.bootstrap, TOPIC, partitions=PARTITIONS, **entrance.librdkafka),
        "java": PollingJava(entrance.bootstrap, TOPIC, partitions=PARTITIONS, login=entrance.java),
    }
    yield made
    for consumer in made.values():
        consumer.close()


def test_nothing_acknowledged_is_lost_doubled_or_reordered(
    request: pytest.FixtureRequest,
    fleet: FleetOf,
    entrances: Entrances,
    producers: list[SteadyProducer],
    consumers: dict[str, PollingConsumer],
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed} (choice of faults)")
    ill_treat(fleet, producers, random.Random(seed), seconds=60 * request.config.getoption("--fault-minutes"))
    sends = [send for producer in producers for send in producer.finish()]
    final = read_all(entrances.reader)
    ends = {partition: 1 + max(r.offset for r in final if r.partition == partition) for partition in range(PARTITIONS)}
    for consumer in consumers.values():
        consumer.wait_for(ends, timeout_s=PROGRESS_S)
    polls = {name: list(consumer.reads) for name, consumer in consumers.items()}
    judge(sends, final, [*anomalies(sends, final), *polled_anomalies(final, polls)])
    if (stranger := entrances.stranger) is not None:
        admin = AdminClient({"bootstrap.servers": stranger.bootstrap, **stranger.librdkafka})
        refusal = admin.list_topics(TOPIC, timeout=PROGRESS_S).topics[TOPIC].error
        assert refusal is not None and refusal.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def ill_treat(fleet: FleetOf, producers: list[SteadyProducer], chance: random.Random, *, seconds: float) -> None:
    """Every kind of fault before any comes again; after each the fleet must be whole and the producers go on."""
    begin = time.monotonic()
    progress(producers)
    while time.monotonic() - begin < seconds:
        for name in chance.sample(list(FAULTS), len(FAULTS)):
            victim = chance.choice(fleet.ids)
            print(f"{time.monotonic() - begin:6.1f} s  {name} of broker {victim}", flush=True)
            FAULTS[name](fleet, victim, chance)
            all_run(fleet)
            progress(producers)
            fleet.wait_in_sync(IN_SYNC_S)
            if time.monotonic() - begin > seconds:
                return


def progress(producers: list[SteadyProducer]) -> None:
    for producer in producers:
        producer.wait_for_progress(PROGRESS_RECORDS, timeout_s=PROGRESS_S)


def read_all(entrance: Entrance) -> list[Read]:
    login = entrance.librdkafka
    records = [(p, m) for p in range(PARTITIONS) for m in read(entrance.bootstrap, TOPIC, p, **login)]
    return [Read(p, message.offset(), message.value()) for p, message in records]


def judge(sends: list[Send], final: list[Read], found: list[Anomaly]) -> None:
    acknowledged = sum(send.offset is not None for send in sends)
    print(f"{len(sends)} sent, {acknowledged} acknowledged, {len(final)} there")
    assert not found, f"{Counter(a.kind for a in found)} of {len(sends)} sends; first: {found[:5]}"
    assert acknowledged > PROGRESS_RECORDS * len(FAULTS)
