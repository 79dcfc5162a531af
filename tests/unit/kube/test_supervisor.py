"""A defect of the Kubernetes side ends neither the process nor its probes' honesty."""

from __future__ import annotations

import asyncio

import pytest

from regent.kube.health import KubeHealth
from regent.kube.supervisor import FORGET_AFTER_S, supervise
from tests.unit.kube.jumping_clock import elapse, run


class Side:
    """A Kubernetes side that fails after some time, again and again."""

    def __init__(self, *lives_s: float) -> None:
        self.lives_s = list(lives_s)
        self.began_at: list[float] = []
        self.stop = asyncio.Event()

    async def run(self) -> None:
        self.began_at.append(asyncio.get_running_loop().time() - 1000)
        if not self.lives_s:
            self.stop.set()
            return
        await elapse(self.lives_s.pop(0))
        raise ZeroDivisionError("a defect")


def _supervised(*lives_s: float) -> tuple[Side, KubeHealth]:
    health = KubeHealth()

    async def scenario() -> Side:
        side = Side(*lives_s)
        await supervise(side.run, stop_event=side.stop, health=health, jitter=lambda: 1.0)
        return side

    return run(scenario()), health


def test_it_is_started_again_with_growing_pauses(caplog: pytest.LogCaptureFixture) -> None:
    side, health = _supervised(0, 0, 0)
    assert side.began_at == [0, 0.5, 1.5, 3.5]
    assert health.restarts == 3
    assert "ZeroDivisionError: a defect" in caplog.text


def test_a_defect_after_a_long_time_counts_as_the_first() -> None:
    side, _ = _supervised(0, 0, FORGET_AFTER_S + 1, 0)
    last_pause = side.began_at[3] - side.began_at[2] - (FORGET_AFTER_S + 1)
    assert last_pause == 0.5


def test_readiness_names_the_defect() -> None:
    health = KubeHealth()
    assert health.problem() is None
    health.failed(ValueError("7 outcomes for 8 commands"))
    assert "7 outcomes for 8 commands" in (health.problem() or "")
    health.began()
    assert health.problem() is not None, "it has not proved to be stable yet"


class Cancelled(Side):
    """Ends as a task does that awaits something which another part has cancelled."""

    async def run(self) -> None:
        try:
            await super().run()
        except ZeroDivisionError:
            raise asyncio.CancelledError from None


def test_a_cancellation_that_nobody_asked_for_is_a_defect(caplog: pytest.LogCaptureFixture) -> None:
    health = KubeHealth()

    async def scenario() -> Side:
        side = Cancelled(0, 0)
        await supervise(side.run, stop_event=side.stop, health=health, jitter=lambda: 1.0)
        return side

    assert len(run(scenario()).began_at) == 3
    assert health.restarts == 2
    assert "CancelledError" in caplog.text


async def test_who_cancels_the_supervisor_ends_it() -> None:
    async def serve() -> None:
        await asyncio.Event().wait()

    health = KubeHealth()
    supervisor = asyncio.create_task(
        supervise(serve, stop_event=asyncio.Event(), health=health, jitter=lambda: 1.0)
    )
    await asyncio.sleep(0)
    supervisor.cancel()
    with pytest.raises(asyncio.CancelledError):
        await supervisor
    assert health.restarts == 0
