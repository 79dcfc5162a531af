"""At which rate copies are throttled that adapt to how the rest of the cluster is doing.

As TCP does with congestion: while everything is well the rate doubles up to where it was bad the
last time, and rises in even steps from there; as soon as something is bad it is halved. Between
good and bad it stays, and so it does while one of both is not known. After a pause it begins at the
minimum again (RFC 5681, 4.1). Each change is a write of configurations that brokers have to read:
so there are bounds in time, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from regent.model.partition import TopicPartition
from regent.resources.partition_reassignment import AdaptiveThrottle

LOWERED_AFTER_S: Final = 20.0
"""A rate is not lowered again before this time: brokers take some seconds to follow."""

RAISED_AFTER_S: Final = 30.0
"""A rate is raised when everything has been well for this time, at that rate."""

IDLE_S: Final = 60.0
"""When nothing was copied for this time, what the rate was says nothing about the cluster any more.
Between two batches it is shorter."""

CHECKED_EVERY_S: Final = 5.0

_STEPS: Final = 10
"""Of even size, from the minimum to the maximum. None more than doubles the rate."""

_CALM_LATENCY: Final = 0.5
"""Of the latency that counts as bad, up to which it is good."""


@dataclass(frozen=True, slots=True)
class Signals:
    """How the rest of the cluster is doing.

    Attributes:
        lagging: Partitions that do not move and lack a replica in their ISR that could be there.
        example: One of them.
        shrinks: How often such a replica has left an ISR since the process started.
        latency_s: Of the slowest broker that takes part; None: not known, or not asked.
        slowest: That broker.
    """

    lagging: int = 0
    example: TopicPartition | None = None
    shrinks: int = 0
    latency_s: float | None = None
    slowest: int | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """The present rate.

    Attributes:
        rate: Bytes a second.
        threshold: Up to here it doubles; from there it rises in steps.
        changed_at: Monotonic seconds of the last change.
        calm_since: Monotonic seconds since when everything is well; None: it is not.
        idle_since: Monotonic seconds since when nothing is copied; None: something is.
        shrinks: Those of the signals that were seen last.
        why: What the rate comes of, as a part of a sentence.
    """

    rate: int
    threshold: int
    changed_at: float
    calm_since: float | None
    idle_since: float | None
    shrinks: int
    why: str


def first_pace(
    bounds: AdaptiveThrottle, signals: Signals, *, present: int | None, at: float
) -> Pace:
    """The pace of copies that begin, or that another process has begun.

    Args:
        present: The rate of copies that are under way; None: none are.
        at: Monotonic seconds.
    """
    if present is None:
        rate, threshold, why = bounds.minimum, bounds.maximum, "it begins at the minimum"
    else:
        rate = threshold = _within(bounds, present)
        why = "as it was found"
    return Pace(rate, threshold, at, None, None, signals.shrinks, why)


def next_pace(pace: Pace, bounds: AdaptiveThrottle, signals: Signals, *, at: float) -> Pace:
    """The pace of copies after a look at the signals.

    Args:
        bounds: As they are now; the resource may have got others.
        at: Monotonic seconds.
    """
    pace = _bounded(pace, bounds, at=at)
    problem = _problem(bounds, signals, shrinks=pace.shrinks)
    pace = replace(pace, idle_since=None, shrinks=signals.shrinks)
    if problem is not None:
        return _slower(replace(pace, calm_since=None), bounds, problem, at=at)
    if not _is_calm(bounds, signals):
        return replace(pace, calm_since=None)
    if pace.calm_since is None:
        return replace(pace, calm_since=at)
    return _faster(pace, bounds, at=at)


def held_pace(pace: Pace, bounds: AdaptiveThrottle, signals: Signals, *, at: float) -> Pace:
    """The pace while nothing is copied: that all is well says nothing about copies then."""
    held = _bounded(pace, bounds, at=at)
    idle_since = at if held.idle_since is None else held.idle_since
    held = replace(held, calm_since=None, idle_since=idle_since, shrinks=signals.shrinks)
    if held.rate <= bounds.minimum or at - idle_since < IDLE_S:
        return held
    why = f"it begins at the minimum again, since nothing was copied for {IDLE_S:g} s"
    return replace(held, rate=bounds.minimum, threshold=held.rate, changed_at=at, why=why)


def _bounded(pace: Pace, bounds: AdaptiveThrottle, *, at: float) -> Pace:
    rate = _within(bounds, pace.rate)
    if rate == pace.rate:
        return pace
    return replace(pace, rate=rate, changed_at=at, why="spec.throttle has other bounds now")


def _slower(pace: Pace, bounds: AdaptiveThrottle, problem: str, *, at: float) -> Pace:
    if pace.rate <= bounds.minimum or at - pace.changed_at < LOWERED_AFTER_S:
        return pace
    rate = _within(bounds, pace.rate // 2)
    why = f"lowered from {pace.rate:,}, since {problem}"
    return replace(pace, rate=rate, threshold=rate, changed_at=at, why=why)


def _faster(pace: Pace, bounds: AdaptiveThrottle, *, at: float) -> Pace:
    assert pace.calm_since is not None
    well_since = max(pace.calm_since, pace.changed_at)
    if pace.rate >= bounds.maximum or at - well_since < RAISED_AFTER_S:
        return pace
    if pace.rate < pace.threshold:
        rate = min(2 * pace.rate, pace.threshold)
    else:
        step = max(1, (bounds.maximum - bounds.minimum) // _STEPS)
        rate = pace.rate + min(step, pace.rate)
    rate = _within(bounds, rate)
    why = f"raised from {pace.rate:,}, since all has been well for {RAISED_AFTER_S:g} s"
    return replace(pace, rate=rate, changed_at=at, why=why)


def _problem(bounds: AdaptiveThrottle, signals: Signals, *, shrinks: int) -> str | None:
    """What is bad, as a part of a sentence; None: nothing."""
    if signals.lagging == 1:
        return f"{signals.example}, which does not move, lacks a replica in sync"
    if signals.lagging:
        count = f"{signals.lagging:,} partitions that do not move lack replicas in sync"
        return f"{count}, {signals.example} among them"
    if signals.shrinks > shrinks:
        return "replicas of partitions that do not move have fallen out of sync"
    bound_ms, latency_s = bounds.maximum_latency_milliseconds, signals.latency_s
    if bound_ms is None or latency_s is None or 1000 * latency_s <= bound_ms:
        return None
    if math.isinf(latency_s):
        return f"broker {signals.slowest} does not answer"
    return f"broker {signals.slowest} takes {1000 * latency_s:.0f} ms to answer"


def _is_calm(bounds: AdaptiveThrottle, signals: Signals) -> bool:
    bound_ms, latency_s = bounds.maximum_latency_milliseconds, signals.latency_s
    if bound_ms is None:
        return True
    return latency_s is not None and 1000 * latency_s <= _CALM_LATENCY * bound_ms


def _within(bounds: AdaptiveThrottle, rate: int) -> int:
    return min(bounds.maximum, max(bounds.minimum, rate))
