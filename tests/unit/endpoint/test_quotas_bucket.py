"""The token bucket of controller mutation quotas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.endpoint.quotas_bucket import (
    BURST_S,
    MAX_THROTTLE_S,
    TokenBucket,
    full,
    refilled,
    seconds_to_pay_off,
    taken,
)

RATES = st.floats(min_value=0.01, max_value=1e4)
STEPS = st.lists(
    st.tuples(st.floats(min_value=0, max_value=60), st.integers(min_value=0, max_value=500)),
    max_size=50,
)
"""Seconds of waiting, and what is asked for then."""


def test_a_bucket_holds_what_comes_in_eleven_seconds() -> None:
    bucket = full(5.0, now_s=100.0)
    assert bucket.tokens == 55.0
    assert refilled(bucket, 5.0, now_s=1_000.0).tokens == 55.0
    assert refilled(taken(bucket, 20, 5.0), 5.0, now_s=102.0).tokens == 45.0


def test_what_is_overdrawn_is_paid_off_at_the_rate() -> None:
    bucket = taken(full(5.0, now_s=0.0), 65, 5.0)
    assert seconds_to_pay_off(bucket, 5.0) == 2.0
    assert refilled(bucket, 5.0, now_s=1.0).tokens == -5.0
    assert seconds_to_pay_off(refilled(bucket, 5.0, now_s=2.0), 5.0) == 0.0


@pytest.mark.parametrize("rate", [0.0, 1e-9])
def test_the_time_to_wait_fits_into_an_answer(rate: float) -> None:
    assert seconds_to_pay_off(TokenBucket(-1e6, 0.0), rate) == MAX_THROTTLE_S


def test_a_lower_rate_counts_at_once() -> None:
    assert refilled(full(100.0, now_s=0.0), 1.0, now_s=0.0).tokens == BURST_S


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    bucket = taken(full(1.0, now_s=50.0), 11, 1.0)
    assert refilled(bucket, 1.0, now_s=50.0) == bucket
    assert refilled(bucket, 1.0, now_s=40.0) == bucket


@given(rate=RATES, steps=STEPS)
def test_nobody_gets_more_than_the_rate_beyond_the_bucket_and_one_request(
    rate: float, steps: list[tuple[float, int]]
) -> None:
    """Whatever is asked for and when, if what is below zero is refused."""
    now_s, bucket, granted, last = 0.0, full(rate, now_s=0.0), 0, 0
    for waiting_s, count in steps:
        now_s += waiting_s
        bucket = refilled(bucket, rate, now_s=now_s)
        assert bucket.tokens <= rate * BURST_S
        if bucket.tokens >= 0:
            bucket, granted, last = taken(bucket, count, rate), granted + count, count
        assert granted - last <= rate * (BURST_S + now_s) * (1 + 1e-9) + 1e-6


@given(rate=RATES, steps=STEPS)
def test_after_the_time_to_wait_nothing_is_owed_and_not_before(
    rate: float, steps: list[tuple[float, int]]
) -> None:
    now_s, bucket = 0.0, full(rate, now_s=0.0)
    for waiting_s, count in steps:
        now_s += waiting_s
        bucket = taken(refilled(bucket, rate, now_s=now_s), count, rate)
        owed_s = seconds_to_pay_off(bucket, rate)
        assert (owed_s > 0) is (bucket.tokens < 0)
        if 0 < owed_s < MAX_THROTTLE_S:
            assert refilled(bucket, rate, now_s=now_s + owed_s / 2).tokens < 0
            assert refilled(bucket, rate, now_s=now_s + owed_s).tokens == pytest.approx(0, abs=1e-3)


@given(rate=RATES, count=st.integers(min_value=0, max_value=500))
def test_what_is_given_back_was_never_taken(rate: float, count: int) -> None:
    bucket = full(rate, now_s=0.0)
    after = taken(taken(bucket, count, rate), -count, rate)
    assert after.tokens == pytest.approx(bucket.tokens)
