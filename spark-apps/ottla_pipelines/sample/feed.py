"""Feed a sample into a topic, wave by wave; what is there already is not fed again.

A wave's records have fixed partitions and order, so a feeder that was interrupted goes on where a partition ends.
The next wave waits until the pipeline has put out the sessions of the waves before: then, and only then, is its
watermark known to have passed them, and the too-late clicks of the next wave are too late for sure.

`python -m ottla_pipelines.sample.feed --bootstrap-servers HOST:PORT --events 20000 --seed 1`
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import KafkaError, Message, Producer

from ottla_pipelines.sample.answer import closed_sessions
from ottla_pipelines.sample.clicks import SampleRecord, make_waves
from ottla_pipelines.sample.kafka import KafkaUnavailable, end_offsets, read_topic
from ottla_pipelines.sample.outcome import read_sessions

__all__ = ["Feeder", "Interrupted"]

FLUSH_S_MAX = 60.0
POLL_S = 1.0
WAIT_S_MAX = 900.0
# How far partitions may be apart in event time when a pipeline reads them: far less than gap and lateness together, so
# that the watermark never passes a click that is in time.
CHUNK_SPAN = timedelta(minutes=5)


class Interrupted(RuntimeError):
    """The caller asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeder:
    bootstrap: str
    topic: str
    result_topic: str
    seed: int
    events: int
    report: Callable[[str], None]
    stopped: Callable[[], bool] = lambda: False

    def feed(self, waves: Sequence[int] = (1, 2)) -> None:
        before: list[SampleRecord] = []
        for number, wave in enumerate(make_waves(seed=self.seed, events=self.events), start=1):
            if number in waves:
                self._await_sessions(before)
                fed = self._feed_wave(before, wave)
                already = f", {len(wave) - fed} were there" if fed < len(wave) else ""
                self.report(f"wave {number}: {fed} records fed into {self.topic}{already}")
            before.extend(wave)

    def refuse_other_records(self) -> None:
        """Feeding may go on at the ends of partitions only if they begin with records of this sample."""
        wave, _ = make_waves(seed=self.seed, events=self.events)
        firsts = {record.partition: record.value for record in reversed(wave)}
        seen: set[int | None] = set()
        for message in read_topic(self.bootstrap, self.topic):
            partition = message.partition()
            if partition not in seen and (message.offset() != 0 or message.value() != firsts.get(partition or 0)):
                raise KafkaUnavailable(
                    f"topic {self.topic} holds other records than {self.events} events of seed {self.seed}; delete it, "
                    "or run without a sample"
                )
            seen.add(partition)
            if seen >= firsts.keys():
                return

    def _await_sessions(self, before: Sequence[SampleRecord]) -> None:
        expected = {(session.user, session.start) for session in closed_sessions(before)} if before else set()
        if expected:
            self.report(f"waiting for the first {len(expected)} sessions in {self.result_topic}")
        deadline = time.monotonic() + WAIT_S_MAX
        while expected and not expected <= self._session_starts():
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f"{self.result_topic} lacks sessions after {WAIT_S_MAX:g} s: does sessions run?")
            self._raise_if_stopped()
            time.sleep(POLL_S)

    def _session_starts(self) -> set[tuple[str, object]]:
        return {(session.user, session.start) for session in read_sessions(self.bootstrap, self.result_topic)}

    def _feed_wave(self, before: Sequence[SampleRecord], wave: Sequence[SampleRecord]) -> int:
        present = end_offsets(self.bootstrap, self.topic)
        if max(record.partition for record in wave) not in present:
            raise KafkaUnavailable(f"topic {self.topic} has {len(present)} partitions: too few for the sample")
        for record in before:
            present[record.partition] -= 1
        missing = _missing(wave, present)
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        for chunk in _chunks(missing):
            self._raise_if_stopped()
            self._send(producer, chunk)
        return len(missing)

    def _send(self, producer: Producer, chunk: Sequence[SampleRecord]) -> None:
        errors: list[KafkaError] = []

        def report(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                errors.append(error)

        for record in chunk:
            producer.produce(
                self.topic, value=record.value, key=record.key, partition=record.partition, on_delivery=report
            )
            producer.poll(0)
        if producer.flush(FLUSH_S_MAX) or errors:
            reason = errors[0].str() if errors else f"no acknowledgement within {FLUSH_S_MAX:g} s"
            raise KafkaUnavailable(f"{self.bootstrap}, topic {self.topic}: {reason}")

    def _raise_if_stopped(self) -> None:
        if self.stopped():
            raise Interrupted


def _missing(wave: Sequence[SampleRecord], present: dict[int, int]) -> list[SampleRecord]:
    """`present`: how many of the wave's records each partition has."""
    missing = []
    for record in wave:
        present[record.partition] -= 1
        if present[record.partition] < 0:
            missing.append(record)
    return missing


def _chunks(records: Sequence[SampleRecord]) -> Iterator[list[SampleRecord]]:
    """Each spans little event time, so a closing click is alone; a chunk is acknowledged before the next is sent."""
    chunk: list[SampleRecord] = []
    began = None
    for record in records:
        now = record.click.time if record.click is not None and record.counts else None
        if began is not None and now is not None and now - began > CHUNK_SPAN:
            yield chunk
            chunk, began = [], None
        chunk.append(record)
        began = began or now
    if chunk:
        yield chunk


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="feed", description="Feed sample clicks whose sessions are known.")
    parser.add_argument("--bootstrap-servers", default=os.environ.get("OTTLA_BOOTSTRAP_SERVERS"), metavar="HOST:PORT,…")
    parser.add_argument("--topic", default="clicks")
    parser.add_argument("--result-topic", default="sessions-result")
    parser.add_argument("--events", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--waves", type=int, nargs="+", choices=(1, 2), default=(1, 2))
    options = parser.parse_args(words)
    if not options.bootstrap_servers:
        parser.error("name the brokers by --bootstrap-servers or OTTLA_BOOTSTRAP_SERVERS")
    feeder = Feeder(
        bootstrap=options.bootstrap_servers,
        topic=options.topic,
        result_topic=options.result_topic,
        seed=options.seed,
        events=options.events,
        report=lambda line: print(line, flush=True),
    )
    feeder.refuse_other_records()
    feeder.feed(options.waves)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KafkaUnavailable as problem:
        sys.exit(f"feed: {problem}")
