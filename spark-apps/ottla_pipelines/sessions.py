"""sessions: the clicks of each user, joined into sessions by event time.

    clicks ──read──▶ parse ──▶ good ones ──▶ transform ──▶ results ──write──▶ sessions-result
                       └─────▶ malformed ones ──▶ dead_letters ──write──▶ clicks-dead-letter

A click is a JSON object {"user", "page", "event_time"}. A session ends when its user is silent for the gap; it is out
once the watermark (the latest event time seen, less the lateness) has passed its end, so clicks that come late by less
still count. Each result has the key {user, start, end}; Spark's Kafka sink writes at least once, so the last value of a
key is the answer. What cannot be read goes to the dead-letter topic with the reason, and the stream goes on.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from ottla_pipelines.spark_session import submitted_session
from ottla_pipelines.streaming import Batch, follow, read_stream, stop, write_stream

__all__ = ["Options", "dead_letters", "main", "parse", "results", "start", "transform"]

CLICK = StructType([StructField(name, StringType()) for name in ("user", "page", "event_time", "malformed")])
ISO_8601 = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}"
# One click from the year 9999 would close every session for ever.
AHEAD_MAX = "1 day"
TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Without `until` the pipeline runs for ever."""

    bootstrap: str
    checkpoint: str
    until: datetime | None = None
    gap: str = "30 minutes"
    lateness: str = "10 minutes"
    records_per_batch_max: int = 200_000
    topic: str = "clicks"
    result_topic: str = "sessions-result"
    dead_letter_topic: str = "clicks-dead-letter"


def parse(records: DataFrame) -> DataFrame:
    """Kafka records, with user, page, event_time, and `reason`: why a record is malformed, or null. Pure."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "malformed"}
    click = f.from_json(f.col("value").cast("string"), CLICK, options)
    time = f.when(f.col("click.event_time").rlike(ISO_8601), f.try_to_timestamp(f.col("click.event_time")))
    return (
        records.withColumn("click", click)
        .withColumn("event_time", time)
        .withColumn("reason", _reason())
        .withColumns({"user": f.col("click.user"), "page": f.col("click.page")})
        .drop("click")
    )


def transform(clicks: DataFrame, *, gap: str, lateness: str) -> DataFrame:
    """Parsed clicks → sessions: user, start, end, clicks, pages. Pure."""
    window = f.session_window("event_time", gap)
    return (
        clicks.where(f.col("reason").isNull())
        .withWatermark("event_time", lateness)
        .groupBy(window.alias("session"), "user")
        .agg(f.count("*").alias("clicks"), f.sort_array(f.collect_set("page")).alias("pages"))
        .select("user", f.col("session.start").alias("start"), f.col("session.end").alias("end"), "clicks", "pages")
    )


def results(sessions: DataFrame) -> DataFrame:
    """Sessions as Kafka records. Pure."""
    start, end = (f.date_format(name, TIME_FORMAT).alias(name) for name in ("start", "end"))
    return sessions.select(
        f.to_json(f.struct("user", start, end)).alias("key"),
        f.to_json(f.struct("user", start, end, "clicks", "pages")).alias("value"),
    )


def dead_letters(parsed: DataFrame) -> DataFrame:
    """Malformed records as they came, the reason and their origin in headers. Pure."""
    headers = [
        _header("ottla.reason", f.col("reason")),
        _header("ottla.topic", f.col("topic")),
        _header("ottla.partition", f.col("partition").cast("string")),
        _header("ottla.offset", f.col("offset").cast("string")),
    ]
    return parsed.where(f.col("reason").isNotNull()).select("key", "value", f.array(*headers).alias("headers"))


def start(spark: SparkSession, options: Options) -> tuple[StreamingQuery, StreamingQuery]:
    """Sessions and dead letters, each with a checkpoint of its own: neither can lose what only the other has read."""
    records = read_stream(spark, options.bootstrap, options.topic, records_per_batch_max=options.records_per_batch_max)
    parsed = parse(records)
    sessions = results(transform(parsed, gap=options.gap, lateness=options.lateness))
    place = {"checkpoint": options.checkpoint}
    return (
        write_stream(sessions, options.bootstrap, options.result_topic, name="sessions", **place),
        write_stream(dead_letters(parsed), options.bootstrap, options.dead_letter_topic, name="dead-letter", **place),
    )


def _reason() -> Column:
    click = f.col("click")
    latest = f.col("timestamp") + f.expr(f"INTERVAL {AHEAD_MAX}")
    return (
        f.when(f.col("value").isNull(), "it has no value")
        .when(click.isNull() | click["malformed"].isNotNull(), "it is no JSON object")
        .when(click["user"].isNull(), "user is missing")
        .when(click["page"].isNull(), "page is missing")
        .when(f.col("event_time").isNull(), "event_time is not like 2026-01-05T12:00:00.000Z")
        .when(f.col("event_time") > latest, f"event_time is more than {AHEAD_MAX} ahead of the record's own")
    )


def _header(name: str, value: Column) -> Column:
    return f.struct(f.lit(name).alias("key"), f.encode(value, "utf-8").alias("value"))


def describe(batch: Batch) -> str:
    late = f", {batch.dropped_late} too late" if batch.dropped_late else ""
    watermark = batch.watermark.strftime("%Y-%m-%d %H:%M:%S") if batch.watermark else "none yet"
    return f"batch {batch.number}: {batch.rows} records{late}; watermark {watermark}"


def main(words: Sequence[str]) -> int:
    """What spark-submit runs."""
    options = _options(words)
    spark = submitted_session("sessions")
    queries = start(spark, options)
    for batch in follow(queries[0], queries[1:], until=options.until, checkpoint=options.checkpoint):
        print(f"sessions: {describe(batch)}", flush=True)
    stop(queries)
    print(f"sessions: complete until {options.until}", flush=True)
    spark.stop()
    return 0


def _options(words: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="sessions", description="Join clicks into sessions.")
    bootstrap = os.environ.get("OTTLA_BOOTSTRAP_SERVERS")
    parser.add_argument("--bootstrap-servers", dest="bootstrap", default=bootstrap, metavar="HOST:PORT,…")
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="where the stream keeps its state")
    parser.add_argument("--until", type=_time, metavar="TIME", help="end when the watermark is there; else never")
    parser.add_argument("--gap", help="silence that ends a session, such as '30 minutes'")
    parser.add_argument("--lateness", help="how late a click may come and still count, such as '10 minutes'")
    parser.add_argument("--records-per-batch-max", type=int, metavar="N")
    for name in ("topic", "result-topic", "dead-letter-topic"):
        parser.add_argument(f"--{name}", metavar="NAME")
    given = parser.parse_args(words)
    if not given.bootstrap:
        parser.error("name the brokers by --bootstrap-servers or OTTLA_BOOTSTRAP_SERVERS")
    return Options(**{name: value for name, value in vars(given).items() if value is not None})


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
