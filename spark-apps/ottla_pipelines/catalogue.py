"""The pipelines. Importing this is cheap: PySpark is imported when one is run."""

from dataclasses import dataclass

__all__ = ["PIPELINES", "Pipeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    name: str
    summary: str
    module: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


PIPELINES = {
    pipeline.name: pipeline
    for pipeline in (
        Pipeline(
            name="sessions",
            summary="Clicks of each user, joined into sessions by event time; late clicks within the watermark count.",
            module="ottla_pipelines.sessions",
            reads=("clicks",),
            writes=("sessions-result", "clicks-dead-letter"),
        ),
    )
}
