"""kill -9 under load, again and again: no acknowledged record may be missing, doubled or out of order."""

import random
import time
from collections.abc import Callable

import pytest
from support.history import Read, Send, anomalies
from support.librdkafka import make_topic, read
from support.process import BrokerProcess
from support.steady import PARTITIONS, SteadyJava, SteadyLibrdkafka, SteadyProducer

PRODUCERS: dict[str, type[SteadyProducer]] = {"librdkafka": SteadyLibrdkafka, "java": SteadyJava}
FLUSHES = {"flushed": {"flush_messages": "1"}, "unflushed": {}}
KINDS = len(PRODUCERS) * len(FLUSHES)
# A restarted Kafka waits for the session of its former self to end.
BROKER_SETTINGS = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
SMALL_SEGMENTS = {"segment_bytes": "1048576"}


@pytest.mark.parametrize("producer_kind", PRODUCERS)
@pytest.mark.parametrize("flush", FLUSHES)
def test_nothing_acknowledged_is_lost_or_doubled(
    request: pytest.FixtureRequest, make_broker: Callable[..., BrokerProcess], name: str, flush: str, producer_kind: str
) -> None:
    rounds = max(1, request.config.getoption("--kill-rounds") // KINDS)
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed} (moments of the kills), {rounds} rounds")
    broker = make_broker(**BROKER_SETTINGS)
    broker.start()
    make_topic(broker.bootstrap, name, partitions=PARTITIONS, **SMALL_SEGMENTS, **FLUSHES[flush])
    producer = PRODUCERS[producer_kind](broker.bootstrap, name)
    kill_rounds(broker, producer, rounds, random.Random(seed))
    sends = producer.finish()
    check(sends, read_all(broker.bootstrap, name))
    broker.stop()


def kill_rounds(broker: BrokerProcess, producer: SteadyProducer, rounds: int, chance: random.Random) -> None:
    for _ in range(rounds):
        producer.wait_for_progress(500, timeout_s=40)
        time.sleep(chance.uniform(0, 0.4))  # the random moment itself
        broker.kill()
        broker.start()
    producer.wait_for_progress(100, timeout_s=40)


def read_all(bootstrap: str, topic: str) -> list[Read]:
    return [Read(p, m.offset(), m.value()) for p in range(PARTITIONS) for m in read(bootstrap, topic, p)]


def check(sends: list[Send], reads: list[Read]) -> None:
    found = anomalies(sends, reads)
    counts = {kind: sum(anomaly.kind == kind for anomaly in found) for kind in {anomaly.kind for anomaly in found}}
    assert not found, f"{counts} in {len(sends)} sends, {len(reads)} reads; first: {found[:5]}"
    assert len([send for send in sends if send.offset is not None]) > 500
