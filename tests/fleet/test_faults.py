"""A fleet under load is ill-treated for minutes: no acknowledged record may be missing, doubled or out of order.

`--fault-minutes 30` for a long run. The fault list with its times is printed, as is the seed of its choices.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from support.cells import cells_possible
from support.faults import FAULTS, IN_SYNC_S, all_run
from support.fleet import FleetOf
from support.history import Anomaly, Read, Send, anomalies, polled_anomalies
from support.librdkafka import make_topic, read
from support.polling import PollingConsumer, PollingJava, PollingLibrdkafka
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


@pytest.fixture
def fleet(request: pytest.FixtureRequest, make_fleet: Callable[..., FleetOf]) -> FleetOf:
    size_mb = DISK_MB + int(DISK_MB_PER_MINUTE * request.config.getoption("--fault-minutes"))
    started = make_fleet(cells=True, disk_mb=size_mb)
    started.start()
    make_topic(started.bootstrap, TOPIC, partitions=PARTITIONS, replicas=3, **SAFE)
    return started


@pytest.fixture
def producers(fleet: FleetOf) -> Iterator[list[SteadyProducer]]:
    rates = {"partitions": PARTITIONS, "rate": RECORDS_PER_SECOND}
    java = SteadyJava(fleet.bootstrap, TOPIC, **rates)
    yield [java, SteadyLibrdkafka(fleet.bootstrap, TOPIC, **rates)]
    java.close()


@pytest.fixture
def consumers(fleet: FleetOf) -> Iterator[dict[str, PollingConsumer]]:
    kinds = {"librdkafka": PollingLibrdkafka, "java": PollingJava}
    made = {name: kind(fleet.bootstrap, TOPIC, partitions=PARTITIONS) for name, kind in kinds.items()}
    yield made
    for consumer in made.values():
        consumer.close()


def test_nothing_acknowledged_is_lost_doubled_or_reordered(
    request: pytest.FixtureRequest,
    fleet: FleetOf,
    producers: list[SteadyProducer],
    consumers: dict[str, PollingConsumer],
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed} (choice of faults)")
    ill_treat(fleet, producers, random.Random(seed), seconds=60 * request.config.getoption("--fault-minutes"))
    sends = [send for producer in producers for send in producer.finish()]
    final = read_all(fleet)
    ends = {partition: 1 + max(r.offset for r in final if r.partition == partition) for partition in range(PARTITIONS)}
    for consumer in consumers.values():
        consumer.wait_for(ends, timeout_s=PROGRESS_S)
    polls = {name: list(consumer.reads) for name, consumer in consumers.items()}
    judge(sends, final, [*anomalies(sends, final), *polled_anomalies(final, polls)])


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


def read_all(fleet: FleetOf) -> list[Read]:
    return [Read(p, m.offset(), m.value()) for p in range(PARTITIONS) for m in read(fleet.bootstrap, TOPIC, p)]


def judge(sends: list[Send], final: list[Read], found: list[Anomaly]) -> None:
    acknowledged = sum(send.offset is not None for send in sends)
    print(f"{len(sends)} sent, {acknowledged} acknowledged, {len(final)} there")
    assert not found, f"{Counter(a.kind for a in found)} of {len(sends)} sends; first: {found[:5]}"
    assert acknowledged > PROGRESS_RECORDS * len(FAULTS)
