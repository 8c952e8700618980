"""Rates and pauses, as Kafka computes them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.security.core.rates import PAUSE_MS_MAX, SampledRate, TokenBucket


def make_rate() -> SampledRate:
    return SampledRate(samples=11, window_ms=1000)


def test_time_that_has_not_passed_counts_as_if_it_had() -> None:
    rate = make_rate()
    rate.record(1000, 0)
    assert rate.rate(0) == pytest.approx(100)  # 10 whole windows
    assert rate.rate(500) == pytest.approx(1000 / 10.5)


def test_old_samples_are_forgotten() -> None:
    rate = make_rate()
    rate.record(1000, 0)
    rate.record(500, 5000)
    assert rate.rate(10_999) == pytest.approx(1500 / 10.999)
    assert rate.rate(11_000) == pytest.approx(500 / 10)
    assert rate.rate(16_000) == 0
    assert rate.is_idle(16_000)


def test_the_pause_brings_the_rate_down_to_the_limit() -> None:
    rate = make_rate()
    rate.record(1500, 0)
    pause_ms = rate.pause_ms(100, 0)
    assert pause_ms == 5000  # 1500 in 10 s are 150 per second; in 15 s they are 100
    assert rate.pause_ms(200, 0) == 0


@settings(deadline=None)
@given(st.integers(1000, 100_000), st.lists(st.integers(1, 5000), min_size=50, max_size=200))
def test_who_pauses_as_told_keeps_the_limit(limit: int, sizes: list[int]) -> None:
    """Over a long run, whatever the sizes: never more than the limit, apart from what the windows may hold."""
    rate, now_ms = make_rate(), 0
    for size in sizes:
        rate.record(size, now_ms)
        now_ms += rate.pause_ms(limit, now_ms)
    assert sum(sizes) <= 1.1 * limit * (now_ms / 1000 + 11) + 2 * max(sizes)


def test_what_is_taken_back_does_not_count() -> None:
    rate = make_rate()
    rate.record(1000, 0)
    rate.record(-1000, 10)
    assert rate.rate(10) == 0


def test_a_bucket_starts_full_and_fills_again() -> None:
    bucket = TokenBucket(burst_s=10)
    bucket.take(100, 10, 5)
    assert bucket.pause_ms(10, 5) == 0
    bucket.take(50, 10, 5)
    assert bucket.pause_ms(10, 5) == 5000
    assert bucket.pause_ms(10, 2005) == 3000
    assert bucket.pause_ms(10, 5005) == 0


def test_a_bucket_saves_up_only_so_much() -> None:
    bucket = TokenBucket(burst_s=2)
    bucket.take(0, 10, 0)
    bucket.take(21, 10, 1_000_000)
    assert bucket.pause_ms(10, 1_000_000) == 100


@pytest.mark.parametrize("limit", [5e-324, 1e-320, 1e-7])
def test_a_limit_near_zero_gives_the_longest_pause(limit: float) -> None:
    """Infinity has no whole milliseconds."""
    rate, bucket = make_rate(), TokenBucket(burst_s=10)
    rate.record(1000, 0)
    bucket.take(1000, limit, 0)
    assert rate.pause_ms(limit, 0) == bucket.pause_ms(limit, 0) == PAUSE_MS_MAX
