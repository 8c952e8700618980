"""Streams between Kafka topics: how every pipeline reads, writes, and is followed while it runs."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Batch", "follow", "read_stream", "stop", "write_stream"]

POLL_S = 0.5
Offsets = dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A query's progress report about its last batch."""

    number: int
    rows: int
    watermark: datetime | None
    dropped_late: int
    ends: Offsets


def read_stream(spark: SparkSession, bootstrap: str, topic: str, *, records_per_batch_max: int) -> DataFrame:
    """From the beginning, or from the checkpoint where there is one."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", records_per_batch_max)
        .load()
    )


def write_stream(records: DataFrame, bootstrap: str, topic: str, *, checkpoint: str, name: str) -> StreamingQuery:
    return (
        records.writeStream.format("kafka")
        .queryName(name)
        .outputMode("append")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.enable.idempotence", "true")
        .option("topic", topic)
        .option("checkpointLocation", f"{checkpoint}/{name}")
        .start()
    )


def follow(
    main: StreamingQuery,
    beside: Sequence[StreamingQuery],
    *,
    until: datetime | None,
    checkpoint: str,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Batch]:
    """Each new batch of the main query, until its watermark has passed `until` and the queries beside it have read as
    much; without `until`, for ever. A query that fails raises here; so may `check`, which is called twice a second.
    """
    done = _kept(checkpoint, main)
    while done is None or until is None or done.watermark is None or done.watermark < until:
        batch = _last_batch(main)
        if batch is not None and (done is None or batch.number != done.number):
            done = batch
            yield batch
        else:
            check()
            _wait([main, *beside])
    for query in beside:
        while not _has_read(_last_batch(query) or _kept(checkpoint, query), done.ends):
            check()
            _wait([main, query])


def stop(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        query.stop()


def _wait(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        if query.awaitTermination(POLL_S / len(queries)):  # type: ignore[arg-type]  # the stub wants an int
            raise RuntimeError(f"query {query.name} ended by itself")


def _last_batch(query: StreamingQuery) -> Batch | None:
    said = query.lastProgress
    if said is None:
        return None
    fields = json.loads(said.json)
    watermark = fields.get("eventTime", {}).get("watermark")
    return Batch(
        number=fields["batchId"],
        rows=fields["numInputRows"],
        watermark=datetime.fromisoformat(watermark) if watermark else None,
        dropped_late=sum(state.get("numRowsDroppedByWatermark", 0) for state in fields["stateOperators"]),
        ends=_ends([source["endOffset"] for source in fields["sources"]]),
    )


def _kept(checkpoint: str, query: StreamingQuery) -> Batch | None:
    """The last batch that was committed there: a query that has nothing left to do after a restart says nothing."""
    folder = Path(checkpoint, query.name)
    committed = [int(path.name) for path in folder.glob("commits/*") if path.name.isdigit()]
    if not committed:
        return None
    _, state, *offsets = (folder / "offsets" / str(max(committed))).read_text().splitlines()
    watermark = datetime.fromtimestamp(json.loads(state)["batchWatermarkMs"] / 1000, UTC)
    ends = _ends([json.loads(line) for line in offsets])
    return Batch(number=max(committed), rows=0, watermark=watermark, dropped_late=0, ends=ends)


def _ends(sources: Sequence[dict[str, dict[str, int]] | None]) -> Offsets:
    """Each source says {topic: {partition: offset}}."""
    return {
        f"{topic}-{partition}": offset
        for source in sources
        for topic, offsets in (source or {}).items()
        for partition, offset in offsets.items()
    }


def _has_read(batch: Batch | None, ends: Offsets) -> bool:
    return batch is not None and all(batch.ends.get(partition, 0) >= end for partition, end in ends.items())
