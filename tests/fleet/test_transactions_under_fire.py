"""Consume, transform, produce, exactly once, while clients, coordinators and leaders die for minutes.

`--fire-minutes 20` for a long run. The faults with their times are printed, as is the seed of their choice. Java's
copier is in a group of KIP-848 and takes the flow of KIP-890; librdkafka's two share a classic group and add their
partitions themselves.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition
from support.copier_process import CopierProcess, Pipeline
from support.copy_history import Copied, Outcome, aborted_reads, copy_anomalies
from support.faults import IN_SYNC_S, all_run
from support.fire import FIRE, TRANSACTION_TIMEOUT_MS, Scene
from support.fleet import FleetOf
from support.history import Anomaly, Read, polled_anomalies
from support.librdkafka import make_consumer, make_topic, read, watermarks
from support.polling import PollingLibrdkafka
from support.steady import SteadyLibrdkafka
from support.waiting import eventually

FLEET_SETTINGS = {
    "transaction.state.log.num.partitions": "6",
    "offsets.topic.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "10000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
PARTITIONS = 4
TOTALS = PARTITIONS  # the partition behind them
SOURCE, SAFE = "source", {"min_insync_replicas": "2"}
RECORDS_PER_SECOND = 100
# Of a pipeline: its kind, the protocol of its group, and how many copiers share it.
PIPELINES = {"java": ("consumer", 1), "librdkafka": ("classic", 2)}
PROGRESS_TRANSACTIONS, PROGRESS_S = 3, 120.0


@pytest.fixture
def scene(fleet: FleetOf) -> Iterator[Scene]:
    for topic, partitions in [(SOURCE, PARTITIONS), *((target, PARTITIONS + 1) for target in PIPELINES)]:
        make_topic(fleet.bootstrap, topic, partitions=partitions, replicas=3, **SAFE)
    copiers = [
        CopierProcess(Pipeline(kind, fleet.bootstrap, SOURCE, kind, TOTALS, protocol), fleet.folder, number)
        for kind, (protocol, count) in PIPELINES.items()
        for number in range(count)
    ]
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed} (choice of faults)")
    made = Scene(fleet, copiers, SOURCE, list(PIPELINES), PARTITIONS, random.Random(seed))
    start_all(made)
    yield made
    for copier in copiers:
        copier.close()


@pytest.fixture
def readers(fleet: FleetOf, scene: Scene) -> Iterator[dict[str, PollingLibrdkafka]]:
    """They see along the way what is committed."""
    made = {
        target: PollingLibrdkafka(fleet.bootstrap, target, partitions=PARTITIONS + 1, isolation_level="read_committed")
        for target in PIPELINES
    }
    yield made
    for reader in made.values():
        reader.close()


def test_output_is_input_exactly(
    request: pytest.FixtureRequest, scene: Scene, readers: dict[str, PollingLibrdkafka]
) -> None:
    feeder = SteadyLibrdkafka(scene.fleet.bootstrap, SOURCE, partitions=PARTITIONS, rate=RECORDS_PER_SECOND)
    set_on_fire(scene, seconds=60 * request.config.getoption("--fire-minutes"))
    feeder.finish()
    source = {p: [read.value for read in read_partition(scene.fleet, SOURCE, p)] for p in range(PARTITIONS)}
    for copier in scene.copiers:
        copier.kill()
    judge(scene, source, readers)
    print("died together: no transaction is torn, offsets agree")
    start_all(scene)
    drain(scene, source)
    for copier in scene.copiers:
        copier.finish()
    judge(scene, source, readers)
    tell(scene, source)


def start_all(scene: Scene) -> None:
    for copier in scene.copiers:
        copier.start(transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)


def set_on_fire(scene: Scene, *, seconds: float) -> None:
    """Every kind of fault before any comes again; after each the fleet must be whole and all copiers go on."""
    begin = time.monotonic()
    progress(scene)
    while True:
        for name in scene.chance.sample(list(FIRE), len(FIRE)):
            at_s = time.monotonic() - begin
            if at_s > seconds:
                return
            print(f"{at_s:6.1f} s  {name}", end=": ", flush=True)
            print(FIRE[name](scene), flush=True)
            all_run(scene.fleet)
            progress(scene)
            scene.fleet.wait_in_sync(IN_SYNC_S)


def progress(scene: Scene) -> None:
    before = {copier.name: copier.committed for copier in scene.copiers}

    def grown() -> dict[str, tuple[int, list[str]]]:
        for copier in scene.copiers:
            copier.tend()
        return {one.name: (one.committed - before[one.name], one.errors[-3:]) for one in scene.copiers}

    eventually(
        grown,
        lambda seen: all(count >= PROGRESS_TRANSACTIONS for count, _ in seen.values()),
        timeout_s=PROGRESS_S,
    )


def drain(scene: Scene, source: dict[int, list[bytes]]) -> None:
    """Until all that there is is copied."""
    ends = {partition: len(values) for partition, values in source.items()}

    def offsets() -> dict[str, dict[int, int]]:
        for copier in scene.copiers:
            copier.tend()
        return {target: committed_offsets(scene.fleet, target) for target in PIPELINES}

    eventually(offsets, lambda seen: all(one == ends for one in seen.values()), timeout_s=PROGRESS_S)


def judge(scene: Scene, source: dict[int, list[bytes]], readers: dict[str, PollingLibrdkafka]) -> None:
    found: list[Anomaly] = []
    for target, reader in readers.items():
        wait_until_stable(scene.fleet, target)
        parts = {p: read_partition(scene.fleet, target, p) for p in range(PARTITIONS + 1)}
        final = [one for part in parts.values() for one in part]
        outcomes = outcomes_of(scene, target)
        found += copy_anomalies(Copied(source, final, outcomes, committed_offsets(scene.fleet, target)))
        reader.wait_for({p: part[-1].offset + 1 for p, part in parts.items() if part}, timeout_s=PROGRESS_S)
        found += polled_anomalies(final, {f"{target}'s reader": list(reader.reads)})
        found += aborted_reads(reader.reads, outcomes)
    assert not found, f"{Counter(a.kind for a in found)}; first: {found[:5]}"


def wait_until_stable(fleet: FleetOf, topic: str) -> None:
    """Until what the dead left open has timed out."""

    def unstable() -> list[int]:
        ends = [
            [watermarks(fleet.bootstrap, topic, p, isolation_level=level)[1] for p in range(PARTITIONS + 1)]
            for level in ("read_committed", "read_uncommitted")
        ]
        return [high - stable for stable, high in zip(*ends, strict=True)]

    eventually(unstable, lambda seen: not any(seen), timeout_s=PROGRESS_S)


def read_partition(fleet: FleetOf, topic: str, partition: int) -> list[Read]:
    messages = read(fleet.bootstrap, topic, partition, isolation_level="read_committed")
    return [Read(partition, m.offset(), m.value()) for m in messages]


def committed_offsets(fleet: FleetOf, target: str) -> dict[int, int]:
    consumer = make_consumer(fleet.bootstrap, group_id=f"of-{target}", isolation_level="read_committed")
    try:
        asked = consumer.committed([TopicPartition(SOURCE, index) for index in range(PARTITIONS)], timeout=PROGRESS_S)
    finally:
        consumer.close()
    return {each.partition: max(0, each.offset) for each in asked}


def outcomes_of(scene: Scene, target: str) -> dict[str, Outcome]:
    mine = [copier for copier in scene.copiers if copier.group == f"of-{target}"]
    return {attempt: outcome for copier in mine for attempt, outcome in copier.outcomes.items()}


def tell(scene: Scene, source: dict[int, list[bytes]]) -> None:
    print(f"{sum(map(len, source.values()))} records in {PARTITIONS} partitions")
    for copier in scene.copiers:
        ends = Counter(outcome.name.lower() for outcome in copier.outcomes.values())
        print(f"{copier.name}: {dict(ends)}; errors {Counter(error[:110] for error in copier.errors)}")
        assert ends["committed"] and ends["aborted"], f"{copier.name} never committed or never aborted"
