"""The token bucket of controller mutation quotas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.endpoint import quotas
from regent.endpoint.quotas import BucketKey, Buckets, MutationQuotas, QuotasUnavailableError
from regent.endpoint.quotas_bucket import (
    BURST_S,
    MAX_THROTTLE_S,
    TokenBucket,
    full,
    refilled,
    seconds_to_pay_off,
    taken,
)
from regent.model.errors import ZooKeeperUnavailableError
from regent.simulation.zookeeper import InMemoryZooKeeper
from tests.simulation.zookeeper_ports import InMemoryZooKeeperPort
from tests.support.clock import Clock

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
def test_nobody_exceeds_rate_and_burst(rate: float, steps: list[tuple[float, int]]) -> None:
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
def test_debt_ends_with_the_time_to_wait(rate: float, steps: list[tuple[float, int]]) -> None:
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


def test_full_buckets_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "_MAX_BUCKETS", 10)
    clock = Clock()
    buckets = Buckets(clock)
    for number in range(100):
        buckets.take(BucketKey(None, str(number)), 1.0, 1)
        clock.now_s += 1.0
    assert len(buckets) <= 10
    for number in range(100, 120):
        buckets.take(BucketKey(None, str(number)), 1.0, 20)
    assert len(buckets) == 20  # who owes something is not forgotten


def test_buckets_unused_for_long_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a rate of 0 none is ever full again, and each client may have another id."""
    monkeypatch.setattr(quotas, "_MAX_BUCKETS", 10)
    clock = Clock()
    buckets = Buckets(clock)
    for number in range(1_000):
        buckets.take(BucketKey(None, str(number)), 0.0, 1)
        clock.now_s += 600.0
    assert len(buckets) <= 20


async def test_without_zookeeper_nobody_can_say() -> None:
    class Unavailable(InMemoryZooKeeperPort):
        async def get_data(self, paths: Any, *, watch: bool = False) -> Any:
            raise ZooKeeperUnavailableError("gone")

    port = Unavailable(InMemoryZooKeeper().connect())
    with pytest.raises(QuotasUnavailableError, match="gone"):
        await MutationQuotas(port).quota_of("User:alice", "tool", is_strict=True)
