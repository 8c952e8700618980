"""Throttled copies: how much passes in which time, and who is meant."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.replica.core.throttle import UNLIMITED, TokenBucket, is_throttled

steps = st.lists(st.tuples(st.floats(0, 5), st.integers(1, 100_000)), min_size=1, max_size=50)


@settings(deadline=None)
@given(rate=st.integers(1, 1_000_000), steps=steps)
def test_over_any_time_no_more_passes_than_the_rate_a_burst_and_one_batch(rate, steps):
    bucket, now, passed, largest = TokenBucket(lambda: rate), 0.0, 0, 0
    for pause, size in steps:
        now += pause
        if bucket.wait_s(now) == 0:
            bucket.take(size, now)
            passed, largest = passed + size, max(largest, size)
    assert passed <= rate * (now + 1) + largest + 1


@settings(deadline=None)
@given(rate=st.integers(1, 1_000_000), size=st.integers(1, 10_000_000))
def test_after_the_wait_that_was_told_more_may_be_taken(rate, size):
    bucket = TokenBucket(lambda: rate)
    bucket.take(size, 0.0)
    wait_s = bucket.wait_s(0.0)
    assert (wait_s == 0) == (size < rate)
    assert bucket.wait_s(wait_s * 1.001 + 1e-6) == 0


def test_a_throttle_can_be_lifted_and_set_again():
    rate = 10
    bucket = TokenBucket(lambda: rate)
    bucket.take(1_000, 0.0)
    assert bucket.wait_s(0.0) > 0
    rate = UNLIMITED
    assert bucket.wait_s(0.1) == 0
    bucket.take(10**9, 0.1)
    rate = 10
    assert bucket.wait_s(0.2) == 0, "what was taken without a limit is not counted"
    rate = 0
    bucket.take(100, 0.2)
    assert bucket.wait_s(0.3) > 0, "nothing passes at rate 0, and nothing divides by it"


@pytest.mark.parametrize(
    ("listed", "throttled"), [((), False), (("*",), True), (("3:1", "4:2"), True), (("3:2", "13:1", "3:11"), False)]
)
def test_who_is_throttled(listed, throttled):
    assert is_throttled(listed, partition=3, broker_id=1) is throttled
