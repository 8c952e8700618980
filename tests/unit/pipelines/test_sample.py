"""Samples from a seed, their answer, and how a feeder goes on after an interruption."""

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla_pipelines.sample.answer import Session, closed_sessions, differences, sessions_of
from ottla_pipelines.sample.clicks import (
    COMPLETE_AT,
    GAP,
    LATENESS,
    PARTITIONS,
    Click,
    SampleRecord,
    make_waves,
)
from ottla_pipelines.sample.feed import CHUNK_SPAN, _chunks, _missing

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_a_seed_gives_the_same_records_and_another_seed_others() -> None:
    assert make_waves(seed=1, events=1000) == make_waves(seed=1, events=1000)
    assert make_waves(seed=1, events=1000) != make_waves(seed=2, events=1000)


@pytest.mark.parametrize("events", [100, 999, 20_000])
def test_every_kind_of_record_is_there(events: int) -> None:
    first, second = make_waves(seed=3, events=events)
    assert len(first) + len(second) == events
    assert sum(record.click is None for record in first) == events // 100
    assert sum(not record.counts and record.click is not None for record in second) == events // 50
    clicks = [record.click for record in first if record.click is not None]
    assert any(later.time < earlier.time for earlier, later in itertools.pairwise(clicks)), "none is late"
    assert {record.partition for record in first} == set(range(PARTITIONS))


def test_too_few_events_are_refused() -> None:
    with pytest.raises(ValueError, match="99 events are too few"):
        make_waves(seed=1, events=99)


@pytest.mark.parametrize("seed", range(20))
def test_clicks_that_count_are_in_time_whatever_a_batch_holds(seed: int) -> None:
    """A reader may be ahead in other partitions by a chunk; even then no session of theirs is closed."""
    for wave in make_waves(seed=seed, events=2000):
        newest = datetime.min.replace(tzinfo=UTC)
        for record in wave[:-1]:
            if record.click is not None and record.counts:
                newest = max(newest, record.click.time)
                assert record.click.time + GAP > newest + CHUNK_SPAN - LATENESS


def test_clicks_that_are_too_late_are_behind_the_first_closing_click() -> None:
    first, second = make_waves(seed=5, events=5000)
    closing = first[-1].click
    assert closing is not None
    late = [record.click for record in second if record.click is not None and not record.counts]
    assert late and all(click.time + GAP <= closing.time - LATENESS for click in late)
    counted = closed_sessions([*first, *second])
    also_late = sessions_of([record.click for record in (*first, *second) if record.click is not None])
    assert not {session for session in also_late if "/too-late" in session.pages} & counted


def test_everything_but_the_last_closing_click_is_out_when_the_sample_is_complete() -> None:
    waves = make_waves(seed=4, events=1000)
    records = [record for wave in waves for record in wave]
    last = records[-1].click
    assert last is not None and last.time - LATENESS >= COMPLETE_AT
    clicks = [record.click for record in records if record.click is not None and record.counts]
    out = closed_sessions(records)
    assert set(sessions_of(clicks)) - out == {Session(last.user, last.time, last.time + GAP, 1, ("/",))}
    assert all(session.end <= COMPLETE_AT for session in out)


def test_differences_name_what_is_missing_and_what_is_too_much() -> None:
    right, wrong = (Session("u", NOON, NOON + GAP, clicks, ("/",)) for clicks in (1, 2))
    assert differences({right}, {right}) == []
    assert [text.split(":")[0] for text in differences({right}, {wrong})] == ["missing", "unexpected"]


@given(there=st.lists(st.integers(0, 30), min_size=PARTITIONS, max_size=PARTITIONS))
@settings(max_examples=50, deadline=None)
def test_an_interrupted_feeder_goes_on_where_each_partition_ends(there: list[int]) -> None:
    wave, _ = make_waves(seed=1, events=150)
    missing = _missing(wave, dict(enumerate(there)))
    for partition in range(PARTITIONS):
        own = [record for record in wave if record.partition == partition]
        assert [record for record in missing if record.partition == partition] == own[there[partition] :]


def test_chunks_keep_the_order_and_end_before_a_jump_in_time() -> None:
    wave, _ = make_waves(seed=1, events=1000)
    chunks = list(_chunks(wave))
    assert [record for chunk in chunks for record in chunk] == list(wave)
    assert chunks[-1] == [wave[-1]], "the closing click is sent when all before it is acknowledged"
    for chunk in chunks:
        times = [record.click.time for record in chunk if record.click is not None and record.counts]
        assert max(times) - times[0] <= CHUNK_SPAN if times else True


def test_chunks_hold_malformed_records_too() -> None:
    bad = SampleRecord(partition=0, key=None, value=None, click=None, counts=False)
    good = [
        SampleRecord(partition=0, key=None, value=b"", click=Click(NOON + timedelta(hours=n), "u", "/"), counts=True)
        for n in range(2)
    ]
    assert Counter(map(len, _chunks([bad, good[0], bad, good[1], bad]))) == {3: 1, 2: 1}
