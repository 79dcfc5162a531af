"""What Python's collector of circles looks at, and when."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from regent.runtime.collector import INTERVAL_S, Collector
from tests.unit.kube.jumping_clock import elapse, run


class Circle:
    """Keeps itself in memory."""

    def __init__(self) -> None:
        self.itself = self


def old_circle() -> weakref.ref[Circle]:
    """A circle that has lived for a while, and that nobody needs any more."""
    circle = Circle()
    gc.collect()
    return weakref.ref(circle)


@pytest.mark.usefixtures("without_the_collector")
@pytest.mark.parametrize(
    ("time_share", "looks_again"),
    [
        pytest.param(1.0, True, id="a look that took no time to speak of"),
        pytest.param(1e-9, False, id="the rest is longer where the look took long"),
    ],
)
def test_what_connections_left_long_ago_is_freed_at_a_quiet_moment(
    monkeypatch: pytest.MonkeyPatch, *, time_share: float, looks_again: bool
) -> None:
    """How long a look takes in this process nobody knows."""
    monkeypatch.setattr("regent.runtime.collector.TIME_SHARE", time_share)
    is_quiet = False
    left = old_circle()

    async def scenario() -> None:
        nonlocal is_quiet
        collector = Collector()
        task = asyncio.create_task(collector.collect_at_quiet_moments(lambda: is_quiet))
        await elapse(2 * INTERVAL_S)
        assert left() is not None
        is_quiet = True
        await elapse(1.0)
        assert left() is None
        again = old_circle()
        await elapse(2 * INTERVAL_S)
        assert (again() is None) is looks_again
        task.cancel()

    run(scenario())


@pytest.mark.usefixtures("without_the_collector")
def test_nothing_is_looked_for_while_a_cluster_is_read() -> None:
    left = old_circle()

    async def scenario() -> None:
        collector = Collector()
        task = asyncio.create_task(collector.collect_at_quiet_moments(lambda: True))
        with collector.paused():
            await elapse(2 * INTERVAL_S)
            assert left() is not None
        await elapse(1.0)
        assert left() is None
        task.cancel()

    run(scenario())
