"""For every effect of every story: a crash, a lost connection and a lost session before, inside and
after it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from regent.controller import effects as fx
from tests.simulation import scenarios
from tests.simulation.branching import play_every_cut
from tests.simulation.describing import ZooKeeperEffect
from tests.simulation.disturbances import Disturbance
from tests.simulation.endpoint_scenarios import ENDPOINT_SCENARIOS
from tests.simulation.scenarios import SCENARIOS, Cut, play
from tests.simulation.shutdown_scenarios import SHUTDOWN_SCENARIOS
from tests.simulation.trace import InvariantViolatedError
from tests.simulation.world import World

AT_EVERY_WRITE = (
    Disturbance.CRASH_BEFORE,
    Disturbance.LOSE_BEFORE,
    Disturbance.LOSE_AFTER,
    Disturbance.EXPIRE_AFTER,
)
FORGOTTEN = "a broker fails at requests for a while"
"""What a broker has refused is known for a term. If it took the leader epoch over before it
failed, the next controller's LeaderAndIsr of that epoch changes nothing, as in Kafka: the next
change of the partition does. So it is cut where the term goes on, and nowhere else."""
ALL_SCENARIOS = SCENARIOS | SHUTDOWN_SCENARIOS | ENDPOINT_SCENARIOS


def disturbances(effect: fx.Effect[object]) -> Iterator[Disturbance]:
    """All that can befall the controller at an effect.

    AFTER means: applied, but the answer is lost. A crash before an effect that writes nothing is
    the same as a crash after the effect before it. A lost session shows at an effect on ZooKeeper.
    """
    yield Disturbance.CRASH_AFTER
    if isinstance(effect, ZooKeeperEffect):
        yield Disturbance.EXPIRE_BEFORE
    if isinstance(effect, fx.Write | fx.Multi):
        yield from AT_EVERY_WRITE
    if isinstance(effect, fx.Write) and len(effect.operations) > 1:
        yield from (d for d in Disturbance if d.is_halfway)


@pytest.mark.parametrize("rivals", [False, True], ids=["a fresh Regent", "a broker meanwhile"])
@pytest.mark.parametrize("name", ALL_SCENARIOS)
def test_whatever_is_cut_short_is_put_right(name: str, rivals: bool) -> None:
    def befalling(effect: fx.Effect[object]) -> Iterator[Disturbance]:
        for disturbance in disturbances(effect):
            if name != FORGOTTEN or not (disturbance.is_crash or disturbance.is_expiry):
                yield disturbance

    failures = play_every_cut(ALL_SCENARIOS[name], befalling, rivals=rivals)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("error", [InvariantViolatedError("this must not be"), ZeroDivisionError()])
def test_what_a_cut_breaks_is_named(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of the simulation, too, is no success."""

    def restart(*_: object) -> None:
        raise error

    monkeypatch.setattr(World, "restart_regent_after", restart)
    scenario = SCENARIOS["creation by commands"]
    performed = play(scenario)
    failures = play_every_cut(scenario, lambda _: [Disturbance.CRASH_AFTER], rivals=False)
    assert len(failures) == len(performed)
    for number, (failure, effect) in enumerate(zip(failures, performed, strict=True), start=1):
        assert failure.startswith(f"{Cut(number, Disturbance.CRASH_AFTER)} {effect}: ")
        assert (str(error) or type(error).__name__) in failure


def test_what_is_played_from_an_effect_on_is_what_is_played_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = SCENARIOS["creation by commands"]._replace(is_whole_before=False)
    cuts = [
        Cut(number, disturbance)
        for number, effect in enumerate(play(scenario), start=1)
        for disturbance in disturbances(effect)
    ]
    parent = os.getpid()
    digests: list[str] = []

    def converge(world: World) -> None:
        if os.getpid() != parent:
            raise InvariantViolatedError(world.trace.digest)
        digests.append(world.trace.digest)

    monkeypatch.setattr(scenarios, "check_converged", converge)
    failures = play_every_cut(scenario, disturbances, rivals=False)
    digests.clear()
    for cut in cuts:
        play(scenario, cut=cut)
    assert [failure.rpartition(": ")[2] for failure in failures] == digests
    assert len(set(digests)) > 1
