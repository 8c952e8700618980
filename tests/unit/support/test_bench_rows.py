"""The verdicts of the benchmark: medians, goals, and the excuse of a client that was the limit."""

from bench.rows import Goal, Reading, make_rows, worst

AT_LEAST, AT_MOST = Goal(at_least=1.2), Goal(at_most=0.5)
HELD = Goal(at_least=9900, on_ratio=False)


def readings(name: str, goal: Goal | None, *values: float, limited_by: str = "") -> list[Reading]:
    return [Reading(name, "MB/s", value, goal, limited_by) for value in values]


def test_medians_and_ratio() -> None:
    (row,) = make_rows({"kafka": readings("a", AT_LEAST, 10, 50, 20), "ottla": readings("a", AT_LEAST, 90, 30, 31)})
    assert (row.kafka, row.ottla, row.ratio, row.ok) == (20, 31, 1.55, True)
    assert set(row.as_json()) == {"name", "unit", "kafka", "ottla", "ratio", "goal", "limited_by", "ok"}


def test_short_of_either_kind_of_goal() -> None:
    assert not make_rows({"kafka": readings("a", AT_LEAST, 10), "ottla": readings("a", AT_LEAST, 11)})[0].ok
    assert not make_rows({"kafka": readings("a", AT_MOST, 10), "ottla": readings("a", AT_MOST, 6)})[0].ok
    assert make_rows({"kafka": readings("a", AT_MOST, 10), "ottla": readings("a", AT_MOST, 5)})[0].ok


def test_a_client_at_its_limit_excuses() -> None:
    limited = readings("a", AT_LEAST, 10, limited_by="client (busiest thread 99%)")
    rows = make_rows({"kafka": readings("a", AT_LEAST, 10), "ottla": limited})
    assert rows[0].ok and worst(rows) is None


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
