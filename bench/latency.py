"""Produce latency: one record at a time, and open loop at half of what Apache Kafka can take."""

from collections.abc import Iterator

from bench.client_process import ClientRun, client_program, run_client
from bench.context import Context, fresh_topic
from bench.rows import TAIL_LATENCY, Reading

RECORDS = 10_000
OPEN_LOOP_S = 10
# Only the tail has a goal.
GOALS = {"p99": TAIL_LATENCY}


def run(context: Context) -> Iterator[Reading]:
    with context.broker() as broker:
        run_client(broker, one_at_a_time(broker.bootstrap, fresh_topic(broker, "warm-up"), context.scaled(RECORDS)))
        done = run_client(broker, one_at_a_time(broker.bootstrap, fresh_topic(broker, "one"), context.scaled(RECORDS)))
        yield from readings("latency one at a time", done)
        rate, seconds = context.half_load_records_per_s, 3 if context.quick else OPEN_LOOP_S
        topic = fresh_topic(broker, "open")
        done = run_client(broker, client_program("open_loop", broker.bootstrap, topic, rate, seconds))
        yield from readings("latency at half load", done)


def one_at_a_time(bootstrap: str, topic: str, count: int) -> list[str]:
    return client_program("latency", bootstrap, topic, count)


def readings(name: str, done: ClientRun) -> Iterator[Reading]:
    for percentile, milliseconds in done.json().items():
        yield Reading(f"{name} {percentile}", "ms", milliseconds, GOALS.get(percentile))
