"""The pipelines, and what they need. Importing this is cheap: PySpark is imported when a pipeline is run."""

from dataclasses import dataclass

__all__ = ["JAVA_MISSING", "PIPELINES", "Pipeline"]

JAVA_MISSING = "Spark needs Java 17 or newer; install it (Debian: sudo apt-get install openjdk-17-jre-headless)"


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
