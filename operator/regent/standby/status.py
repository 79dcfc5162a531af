"""How far the copy is good, for metrics and people."""

from __future__ import annotations

import enum

import msgspec


class StandbyPhase(enum.Enum):
    """What the cache is good for."""

    DISCONNECTED = "disconnected"
    """It is as it was when the connection was lost; all is read again when it is back."""
    LOADING = "loading"
    """Everything is being read."""
    CURRENT = "current"
    """What ZooKeeper has changed is read some milliseconds later."""
    UNSUPPORTED = "unsupported"
    """ZooKeeper has no recursive watches: there is no cache."""


class StandbyStatus(msgspec.Struct, frozen=True):
    """The keeper's numbers.

    Attributes:
        phase: What the cache is good for.
        znodes: Nodes that it was made of.
        partitions: Partitions that it has.
        dirty: Nodes that are to be read again.
        malformed: Nodes that could not be decoded, or not be read.
        is_prepared: Whether all that a take-over sends brokers is made.
        copies: How many take-overs of this process have had a copy.
        refreshes: Readings so far.
        bytes_read: Data that they have brought, in bytes.
        loads: How often everything was read.
        self_checks: How often it was compared with ZooKeeper.
        differences: Nodes that differed then, since the process began: defects.
        problem: What the last attempt failed at, None if it did not.
    """

    phase: StandbyPhase = StandbyPhase.DISCONNECTED
    znodes: int = 0
    partitions: int = 0
    dirty: int = 0
    malformed: int = 0
    is_prepared: bool = False
    copies: int = 0
    refreshes: int = 0
    bytes_read: int = 0
    loads: int = 0
    self_checks: int = 0
    differences: int = 0
    problem: str | None = None

    @property
    def is_current(self) -> bool:
        """Whether a take-over would load the cache."""
        return self.phase is StandbyPhase.CURRENT

    @property
    def can_succeed(self) -> bool:
        """Whether a controller that leaves may name this process its successor: it would load the
        cache, or there can be none, and then nobody has one. Otherwise it is not connected, or a
        little later it takes over in less time."""
        return self.phase in (StandbyPhase.CURRENT, StandbyPhase.UNSUPPORTED)

    @property
    def is_first_load_awaited(self) -> bool:
        """Whether there was no cache yet, and nothing is known that keeps it from being loaded. A
        process that cannot have one can take over all the same: that reads everything."""
        return (
            self.loads == 0 and self.phase is not StandbyPhase.UNSUPPORTED and self.problem is None
        )

    def report(self) -> dict[str, object]:
        """For ``/status``."""
        return {
            "phase": self.phase.value,
            "problem": self.problem,
            "znodes": self.znodes,
            "partitions": self.partitions,
            "dirty": self.dirty,
            "malformed": self.malformed,
            "isPrepared": self.is_prepared,
            "differences": self.differences,
        }
