"""What can befall the controller at an effect, and a story cut short at its effects: at a sample of
them, or at each (``make soak PARTS=cuts``)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

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
SAMPLE_SHARE: Final = 32
"""The tests play one of so many cuts; see :class:`Sample`."""
FORGOTTEN: Final = "a broker fails at requests for a while"
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


def failures_of_cuts(name: str, scenario: Scenario, *, rivals: bool, everywhere: bool) -> list[str]:
    """What is not put right after a story was cut short.

    Args:
        name: The story's.
        scenario: The story.
        rivals: Whether a broker's controller leads before the next Regent does.
        everywhere: Whether every cut is played, not a sample.
    """
    sample = Sample(f"{name} {rivals}", 1 if everywhere else SAMPLE_SHARE)

    def befalling(effect: fx.Effect[object]) -> Iterator[Disturbance]:
        for disturbance in sample.of(effect):
            if name != FORGOTTEN or not (disturbance.is_crash or disturbance.is_expiry):
                yield disturbance

    return play_every_cut(scenario, befalling, rivals=rivals)


class Sample:
    """Which of a story's cuts are played, the same in every run.

    Each disturbance at the first effect of each type, and of the others a share.
    """

    def __init__(self, seed: str, share: int) -> None:
        """
        Args:
            seed: Which of the others: another text, another part of them.
            share: One of so many others.
        """
        self._seed = seed
        self._share = share
        self._number = 0
        self._seen: set[tuple[type[fx.Effect[object]], Disturbance]] = set()

    def of(self, effect: fx.Effect[object]) -> Iterator[Disturbance]:
        """The disturbances of the next effect. To be asked about each, in order."""
        self._number += 1
        for disturbance in disturbances(effect):
            is_new = (type(effect), disturbance) not in self._seen
            self._seen.add((type(effect), disturbance))
            if is_new or self._is_drawn(disturbance):
                yield disturbance

    def _is_drawn(self, disturbance: Disturbance) -> bool:
        drawn = zlib.crc32(f"{self._seed} {self._number} {disturbance.name}".encode())
        return drawn % self._share == 0
