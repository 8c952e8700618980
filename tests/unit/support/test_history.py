"""The checker finds what it is there to find: hand-made bad histories."""

import pytest
from support.history import OFFSET_UNKNOWN, Read, Send, anomalies, polled_anomalies

GOOD_SENDS = [
    Send("p", 0, b"a", 0),
    Send("p", 0, b"b", 1),
    Send("q", 0, b"c", 2),
    Send("p", 1, b"d", 0),
    Send("p", 0, b"e", None),
]
GOOD_READS = [Read(0, 0, b"a"), Read(0, 1, b"b"), Read(1, 0, b"d"), Read(0, 2, b"c")]


def kinds(sends: list[Send], reads: list[Read]) -> set[str]:
    return {anomaly.kind for anomaly in anomalies(sends, reads)}


def test_a_good_history_has_no_anomaly() -> None:
    assert anomalies(GOOD_SENDS, GOOD_READS) == []


def test_an_unacknowledged_record_may_be_there() -> None:
    assert anomalies(GOOD_SENDS, [*GOOD_READS, Read(0, 3, b"e")]) == []


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        ([read for read in GOOD_READS if read.value != b"b"], {"lost-write"}),
        ([*GOOD_READS, Read(0, 3, b"a")], {"duplicate", "nonmonotonic-send"}),
        ([*GOOD_READS, Read(0, 3, b"c")], {"duplicate"}),
        ([*GOOD_READS, Read(0, 3, b"stranger")], {"never-sent"}),
        ([*GOOD_READS, Read(0, 2, b"c")], {"nonmonotonic-poll"}),
        ([Read(0, 1, b"b"), Read(0, 0, b"a"), *GOOD_READS[2:]], {"nonmonotonic-poll"}),
        ([Read(0, 0, b"b"), Read(0, 1, b"a"), *GOOD_READS[2:]], {"nonmonotonic-send", "inconsistent-offsets"}),
        ([Read(0, 1, b"a"), Read(0, 2, b"b"), Read(0, 3, b"c"), Read(1, 0, b"d")], {"inconsistent-offsets"}),
        ([*GOOD_READS[:3], Read(1, 1, b"c")], {"lost-write", "never-sent"}),
    ],
    ids=["lost", "doubled", "doubled-other", "stranger", "read-twice", "poll-back", "reordered", "shifted", "moved"],
)
def test_bad_reads(reads: list[Read], expected: set[str]) -> None:
    assert kinds(GOOD_SENDS, reads) == expected


def test_two_values_at_one_offset() -> None:
    assert "inconsistent-offsets" in kinds(GOOD_SENDS, [*GOOD_READS, Read(0, 2, b"e")])


def test_acknowledged_without_a_place() -> None:
    somewhere = [*GOOD_SENDS, Send("p", 1, b"f", OFFSET_UNKNOWN)]
    assert anomalies(somewhere, [*GOOD_READS, Read(1, 1, b"f")]) == []
    assert kinds(somewhere, GOOD_READS) == {"lost-write"}


# What a consumer got while faults were on, against GOOD_READS as the log afterwards.
@pytest.mark.parametrize(
    ("polled", "expected"),
    [
        (GOOD_READS, set()),
        ([GOOD_READS[2], *GOOD_READS[:2], GOOD_READS[3]], set()),
        ([read for read in GOOD_READS if read.value != b"b"], {"poll-skip"}),
        (GOOD_READS[:3], {"unseen"}),
        ([read for read in GOOD_READS if read.partition == 0], {"unseen"}),
        ([], {"unseen"}),
        ([*GOOD_READS, GOOD_READS[3]], {"nonmonotonic-poll"}),
        ([GOOD_READS[1], GOOD_READS[0], *GOOD_READS[2:]], {"nonmonotonic-poll"}),
        ([*GOOD_READS, Read(0, 3, b"e")], {"lost-write"}),
        ([*GOOD_READS, Read(2, 0, b"e")], {"lost-write"}),
        ([Read(0, 0, b"e"), *GOOD_READS[1:]], {"inconsistent-offsets"}),
    ],
    ids=[
        "good", "other-interleaving", "skipped", "end-unseen", "partition-unseen", "nothing-seen", "twice", "back",
        "read-then-lost", "read-from-nowhere", "other-value",
    ],
)  # fmt: skip
def test_bad_polls(polled: list[Read], expected: set[str]) -> None:
    assert {anomaly.kind for anomaly in polled_anomalies(GOOD_READS, {"c": polled})} == expected


def test_each_consumer_is_judged_alone() -> None:
    (found,) = polled_anomalies(GOOD_READS, {"good": GOOD_READS, "bad": GOOD_READS[:3]})
    assert found.kind == "unseen" and found.detail.startswith("bad ")
