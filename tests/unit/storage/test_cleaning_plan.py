"""Which log is compacted next, as Kafka's LogCleanerManager decides it."""

import pytest
from ottla.storage.core.cleaning_plan import Due, LogFacts, SegmentFacts, dirtiest, due
from ottla.storage.core.settings import LogSettings

NOW = 1_000_000


def facts(*, checkpoint: int | None = None, stable: int = 100, limits: dict[str, object] | None = None) -> LogFacts:
    """Segments 0, 10, 20, 30 of 100 bytes each, one minute apart; the active one begins at 40 and ends at 50."""
    segments = [
        SegmentFacts(
            base_offset=10 * n, size=100, max_timestamp=NOW - 60_000 * (4 - n), first_timestamp=NOW - 60_000 * (5 - n)
        )
        for n in range(4)
    ]
    return LogFacts(
        settings=LogSettings(cleanup_policies=frozenset({"compact"}), **(limits or {})),  # type: ignore[arg-type]
        segments=segments,
        active_base=40,
        start_offset=0,
        end_offset=50,
        stable_offset=stable,
        checkpoint=checkpoint,
    )


def test_never_cleaned_is_all_dirty_up_to_the_active_segment() -> None:
    assert due(facts(), NOW) == Due(first_dirty=0, upto=40, ratio=1.0)


@pytest.mark.parametrize(("checkpoint", "ratio"), [(10, 0.75), (20, 0.5), (30, 0.25)])
def test_ratio_counts_bytes_and_must_exceed_the_setting(checkpoint: int, ratio: float) -> None:
    found = due(facts(checkpoint=checkpoint, limits={"min_cleanable_dirty_ratio": ratio - 0.01}), NOW)
    assert found == Due(first_dirty=checkpoint, upto=40, ratio=ratio)
    assert due(facts(checkpoint=checkpoint, limits={"min_cleanable_dirty_ratio": ratio}), NOW) is None


@pytest.mark.parametrize("checkpoint", [40, 45, 50])
def test_a_clean_log_is_not_due(checkpoint: int) -> None:
    assert due(facts(checkpoint=checkpoint, limits={"min_cleanable_dirty_ratio": 0.0}), NOW) is None


@pytest.mark.parametrize(("stable", "upto"), [(100, 40), (40, 40), (39, 30), (30, 30), (25, 20), (10, 10)])
def test_nothing_from_the_last_stable_offset_on(stable: int, upto: int) -> None:
    found = due(facts(stable=stable), NOW)
    assert found is not None and found.upto == upto


def test_nothing_below_the_last_stable_offset() -> None:
    assert due(facts(stable=5), NOW) is None


@pytest.mark.parametrize(("lag_ms", "upto"), [(0, 40), (59_999, 40), (60_001, 30), (130_000, 20), (200_000, 10)])
def test_min_lag_keeps_young_segments(lag_ms: int, upto: int) -> None:
    found = due(facts(limits={"min_compaction_lag_ms": lag_ms}), NOW)
    assert found is not None and found.upto == upto
    assert due(facts(limits={"min_compaction_lag_ms": 300_000}), NOW) is None


def test_max_lag_forces_a_log_that_is_not_dirty_enough() -> None:
    lazy = {"min_cleanable_dirty_ratio": 0.9, "max_compaction_lag_ms": 100_000}
    found = due(facts(checkpoint=30, limits=lazy), NOW)
    assert found is not None and found.ratio == 0.25
    assert due(facts(checkpoint=30, limits=lazy | {"max_compaction_lag_ms": 130_000}), NOW) is None


@pytest.mark.parametrize("checkpoint", [51, 10**9, -1])
def test_a_checkpoint_outside_the_log_says_nothing(checkpoint: int) -> None:
    assert due(facts(checkpoint=checkpoint), NOW) == Due(first_dirty=0, upto=40, ratio=1.0)


def test_the_dirtiest_comes_first() -> None:
    def at(ratio: float) -> Due:
        return Due(first_dirty=0, upto=1, ratio=ratio)

    assert dirtiest([None, at(0.6), at(0.9), at(0.7)]) == 2
    assert dirtiest([at(0.6), at(0.6)]) == 0
    assert dirtiest([None]) is None
    assert dirtiest([]) is None


def test_a_log_with_an_active_segment_only() -> None:
    empty = LogFacts(
        settings=LogSettings(),
        segments=(),
        active_base=0,
        start_offset=0,
        end_offset=9,
        stable_offset=9,
        checkpoint=None,
    )
    assert due(empty, NOW) is None
