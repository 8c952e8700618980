"""Prometheus' text format, version 0.0.4. Pure.

By hand, because OpenTelemetry's exporter for Prometheus has beta releases only, and brings a web server and a registry
of its own for what is one line per number.
"""

from collections.abc import Iterable, Mapping

from ottla.telemetry.core.table import Instrument, Kind

__all__ = ["CONTENT_TYPE", "LABEL_CHARACTERS_MAX", "text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LABEL_CHARACTERS_MAX = 200
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Point = tuple[Mapping[str, object], float]


def text(metrics: Iterable[tuple[Instrument, Iterable[Point]]]) -> str:
    lines: list[str] = []
    for instrument, points in metrics:
        name = f"{instrument.name}_total" if instrument.kind is Kind.COUNTER else instrument.name
        lines += (f"# HELP {name} {_escaped(instrument.help)}", f"# TYPE {name} {instrument.kind}")
        lines += (f"{name}{_labels(labels)} {_number(value)}" for labels, value in points)
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, object]) -> str:
    pairs = (f'{key}="{_escaped(str(value)[:LABEL_CHARACTERS_MAX])}"' for key, value in labels.items())
    return "{" + ",".join(pairs) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.translate(ESCAPES)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
