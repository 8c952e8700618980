"""The pipeline's transformations on a handful of rows, in a real Spark."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ottla_pipelines import sessions
from ottla_pipelines.sample.answer import Session, sessions_of
from ottla_pipelines.sample.clicks import GAP, Click, make_waves
from ottla_pipelines.sample.outcome import session_from_json
from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
GAP_TEXT, LATENESS_TEXT = "30 minutes", "10 minutes"


def records(spark: SparkSession, values: Sequence[bytes | None]) -> DataFrame:
    rows = [(b"k", value, "clicks", 3, offset, NOON + timedelta(days=1)) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, SCHEMA)


def computed(spark: SparkSession, clicks: Sequence[Click]) -> set[Session]:
    parsed = sessions.parse(records(spark, [click.to_json() for click in clicks]))
    found = sessions.results(sessions.transform(parsed, gap=GAP_TEXT, lateness=LATENESS_TEXT)).collect()
    return {session_from_json(row.value.encode()) for row in found}


NO_TIME = "event_time is not like 2026-01-05T12:00:00.000Z"
MALFORMED = {
    None: "it has no value",
    b"": "it is no JSON object",
    b"not JSON": "it is no JSON object",
    b'{"user": "u", "page": "/", "event_': "it is no JSON object",
    b'["a", "list"]': "it is no JSON object",
    b"\xff\xfe\x00": "it is no JSON object",
    b'{"page": "/", "event_time": "2026-01-05T12:00:00Z"}': "user is missing",
    b'{"user": "u", "event_time": "2026-01-05T12:00:00Z"}': "page is missing",
    b'{"user": "u", "page": "/"}': NO_TIME,
    b'{"user": "u", "page": "/", "event_time": "yesterday"}': NO_TIME,
    b'{"user": "u", "page": "/", "event_time": 1767614400}': NO_TIME,
    b'{"user": "u", "page": "/", "event_time": "9999-12-31T00:00:00Z"}': (
        "event_time is more than 1 day ahead of the record's own"
    ),
}


def test_malformed_records_are_told_apart(spark: SparkSession) -> None:
    """All in one go: starting a query takes Spark longer than reading its rows."""
    parsed = sessions.parse(records(spark, list(MALFORMED))).collect()
    assert {bytes(row.value) if row.value is not None else None: row.reason for row in parsed} == MALFORMED


def test_a_dead_letter_keeps_the_record_and_tells_its_origin(spark: SparkSession) -> None:
    good = Click(NOON, "u", "/").to_json()
    letters = sessions.dead_letters(sessions.parse(records(spark, [good, b"oops"]))).collect()
    assert [(bytes(letter.key), bytes(letter.value)) for letter in letters] == [(b"k", b"oops")]
    assert {header.key: bytes(header.value) for header in letters[0].headers} == {
        "ottla.reason": b"it is no JSON object",
        "ottla.topic": b"clicks",
        "ottla.partition": b"3",
        "ottla.offset": b"1",
    }


def test_a_silence_longer_than_the_gap_begins_another_session(spark: SparkSession) -> None:
    longer = GAP + timedelta(milliseconds=1)
    times = [NOON, NOON + GAP, NOON + GAP + longer]
    clicks = [Click(time, "u", page) for time, page in zip(times, ("/b", "/a", "/a"), strict=True)]
    assert computed(spark, clicks) == {
        Session("u", times[0], times[1] + GAP, 2, ("/a", "/b")),
        Session("u", times[2], times[2] + GAP, 1, ("/a",)),
    }


def test_the_plain_answer_agrees_with_spark_on_a_whole_sample(spark: SparkSession) -> None:
    first, _ = make_waves(seed=7, events=600)
    clicks = [record.click for record in first if record.click is not None]
    assert computed(spark, clicks) == set(sessions_of(clicks))


def test_late_clicks_count_until_the_watermark_has_passed(spark: SparkSession, tmp_path: Path) -> None:
    """A stream over files, one a batch: in time, late, one that moves the watermark, too late."""
    batches = (
        [Click(NOON, "u", "/first")],
        [Click(NOON - timedelta(minutes=9), "u", "/late")],
        [Click(NOON + timedelta(hours=6), "closing", "/")],
        [Click(NOON + timedelta(minutes=1), "u", "/too-late")],
        [Click(NOON + timedelta(hours=12), "closing", "/")],
    )
    source, sink = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    stream = spark.readStream.schema(SCHEMA).json(str(source))
    output = sessions.transform(sessions.parse(stream), gap=GAP_TEXT, lateness=LATENESS_TEXT)
    query = (
        output.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(sink))
    )
    try:
        for number, batch in enumerate(batches):
            records(spark, [click.to_json() for click in batch]).coalesce(1).write.mode("append").json(str(source))
            query.processAllAvailable()
            assert query.isActive, number
    finally:
        query.stop()
    found = {(row.user, row.clicks, tuple(row.pages)) for row in spark.read.parquet(str(sink)).collect()}
    assert found == {("u", 2, ("/first", "/late")), ("closing", 1, ("/",))}
