"""Parts that are started again: after growing pauses, and said while they are not in order."""

from __future__ import annotations

import asyncio
import logging

import pytest

from regent.runtime.restarted_parts import LONGEST_PAUSE_S, STABLE_AFTER_S, RestartedParts
from tests.support.event_loop import until_idle


class Clock:
    """Time that passes while something pauses."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.now_s

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def parts(clock: Clock) -> RestartedParts:
    return RestartedParts(pause=clock.pause, now=clock.now)


class Part:
    """Fails at the given times, which are how long it has run then, and ends after that."""

    def __init__(self, clock: Clock, *ran_s: float) -> None:
        self._clock = clock
        self._ran_s = list(ran_s)

    async def run(self) -> None:
        if self._ran_s:
            self._clock.now_s += self._ran_s.pop(0)
            raise MemoryError("no room")


async def test_one_that_always_fails_is_started_at_growing_pauses(
    clock: Clock, parts: RestartedParts, caplog: pytest.LogCaptureFixture
) -> None:
    await parts.run("the view", Part(clock, *[0.0] * 8).run)
    assert clock.pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    first = caplog.records[0]
    assert first.levelno == logging.ERROR
    assert first.__dict__["part"] == "the view"


async def test_stable_part_restarts_soon(clock: Clock, parts: RestartedParts) -> None:
    await parts.run("the view", Part(clock, 0.0, 0.0, STABLE_AFTER_S + 1, 0.0).run)
    assert clock.pauses == [1.0, 2.0, 1.0, 2.0]


async def test_a_cancellation_from_within_ends_no_part(clock: Clock, parts: RestartedParts) -> None:
    cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            await cancelled

    await parts.run("the view", run)
    assert runs == 2
    assert clock.pauses == [1.0]


async def test_one_that_is_cancelled_ends(parts: RestartedParts) -> None:
    task = asyncio.create_task(parts.run("the view", asyncio.Event().wait))  # type: ignore[arg-type]
    await until_idle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert parts.problem() is None


async def test_problem_is_shown_until_stable(clock: Clock, parts: RestartedParts) -> None:
    assert parts.problem() is None
    await parts.run("the view", Part(clock, 0.0).run)
    assert parts.problem() == "the view has failed, and is tried again: MemoryError('no room')"
    clock.now_s += STABLE_AFTER_S
    assert parts.problem() is None


def test_what_fails_each_time_is_logged_once_in_a_while(
    clock: Clock, parts: RestartedParts, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise KeyError("t")

    for _ in range(1_000):
        parts.do("numbers", fail)
    assert len(caplog.records) == 1
    clock.now_s += STABLE_AFTER_S
    parts.do("numbers", fail)
    assert len(caplog.records) == 2
    assert parts.problem() == "numbers has failed, and is tried again: KeyError('t')"


def test_similar_errors_logged_once(
    parts: RestartedParts, caplog: pytest.LogCaptureFixture
) -> None:
    """There is one with each event of the controller: thousands a second."""
    errors = [KeyError(f"t-{n}") if n % 2 else ValueError(n) for n in range(1_000)]

    def fail() -> None:
        raise errors.pop()

    for _ in range(1_000):
        parts.do("numbers", fail)
    assert len(caplog.records) == 2
    problem = str(parts.problem())
    assert "KeyError('t-999')" in problem
    assert "ValueError(998)" in problem
