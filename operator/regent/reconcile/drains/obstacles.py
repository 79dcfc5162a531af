"""What keeps partitions from leaving their brokers."""

from __future__ import annotations

from dataclasses import dataclass

from regent.reconcile.drains.request import Hosted
from regent.resources.broker_drain_status import Blocker
from regent.resources.conditions import ConditionReason, shorten


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something that keeps a partition where it is.

    Attributes:
        hosted: The partition; None: it is about all of them.
        is_transient: Whether it may heal without a change of the resource.
        holds_all: Whether nothing is begun as long as it is there: the brokers could not be emptied
            anyway.
    """

    reason: ConditionReason
    message: str
    hosted: Hosted | None = None
    is_transient: bool = False
    holds_all: bool = False

    @property
    def text(self) -> str:
        """The message with the partition in front of it."""
        return self.message if self.hosted is None else f"{self.hosted.tp}: {self.message}"

    @property
    def blocker(self) -> Blocker:
        """As the status has it."""
        hosted = self.hosted
        return Blocker(
            reason=self.reason,
            topic="" if hosted is None else hosted.topic.name,
            partition=None if hosted is None else hosted.partition.partition,
            message=shorten(self.message, limit=512),
        )
