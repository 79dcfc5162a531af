"""What can befall the controller at an effect, and a story cut short at each of its effects."""

from __future__ import annotations

from collections.abc import Iterator

from regent.controller import effects as fx
from regent.simulation.zookeeper_effects import ZooKeeperEffect
from tests.simulation.branching import play_every_cut
from tests.simulation.disturbances import Disturbance
from tests.simulation.playing import Scenario

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


def failures_of_cuts(name: str, scenario: Scenario, *, rivals: bool) -> list[str]:
    """What is not put right after a story was cut short, for every effect and disturbance.

    Args:
        name: The story's.
        scenario: The story.
        rivals: Whether a broker's controller leads before the next Regent does.
    """

    def befalling(effect: fx.Effect[object]) -> Iterator[Disturbance]:
        for disturbance in disturbances(effect):
            if name != FORGOTTEN or not (disturbance.is_crash or disturbance.is_expiry):
                yield disturbance

    return play_every_cut(scenario, befalling, rivals=rivals)
