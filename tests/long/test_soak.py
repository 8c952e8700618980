"""Mixed load on three brokers at the plateau of retention: memory, files and threads are flat after ten minutes.

`--soak-minutes` (60) says how long. Records are deleted and compacted as fast as they come, and everything that
brokers remember of those who left expires within minutes, so whatever still grows is a leak. Samples go to bench/out.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from long.load import Activity, Feeder, Guests, Reader, Transactions, Visitors
from long.samples import MEASURES, Sample, plot, sample, slopes, table, write_csv
from support.copier_process import CopierProcess, Pipeline
from support.fleet import FleetOf
from support.librdkafka import make_topic

OUT = Path(__file__).parents[2] / "bench" / "out"
FLEET_SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "offsets.topic.segment.bytes": "1048576",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "10000",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.segment.bytes": "1048576",
    "transactional.id.expiration.ms": "60000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "10000",
    "producer.id.expiration.ms": "60000",
    "producer.id.expiration.check.interval.ms": "10000",
    "log.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "1000",
    "log.cleaner.backoff.ms": "5000",
    "metadata.log.segment.bytes": "8388608",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
}
PARTITIONS = 4
SMALL = {"segment_bytes": "1048576", "retention_bytes": "2097152"}
SLOW = {"internal_segment_bytes": "262144", "retention_bytes": "524288"}  # at its plateau within two minutes as well
TOPICS = {
    "plain": SMALL,
    "compressed": SMALL,
    "source": SLOW,
    "transactions": SLOW,
    "keyed": {"cleanup_policy": "compact", "segment_bytes": "1048576", "min_cleanable_dirty_ratio": "0.2"},
    **{f"copied-{protocol}": SLOW for protocol in ("classic", "consumer")},
}
TRANSACTION_TIMEOUT_MS = 30_000
SAMPLE_S = 10.0
FIRST_COMMIT_S = 120.0  # otherwise an hour passes in which half of the load is missing
WARM_MINUTES = 10.0
# A shorter window says nothing: brokers breathe by megabytes.
JUDGED_MINUTES_MIN = 20.0
GROWTH_PER_MINUTE_MAX = {"rss_mb": 0.05, "files": 0.2, "threads": 0.05}


@pytest.fixture
def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FleetOf]:
    started = FleetOf(request.config.getoption("--peer"), tmp_path, settings=FLEET_SETTINGS)
    try:
        with pytest.MonkeyPatch.context() as patch:
            if request.config.getoption("--soak-heap"):
                write_heaps(patch)
            started.start()
        for topic, config in TOPICS.items():
            make_topic(started.bootstrap, topic, partitions=PARTITIONS, replicas=3, **config)
        yield started
    finally:
        started.close()


def write_heaps(patch: pytest.MonkeyPatch) -> None:
    folder = OUT / f"heaps-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    folder.mkdir(parents=True)
    patch.setenv("PYTHONPATH", str(Path(__file__).parent / "heap"))
    patch.setenv("OTTLA_SOAK_HEAP", str(folder))


@pytest.fixture
def copiers(fleet: FleetOf) -> Iterator[list[CopierProcess]]:
    made = []
    for protocol in ("classic", "consumer"):
        target = f"copied-{protocol}"
        pipeline = Pipeline("librdkafka", fleet.bootstrap, "source", target, PARTITIONS - 1, protocol)
        made += [CopierProcess(pipeline, fleet.folder, number) for number in range(2)]
    yield made
    for copier in made:
        copier.close()


def activities(fleet: FleetOf) -> list[Activity]:
    at = fleet.bootstrap
    return [
        Feeder(at, "plain", rate=150),
        Feeder(at, "compressed", rate=100, codec="lz4"),
        Feeder(at, "compressed", rate=100, codec="zstd"),
        Feeder(at, "keyed", rate=100, keys=500),
        Feeder(at, "source", rate=40),
        *(Reader(at, "plain", f"readers-{protocol}", protocol) for protocol in ("classic", "consumer")),
        *(Guests(at, "plain", f"readers-{protocol}", protocol) for protocol in ("classic", "consumer")),
        Transactions(at, "transactions", partitions=PARTITIONS),
        Visitors(at, fleet.members, "plain"),
    ]


def test_nothing_grows(request: pytest.FixtureRequest, fleet: FleetOf, copiers: list[CopierProcess]) -> None:
    minutes = request.config.getoption("--soak-minutes")
    running = activities(fleet)
    for activity in running:
        activity.start()
    for copier in copiers:
        copier.start(transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    path = OUT / f"soak-{datetime.now(UTC):%Y%m%d-%H%M%S}.csv"
    samples: list[Sample] = []
    cpu_before_s = fleet.cpu_seconds()
    try:
        watch(fleet, copiers, samples, minutes=minutes)
        cores = (fleet.cpu_seconds() - cpu_before_s) / (60 * minutes)
    finally:
        for activity in running:
            activity.stop()
        write_csv(samples, path)
        show(samples, path, minutes)
    for activity in running:
        activity.join()
    finish(copiers)
    errors = [error for each in running for error in each.errors]
    errors += [f"{copier.name}: {error}" for copier in copiers for error in copier.errors]
    print(f"brokers used {cores:.2f} cores; done: { ({each.name: each.done for each in running}) }")
    print(f"{len(errors)} errors of clients", *errors, sep="\n")
    judge(samples, minutes)
    assert not errors, f"{len(errors)} errors of clients; the first: {errors[0]}"


def watch(fleet: FleetOf, copiers: list[CopierProcess], samples: list[Sample], *, minutes: float) -> None:
    """Samples until the time is over. A copier that gave up begins again; that is told at the end."""
    begin = time.monotonic()
    next_s = begin
    while (now := time.monotonic()) < begin + 60 * minutes:
        samples += [sample((now - begin) / 60, number, broker) for number, broker in enumerate(fleet.members)]
        assert all(member.running for member in fleet.members), fleet.log_tails()
        for copier in copiers:
            copier.tend()
            assert copier.committed or now < begin + FIRST_COMMIT_S, f"{copier.name} committed nothing: {copier.errors}"
        next_s += SAMPLE_S
        time.sleep(max(0.0, next_s - time.monotonic()))


def finish(copiers: list[CopierProcess]) -> None:
    for copier in copiers:
        code = copier.finish()
        assert code == 0, f"{copier.name} ended with {code}: {copier.errors[-3:]}"
        assert copier.committed, f"{copier.name} committed nothing"


def show(samples: list[Sample], path: Path, minutes: float) -> None:
    if not samples:
        return
    print(f"\n{table(samples, every_minutes=max(0.5, minutes / 20))}")
    for broker in sorted({each.broker for each in samples}):
        growth = slopes(samples, broker, from_minute=warm_minutes(minutes))
        print(f"broker {broker}, per minute: " + ", ".join(f"{what} {rate:+.3f}" for what, rate in growth.items()))
        print("\n".join(f"  {plot(samples, what, broker)}" for what in MEASURES))
    print(f"samples: {path}")


def warm_minutes(minutes: float) -> float:
    return min(WARM_MINUTES, minutes / 3)


def judge(samples: list[Sample], minutes: float) -> None:
    judged_minutes = minutes - WARM_MINUTES
    if judged_minutes < JUDGED_MINUTES_MIN:
        print(f"slopes are not judged: that needs {WARM_MINUTES + JUDGED_MINUTES_MIN:g} minutes")
        return
    found = {broker: slopes(samples, broker, from_minute=WARM_MINUTES) for broker in {s.broker for s in samples}}
    grown = [
        f"broker {broker}: {what} {rate:+.3f} a minute, more than {GROWTH_PER_MINUTE_MAX[what]}"
        for broker, rates in sorted(found.items())
        for what, rate in rates.items()
        if rate > GROWTH_PER_MINUTE_MAX[what]
    ]
    assert not grown, "; ".join(grown)
