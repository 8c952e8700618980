"""The checker of copies finds what it is there to find: hand-made bad histories."""

from dataclasses import replace

import pytest
from support.copy_history import Copied, Outcome, aborted_reads, copy_anomalies
from support.history import Read

TOTALS = 2
GOOD = Copied(
    source={0: [b"a", b"b c", b"d"], 1: [b"x"]},
    reads=[
        Read(0, 0, b"one copy 0 a"),
        Read(0, 1, b"one copy 1 b c"),
        Read(1, 0, b"one copy 0 x"),
        Read(TOTALS, 0, b"one total 3"),
        Read(0, 7, b"three copy 2 d"),
        Read(TOTALS, 3, b"three total 1"),
    ],
    outcomes={"one": Outcome.COMMITTED, "two": Outcome.ABORTED, "three": Outcome.OPEN, "four": Outcome.OPEN},
    offsets={0: 3, 1: 1},
)


def kinds(copied: Copied) -> set[str]:
    return {anomaly.kind for anomaly in copy_anomalies(copied)}


def without(*values: bytes) -> Copied:
    return replace(GOOD, reads=[read for read in GOOD.reads if read.value not in values])


def also(*reads: Read) -> Copied:
    return replace(GOOD, reads=[*GOOD.reads, *reads])


def test_a_good_history_has_no_anomaly() -> None:
    assert copy_anomalies(GOOD) == []


def test_an_open_attempt_may_be_wholly_missing_when_offsets_say_so() -> None:
    assert copy_anomalies(replace(without(b"three copy 2 d", b"three total 1"), offsets={0: 2, 1: 1})) == []


@pytest.mark.parametrize(
    ("copied", "expected"),
    [
        (without(b"three copy 2 d", b"three total 1"), {"lost-copy"}),
        (replace(GOOD, offsets={0: 2, 1: 1}), {"offset-behind"}),
        (replace(GOOD, offsets={0: 3}), {"offset-behind"}),
        (replace(GOOD, offsets={0: 3, 1: 1, 3: 1}), {"lost-copy"}),
        (without(b"one copy 1 b c"), {"torn", "lost-copy"}),
        (without(b"one total 3"), {"torn"}),
        (also(Read(TOTALS, 9, b"one total 3")), {"torn"}),
        (replace(GOOD, outcomes={**GOOD.outcomes, "three": Outcome.ABORTED}), {"aborted-read"}),
        (replace(GOOD, outcomes={**GOOD.outcomes, "four": Outcome.COMMITTED}), {"lost-transaction"}),
        (also(Read(TOTALS, 9, b"five total 0")), {"never-sent"}),
        (also(Read(0, 9, b"four copy 0 a"), Read(TOTALS, 9, b"four total 1")), {"duplicate"}),
        (also(Read(0, 9, b"four copy 3 e"), Read(TOTALS, 9, b"four total 1")), {"never-sent", "offset-behind"}),
        (replace(GOOD, source={0: [b"a", b"b c", b"other"], 1: [b"x"]}), {"never-sent"}),
    ],
    ids=[
        "lost",
        "offset-behind",
        "no-offset",
        "offset-of-nothing",
        "torn",
        "no-total",
        "two-totals",
        "aborted",
        "lost-transaction",
        "stranger",
        "doubled",
        "from-nowhere",
        "changed",
    ],
)
def test_bad_copies(copied: Copied, expected: set[str]) -> None:
    assert kinds(copied) == expected


def test_the_order_of_the_source_is_kept() -> None:
    swapped = {0: Read(0, 1, b"one copy 0 a"), 1: Read(0, 0, b"one copy 1 b c")}
    reads = [swapped.get(index, read) for index, read in enumerate(GOOD.reads)]
    assert kinds(replace(GOOD, reads=reads)) == {"reordered"}


def test_a_reader_along_the_way_must_not_see_what_is_aborted_later() -> None:
    assert aborted_reads(GOOD.reads, GOOD.outcomes) == []
    assert [a.kind for a in aborted_reads(GOOD.reads, {"one": Outcome.ABORTED})] == ["aborted-read"]
