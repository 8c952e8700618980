"""Consume, transform, produce while the group rebalances: nobody's producer is fenced, and every copy is exact.

Copiers of one kind of client share a group. In each round another one joins, copies something and leaves, so that the
others commit offsets as members that are stale, abort, and begin again at once. `--copy-rounds 50` for a long run.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from support.copier_process import CopierProcess, Pipeline
from support.copy_history import Copied, Outcome, copy_anomalies
from support.history import Read
from support.librdkafka import make_consumer, make_topic, read, watermarks
from support.steady import SteadyLibrdkafka
from support.waiting import eventually

BROKER_SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
PARTITIONS = 6
TOTALS = PARTITIONS  # the partition behind them
TRANSACTION_TIMEOUT_MS = 30_000
RECORDS_PER_SECOND = 200
STEADY_COPIERS = 2
PROGRESS_S = 90.0
# aiokafka does not name the member on whose behalf it commits, so nobody can refuse a stale one.
INEXACT = "aiokafka"
CASES = [
    ("java", "classic"),
    ("java", "consumer"),
    ("librdkafka", "classic"),
    ("librdkafka", "consumer"),
    ("franz-go", "classic"),
    ("franz-go", "consumer"),
    ("kafka-python", "classic"),
    ("aiokafka", "classic"),
]


@pytest.fixture
def source(bootstrap: str, name: str) -> Iterator[SteadyLibrdkafka]:
    make_topic(bootstrap, f"{name}-in", partitions=PARTITIONS)
    make_topic(bootstrap, f"{name}-out", partitions=PARTITIONS + 1)
    steady = SteadyLibrdkafka(bootstrap, f"{name}-in", partitions=PARTITIONS, rate=RECORDS_PER_SECOND)
    yield steady
    steady.finish()


@pytest.mark.parametrize(("kind", "protocol"), CASES)
def test_copying(
    bootstrap: str,
    name: str,
    tmp_path: Path,
    source: SteadyLibrdkafka,
    request: pytest.FixtureRequest,
    kind: str,
    protocol: str,
) -> None:
    pipeline = Pipeline(kind, bootstrap, f"{name}-in", f"{name}-out", TOTALS, protocol)
    copiers = [CopierProcess(pipeline, tmp_path, number) for number in range(STEADY_COPIERS + 1)]
    try:
        for one in copiers[:STEADY_COPIERS]:
            one.start(transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
        wait_for_commits(copiers[:STEADY_COPIERS])
        for _ in range(request.config.getoption("--copy-rounds")):
            rebalance_twice(copiers)
        source.finish()
        ends = {p: watermarks(bootstrap, pipeline.source, p)[1] for p in range(PARTITIONS)}
        eventually(lambda: committed(pipeline), lambda seen: seen == ends, timeout_s=PROGRESS_S)
        for one in copiers[:STEADY_COPIERS]:
            finish(one)
    finally:
        for one in copiers:
            one.close()
            print(one.name, Counter(outcome.name for outcome in one.outcomes.values()), one.errors[-3:])
    if kind != INEXACT:
        judge(pipeline, copiers)


def rebalance_twice(copiers: list[CopierProcess]) -> None:
    """One more joins, and leaves when all have copied something with it."""
    guest = copiers[-1]
    guest.start(transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    wait_for_commits(copiers)
    finish(guest)
    wait_for_commits(copiers[:-1])


def wait_for_commits(copiers: list[CopierProcess]) -> None:
    """Until each has committed once more."""
    before = {one.name: one.committed for one in copiers}

    def behind() -> list[str]:
        for one in copiers:
            assert one.running, f"{one.name} gave up: {one.errors[-3:]}"
        return [one.name for one in copiers if one.committed == before[one.name]]

    eventually(behind, lambda names: not names, timeout_s=PROGRESS_S)


def finish(copier: CopierProcess) -> None:
    code = copier.finish()
    assert code == 0, f"{copier.name} ended with {code}: {copier.errors[-3:]}"


def committed(pipeline: Pipeline) -> dict[int, int]:
    consumer = make_consumer(pipeline.bootstrap, group_id=pipeline.group, isolation_level="read_committed")
    try:
        asked = consumer.committed([TopicPartition(pipeline.source, p) for p in range(PARTITIONS)], timeout=PROGRESS_S)
    finally:
        consumer.close()
    return {each.partition: max(0, each.offset) for each in asked}


def judge(pipeline: Pipeline, copiers: list[CopierProcess]) -> None:
    outcomes: dict[str, Outcome] = {}
    for one in copiers:
        outcomes |= one.outcomes
    source = {p: [one.value for one in reads(pipeline, pipeline.source, p)] for p in range(PARTITIONS)}
    copies = [one for p in range(PARTITIONS + 1) for one in reads(pipeline, pipeline.target, p)]
    found = copy_anomalies(Copied(source, copies, outcomes, committed(pipeline)))
    assert not found, f"{Counter(one.kind for one in found)}; first: {found[:5]}"


def reads(pipeline: Pipeline, topic: str, partition: int) -> list[Read]:
    messages = read(pipeline.bootstrap, topic, partition, isolation_level="read_committed")
    return [Read(partition, one.offset(), one.value()) for one in messages]
