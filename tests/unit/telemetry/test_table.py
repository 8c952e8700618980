"""The table of instruments, and Prometheus' text of what they say."""

import re

import pytest
from ottla.telemetry.core.exposition import LABEL_CHARACTERS_MAX, text
from ottla.telemetry.core.table import TABLE, Instrument, Kind

NAME = re.compile(r"[a-z][a-z0-9_]*")


def test_names_are_unique_and_as_prometheus_wants_them() -> None:
    assert len({one.name for one in TABLE}) == len(TABLE)
    for one in TABLE:
        assert NAME.fullmatch(one.name) and not one.name.endswith("_total"), one.name
        assert all(NAME.fullmatch(label) for label in one.labels), one.name
        assert one.help.endswith(".") and one.unit, one.name


def test_a_counter_and_a_gauge() -> None:
    counter = Instrument("requests", Kind.COUNTER, "{request}", "How many.", ["request"])
    gauge = Instrument("lag_seconds", Kind.GAUGE, "s", "How late.")
    assert text([(counter, [({"request": "Fetch"}, 3)]), (gauge, [({}, 0.25)])]).splitlines() == [
        "# HELP requests_total How many.",
        "# TYPE requests_total counter",
        'requests_total{request="Fetch"} 3',
        "# HELP lag_seconds How late.",
        "# TYPE lag_seconds gauge",
        "lag_seconds 0.25",
    ]


@pytest.mark.parametrize(
    ("value", "written"),
    [('a"b', r"a\"b"), ("a\\b", r"a\\b"), ("a\nb", r"a\nb"), ("x" * 5000, "x" * LABEL_CHARACTERS_MAX)],
)
def test_label_values_are_escaped_and_cut(value: str, written: str) -> None:
    gauge = Instrument("up", Kind.GAUGE, "1", "Up.", ["who"])
    assert text([(gauge, [({"who": value}, 1)])]).splitlines()[-1] == f'up{{who="{written}"}} 1'
