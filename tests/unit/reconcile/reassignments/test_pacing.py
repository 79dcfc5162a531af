"""Throttles that adapt: within their bounds, down at once, up with patience."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.pacing import (
    CHECKED_EVERY_S,
    LOWERED_AFTER_S,
    RAISED_AFTER_S,
    Pace,
    Signals,
    first_pace,
    held_pace,
    next_pace,
)
from regent.resources.partition_reassignment import AdaptiveThrottle

BOUNDS = AdaptiveThrottle(minimum=1_000_000, maximum=100_000_000)
WITH_LATENCY = BOUNDS.model_copy(update={"maximum_latency_milliseconds": 100})
WELL = Signals()
BAD = Signals(lagging=2, example=TopicPartition("orders", 7))


def begun(present: int | None = None) -> Pace:
    """Of copies that have begun while all was well."""
    return after(first_pace(BOUNDS, WELL, present=present, at=0.0), (0.0, WELL))


def after(pace: Pace, *steps: tuple[float, Signals], bounds: AdaptiveThrottle = BOUNDS) -> Pace:
    for at, signals in steps:
        pace = next_pace(pace, bounds, signals, at=at)
    return pace


def test_it_begins_at_the_minimum_or_where_another_process_was() -> None:
    assert begun().rate == BOUNDS.minimum
    assert begun(7_000_000).rate == 7_000_000
    assert begun(5).rate == BOUNDS.minimum
    assert begun(10**12).rate == BOUNDS.maximum


def test_it_doubles_while_all_is_well() -> None:
    early = after(begun(), (RAISED_AFTER_S - 1, WELL))
    assert early.rate == 1_000_000
    raised = after(early, (RAISED_AFTER_S, WELL))
    assert raised.rate == 2_000_000
    assert raised.why == "raised from 1,000,000, since all has been well for 30 s"
    assert after(raised, (2 * RAISED_AFTER_S, WELL)).rate == 4_000_000


def test_it_is_halved_when_something_is_bad_and_rises_in_steps_from_there() -> None:
    pace = replace(begun(), rate=64_000_000)
    lowered = after(pace, (LOWERED_AFTER_S, BAD))
    assert lowered.rate == 32_000_000
    assert lowered.why == (
        "lowered from 64,000,000, since 2 partitions that do not move lack replicas in sync, "
        "orders-7 among them"
    )
    well_again = after(lowered, (100, WELL), (100 + RAISED_AFTER_S, WELL))
    assert well_again.rate == 32_000_000 + 9_900_000


def test_a_step_at_most_doubles_the_rate() -> None:
    """The range may be wide: a tenth of it is many times the minimum."""
    lowest = after(begun(2_000_000), (20, BAD), (40, BAD))
    assert lowest.rate == BOUNDS.minimum
    assert after(lowest, (100, WELL), (130, WELL)).rate == 2 * BOUNDS.minimum


def test_after_a_pause_it_begins_at_the_minimum_and_soon_is_where_it_was() -> None:
    pace = replace(begun(), rate=64_000_000, threshold=8_000_000)
    between_batches = held_pace(held_pace(pace, BOUNDS, WELL, at=100), BOUNDS, WELL, at=159)
    assert between_batches.rate == 64_000_000
    copying = after(between_batches, (161, WELL))
    assert copying.rate == 64_000_000
    assert held_pace(copying, BOUNDS, WELL, at=170).rate == 64_000_000
    paused = held_pace(between_batches, BOUNDS, WELL, at=160)
    assert paused.rate == BOUNDS.minimum
    assert paused.why == "it begins at the minimum again, since nothing was copied for 60 s"
    assert held_pace(paused, BOUNDS, WELL, at=1000) == paused
    again = after(paused, *((1000.0 + at, WELL) for at in range(0, 181, 5)))
    assert again.rate == 64_000_000


def test_a_replica_that_was_out_of_sync_for_a_moment_counts() -> None:
    pace = after(begun(8_000_000), (20, Signals(shrinks=3)))
    assert pace.rate == 4_000_000
    assert "have fallen out of sync" in pace.why
    assert after(pace, (25, Signals(shrinks=3)), (41, Signals(shrinks=3))).rate == 4_000_000


@pytest.mark.parametrize(
    ("latency_s", "rate", "why"),
    [
        (0.101, 4_000_000, "since broker 3 takes 101 ms to answer"),
        (math.inf, 4_000_000, "since broker 3 does not answer"),
        (0.1, 8_000_000, "as it was found"),
    ],
)
def test_latency_counts_if_there_is_a_bound(latency_s: float, rate: int, why: str) -> None:
    signals = Signals(latency_s=latency_s, slowest=3)
    pace = next_pace(begun(8_000_000), WITH_LATENCY, signals, at=20)
    assert pace.rate == rate
    assert why in pace.why
    assert next_pace(begun(8_000_000), BOUNDS, signals, at=20).rate == 8_000_000


def test_as_long_as_the_latency_is_not_known_it_stays() -> None:
    steps = tuple((float(at), Signals()) for at in range(0, 600, 5))
    assert after(begun(8_000_000), *steps, bounds=WITH_LATENCY).rate == 8_000_000


def test_between_good_and_bad_it_stays() -> None:
    """Else a latency near its bound would have it rise and fall without end."""
    between, good = Signals(latency_s=0.06, slowest=3), Signals(latency_s=0.05, slowest=3)
    steps = tuple((float(at), between) for at in range(0, 600, 5))
    pace = after(begun(8_000_000), *steps, bounds=WITH_LATENCY)
    assert pace.rate == 8_000_000
    assert after(pace, (600, good), (629, good), bounds=WITH_LATENCY).rate == 8_000_000
    assert after(pace, (600, good), (630, good), bounds=WITH_LATENCY).rate > 8_000_000


def test_other_bounds_count_at_once() -> None:
    narrow = AdaptiveThrottle(minimum=2_000_000, maximum=3_000_000)
    assert after(begun(), (1, WELL), bounds=narrow).rate == 2_000_000
    pace = after(begun(50_000_000), (1, BAD), bounds=narrow)
    assert pace.rate == 3_000_000
    assert pace.why == "spec.throttle has other bounds now"


_SIGNALS = st.builds(
    Signals,
    lagging=st.sampled_from([0, 0, 0, 3]),
    example=st.just(TopicPartition("orders", 7)),
    shrinks=st.integers(0, 2),
    latency_s=st.sampled_from([None, 0.001, 0.06, 0.2, math.inf]),
    slowest=st.just(3),
)


@given(
    st.integers(1024, 10**9),
    st.integers(0, 10**9),
    st.none() | st.integers(0, 10**10),
    st.lists(st.tuples(st.floats(0.0, 60.0), _SIGNALS), max_size=60),
)
def test_it_keeps_its_bounds_in_rate_and_time_whatever_happens(
    minimum: int, width: int, present: int | None, steps: list[tuple[float, Signals]]
) -> None:
    bounds = AdaptiveThrottle(
        minimum=minimum, maximum=minimum + width, maximum_latency_milliseconds=100
    )
    at = 0.0
    pace = first_pace(bounds, Signals(), present=present, at=at)
    last_change, last_bad = at, -math.inf
    for pause, signals in steps:
        at += pause
        is_bad = bool(
            signals.lagging
            or signals.shrinks > pace.shrinks
            or (signals.latency_s is not None and signals.latency_s > 0.1)
        )
        following = next_pace(pace, bounds, signals, at=at)
        assert bounds.minimum <= following.rate <= bounds.maximum
        last_bad = at if is_bad else last_bad
        if following.rate != pace.rate:
            assert at - last_change >= LOWERED_AFTER_S
            assert (following.rate < pace.rate) is is_bad
            if following.rate > pace.rate:
                assert at - last_bad >= RAISED_AFTER_S
            last_change = at
        pace = following


@given(st.integers(1_500_000, 90_000_000), st.integers(0, 100))
def test_it_settles_below_what_the_cluster_can_take(capacity: int, seconds: int) -> None:
    """A cluster whose replicas lag as soon as copies take more than it has, for a minute."""
    at, bad_until = float(seconds), 0.0
    pace = first_pace(BOUNDS, WELL, present=None, at=at)
    rates: list[int] = []
    for _ in range(2000):
        at += CHECKED_EVERY_S
        if pace.rate > capacity:
            bad_until = at + 60
        pace = next_pace(pace, BOUNDS, BAD if at < bad_until else WELL, at=at)
        rates.append(pace.rate)
    later = rates[1000:]
    changes = sum(one != other for one, other in itertools.pairwise(later))
    assert max(later) <= capacity + (BOUNDS.maximum - BOUNDS.minimum) // 10 + 1
    assert sum(later) / len(later) >= min(capacity, BOUNDS.maximum) / 12
    assert changes <= len(later) * CHECKED_EVERY_S / LOWERED_AFTER_S
