"""What befalls a Regent process at an effect."""

from __future__ import annotations

import enum
from typing import Any

from regent.simulation.zookeeper_effects import ZooKeeperEffect
from regent.zk_data import effects as zk_effects


class Disturbance(enum.Enum):
    """What befalls a process at an effect. HALFWAY: a part of a bulk write has been applied."""

    CRASH_BEFORE = "crashes before"
    CRASH_HALFWAY = "crashes halfway through"
    CRASH_AFTER = "crashes after"
    LOSE_BEFORE = "loses connection before"
    LOSE_HALFWAY = "loses connection halfway through"
    LOSE_AFTER = "loses connection after"
    EXPIRE_BEFORE = "loses its session before"
    EXPIRE_HALFWAY = "loses its session halfway through"
    EXPIRE_AFTER = "loses its session after"

    def can_befall(self, effect: zk_effects.Effect[Any]) -> bool:
        """An effect on ZooKeeper takes time; any other one happens or does not."""
        if isinstance(effect, ZooKeeperEffect):
            return not self.is_halfway or isinstance(effect, zk_effects.Write)
        return self in (Disturbance.CRASH_BEFORE, Disturbance.CRASH_AFTER)

    @property
    def is_crash(self) -> bool:
        return self.name.startswith("CRASH")

    @property
    def is_expiry(self) -> bool:
        return self.name.startswith("EXPIRE")

    @property
    def is_halfway(self) -> bool:
        return self.name.endswith("HALFWAY")

    @property
    def is_after(self) -> bool:
        return self.name.endswith("AFTER")
