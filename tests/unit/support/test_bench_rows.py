"""The verdicts of the benchmark: medians, goals, and the excuse of a client that was the limit."""

from statistics import median

import pytest

from bench.compare import changes
from bench.report import limits
from bench.results import markdown
from bench.rows import Goal, Reading, make_rows, worst

AT_LEAST, AT_MOST = Goal(at_least=1.2), Goal(at_most=0.5)
HELD = Goal(at_least=9900, on_ratio=False)


def readings(name: str, goal: Goal | None, *values: float, limited_by: str = "") -> list[Reading]:
    return [Reading(name, "MB/s", value, goal, limited_by) for value in values]


def test_medians_and_ratio() -> None:
    (row,) = make_rows({"kafka": readings("a", AT_LEAST, 10, 50, 20), "ottla": readings("a", AT_LEAST, 90, 30, 31)})
    assert (row.kafka, row.ottla, row.ratio, row.ok) == (20, 31, 1.55, True)
    expected = {"name", "unit", "kafka", "ottla", "ratio", "goal", "limited_by", "differs", "ok"}
    assert set(row.as_json()) == expected


def test_short_of_either_kind_of_goal() -> None:
    assert not make_rows({"kafka": readings("a", AT_LEAST, 10), "ottla": readings("a", AT_LEAST, 11)})[0].ok
    assert not make_rows({"kafka": readings("a", AT_MOST, 10), "ottla": readings("a", AT_MOST, 6)})[0].ok
    assert make_rows({"kafka": readings("a", AT_MOST, 10), "ottla": readings("a", AT_MOST, 5)})[0].ok


def test_a_client_at_its_limit_excuses_only_when_it_is_so_with_both_brokers() -> None:
    limited = readings("a", AT_LEAST, 10, limited_by="client (busiest thread 99%)")
    waiting = readings("a", AT_LEAST, 10, limited_by="broker (busiest thread 40%)")
    both = make_rows({"kafka": limited, "ottla": limited})
    assert both[0].excused and both[0].ok and worst(both) is None and limits(both[0]) == "client"
    for kafka, ottla in ((waiting, limited), (limited, waiting), (readings("a", AT_LEAST, 10), limited)):
        rows = make_rows({"kafka": kafka, "ottla": ottla})
        assert not rows[0].excused and not rows[0].ok and worst(rows) is rows[0]
    (row,) = make_rows({"kafka": waiting, "ottla": limited})
    assert limits(row) == "kafka broker, ottla client"
    assert row.limited_by.startswith("kafka: broker (") and "; ottla: client (" in row.limited_by


def test_what_differs_is_told_with_the_row() -> None:
    reading = Reading("a", "MB", 1.0, differs="-Xms")
    (row,) = make_rows({"kafka": [reading], "ottla": [reading]})
    assert row.as_json()["differs"] == "-Xms"


def test_the_results_say_when_where_and_what_differs_beside_each_figure() -> None:
    kafka = [Reading("a", "MB", 10.0, AT_MOST, differs="-Xms"), *readings("b", AT_LEAST, 10)]
    ottla = [Reading("a", "MB", 1.0, AT_MOST, differs="-Xms"), *readings("b", AT_LEAST, 11)]
    text = markdown(make_rows({"kafka": kafka, "ottla": ottla}), date="2026-01-02", where="2 cores", run="commit abc")
    assert "2026-01-02, commit abc; 2 cores" in text
    assert "| a | MB | 10 | 1 | 0.10 | <= 0.5 |  | a | true |" in text
    assert "| b | MB/s | 10 | 11 | 1.10 | >= 1.2 |  |  | false |" in text
    assert "- a: -Xms" in text


@pytest.mark.parametrize(
    ("unit", "old", "new", "verdict"),
    [
        ("MB/s", [100, 101, 102], [104, 105, 106], "same"),
        ("MB/s", [100, 101, 102], [110, 111, 112], "better"),
        ("MB/s", [100, 101, 102], [90, 91, 92], "worse"),
        ("MB/s", [80, 101, 120], [90, 91, 92], "same"),
        ("CPU s/GB", [1.0, 1.0, 1.01], [1.2, 1.2, 1.21], "worse"),
        ("ms", [10, 10, 10], [8, 8, 8], "better"),
        ("ms", [10, 10, 10], [80], "too few runs"),
    ],
)
def test_two_commits_differ_when_they_do_by_more_than_their_own_runs(
    unit: str, old: list[float], new: list[float], verdict: str
) -> None:
    found = {peer: [Reading("a", unit, one) for one in values] for peer, values in (("old", old), ("new", new))}
    (row,) = changes(found)
    assert (row.verdict, row.old, row.new) == (verdict, median(old), median(new))


def test_the_worst_is_farthest_from_its_goal() -> None:
    kafka = [*readings("fast", AT_LEAST, 10), *readings("cpu", AT_MOST, 10), *readings("free", None, 10)]
    ottla = [*readings("fast", AT_LEAST, 18), *readings("cpu", AT_MOST, 4), *readings("free", None, 1000)]
    found = worst(make_rows({"kafka": kafka, "ottla": ottla}))
    assert found is not None and found.name == "cpu"


def test_a_load_is_held_or_not_whatever_kafka_does() -> None:
    kafka = readings("load", HELD, 10_000)
    held = make_rows({"kafka": kafka, "ottla": readings("load", HELD, 9950)})
    assert held[0].ok and held[0].judged and worst(held) is None
    short = make_rows({"kafka": readings("load", HELD, 5000), "ottla": readings("load", HELD, 9800)})
    assert not short[0].ok and worst(short) is short[0]
    assert not make_rows({"ottla": readings("load", HELD, 9800)})[0].ok
