"""What this process remembers about a resource that moves partitions beside what it does about any
resource.

Losing it is harmless: what moves is in ZooKeeper, and what was sent is sent once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from regent.admin.commands import AlterPartitionReassignments, Outcome, Rejected
from regent.kube.memory import ObjectMemory, StatusT
from regent.kube.work_queue import backoff_s
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.request import RefusedMove
from regent.reconcile.reassignments.transitions import is_significant
from regent.resources.partition_reassignment_status import PartitionReassignmentStatus


@dataclass(slots=True, kw_only=True)
class MovesMemory(ObjectMemory[StatusT]):
    """Memory of one resource that moves partitions.

    Attributes:
        refused: Moves that the controller has refused.
    """

    refused: dict[TopicPartition, RefusedMove] = field(default_factory=dict)

    def note_moves(
        self,
        command: AlterPartitionReassignments,
        outcome: Outcome,
        *,
        at: float,
        jitter: Callable[[], float],
    ) -> None:
        """Remember what was refused, and forget it of what was accepted."""
        for tp, target in command.targets.items():
            message = _refusal(tp, outcome)
            if message is None:
                self.refused.pop(tp, None)
                continue
            before = self.refused.get(tp)
            count = 1 if before is None else before.count + 1
            self.refused[tp] = RefusedMove(
                target or (), message, at + backoff_s(count, jitter=jitter()), count
            )


@dataclass(slots=True, kw_only=True)
class ReassignmentMemory(MovesMemory[PartitionReassignmentStatus]):
    """Memory of one PartitionReassignment."""

    is_significant: Callable[[PartitionReassignmentStatus, PartitionReassignmentStatus], bool] = (
        is_significant
    )


def _refusal(tp: TopicPartition, outcome: Outcome) -> str | None:
    """Why a partition is not moved; None: it is."""
    if isinstance(outcome, Rejected):
        return outcome.message
    result = outcome.result[tp]
    return result.message if result.error_code else None
