"""For every effect of every story: a crash, a lost connection and a lost session before, inside and
after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from regent.controller import effects as fx
from tests.simulation.describing import ZooKeeperEffect
from tests.simulation.disturbances import Disturbance
from tests.simulation.scenarios import SCENARIOS, Cut, play
from tests.simulation.shutdown_scenarios import SHUTDOWN_SCENARIOS
from tests.simulation.trace import InvariantViolatedError

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
ALL_SCENARIOS = SCENARIOS | SHUTDOWN_SCENARIOS


def cuts(performed: list[fx.Effect[object]]) -> Iterator[Cut]:
    """Every fault of the controller in a scenario in which it performs these effects.

    AFTER means: applied, but the answer is lost. A crash before an effect that writes nothing is
    the same as a crash after the effect before it. A lost session shows at an effect on ZooKeeper.
    """
    for number, effect in enumerate(performed, start=1):
        yield Cut(number, Disturbance.CRASH_AFTER)
        if isinstance(effect, ZooKeeperEffect):
            yield Cut(number, Disturbance.EXPIRE_BEFORE)
        if isinstance(effect, fx.Write | fx.Multi):
            yield from (Cut(number, d) for d in AT_EVERY_WRITE)
        if isinstance(effect, fx.Write) and len(effect.operations) > 1:
            yield from (Cut(number, d) for d in Disturbance if d.is_halfway)


@pytest.mark.parametrize("rivals", [False, True], ids=["a fresh Regent", "a broker meanwhile"])
@pytest.mark.parametrize("name", ALL_SCENARIOS)
def test_whatever_is_cut_short_is_put_right(name: str, rivals: bool) -> None:
    scenario = ALL_SCENARIOS[name]
    performed = play(scenario, rivals=rivals)
    failures = []
    for cut in cuts(performed):
        if name == FORGOTTEN and (cut.disturbance.is_crash or cut.disturbance.is_expiry):
            continue
        try:
            play(scenario, rivals=rivals, cut=cut)
        except InvariantViolatedError as violated:
            failures.append(f"{cut} {performed[cut.effect - 1]}: {violated}")
    assert not failures, "\n".join(failures)
