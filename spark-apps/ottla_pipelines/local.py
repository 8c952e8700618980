"""A pipeline on this machine: Spark in local mode, and beside it the feeder of a sample if one is wanted."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ottla_pipelines import sessions
from ottla_pipelines.connector import connector_jars
from ottla_pipelines.sample.answer import Session, closed_sessions
from ottla_pipelines.sample.clicks import COMPLETE_AT, PARTITIONS, make_waves
from ottla_pipelines.sample.feed import Feeder, Interrupted
from ottla_pipelines.sample.kafka import cluster_id, make_topics
from ottla_pipelines.sample.outcome import read_sessions
from ottla_pipelines.spark_session import local_session
from ottla_pipelines.streaming import follow, stop

__all__ = ["Sample", "default_folder", "expected_sessions", "run_sessions"]

Report = Callable[[str], None]
TABLE_GROUP = "sessions-table"  # `ottla groups` shows how much of the answer was read


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    events: int
    seed: int


def default_folder(bootstrap: str) -> Path:
    """One for each fleet: a checkpoint counts the offsets of one fleet's topics."""
    return Path("data") / "pipelines" / f"sessions-{cluster_id(bootstrap)}"


def expected_sessions(sample: Sample) -> set[Session]:
    first, second = make_waves(seed=sample.seed, events=sample.events)
    return closed_sessions([*first, *second])


def run_sessions(
    options: sessions.Options, sample: Sample | None, *, folder: Path, report: Report, stopped: Callable[[], bool]
) -> set[Session]:
    """The sessions in the result topic when the sample is worked through. Interrupted when `stopped`, sample or not."""
    topics = (options.topic, options.result_topic, options.dead_letter_topic)
    for name in make_topics(options.bootstrap, topics, partitions=PARTITIONS):
        report(f"topic {name} made")
    feeding = Feeding(options, sample, report)

    def check() -> None:
        feeding.raise_failure()
        if stopped():
            raise Interrupted

    if sample is not None:
        options = replace(options, until=COMPLETE_AT)
    jars = connector_jars(report)
    report("starting Spark …")
    with local_session(folder=folder, jars=jars) as spark, feeding:
        report(f"Spark {spark.version} runs; its log is {folder}/spark.log")
        queries = sessions.start(spark, options)
        try:
            followed = follow(
                queries[0],
                queries[1:],
                until=options.until,
                checkpoint=options.checkpoint,
                check=check,
            )
            for batch in followed:
                report(sessions.describe(batch))
        finally:
            stop(queries)
    return read_sessions(options.bootstrap, options.result_topic, group=TABLE_GROUP)


class Feeding:
    """Feeds the sample in a thread of its own while the block runs; nothing without a sample."""

    def __init__(self, options: sessions.Options, sample: Sample | None, report: Report) -> None:
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None
        if sample is not None:
            feeder = Feeder(
                bootstrap=options.bootstrap,
                topic=options.topic,
                result_topic=options.result_topic,
                seed=sample.seed,
                events=sample.events,
                report=report,
                stopped=self._stopping.is_set,
            )
            feeder.refuse_other_records()
            self._thread = threading.Thread(target=self._feed, args=(feeder,), name="feeder")

    def __enter__(self) -> None:
        if self._thread is not None:
            self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._thread is None:
            return
        if kind is not None:
            self._stopping.set()
        self._thread.join()
        if kind is None:
            self.raise_failure()

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _feed(self, feeder: Feeder) -> None:
        try:
            feeder.feed()
        except Interrupted:
            pass
        except Exception as failure:  # raised by the next `raise_failure`
            self._failure = failure
