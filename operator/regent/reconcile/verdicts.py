"""How a resource of any kind is doing, and the conditions that say so.

kstatus reads the conditions in this order: another observedGeneration means in progress,
``Reconciling`` True means in progress, ``Stalled`` True means failed, then ``Ready`` counts. So an
assessment is exactly one of three: ready, progressing or stalled.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from regent.resources.conditions import (
    ConditionReason,
    ConditionStatus,
    ConditionType,
    Verdict,
)


class Progress(enum.Enum):
    """The answers to "how is it going". UNKNOWN: there is no controller that knows."""

    READY = enum.auto()
    PROGRESSING = enum.auto()
    STALLED = enum.auto()
    UNKNOWN = enum.auto()


_READY: Final = {
    Progress.READY: ConditionStatus.TRUE,
    Progress.UNKNOWN: ConditionStatus.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Assessment:
    """How a resource is doing, and why."""

    progress: Progress
    reason: ConditionReason
    message: str


CLUSTER_LOADING: Final = Assessment(
    Progress.PROGRESSING,
    ConditionReason.CLUSTER_LOADING,
    "the controller is still reading the cluster",
)


def summary_verdicts(assessment: Assessment) -> tuple[Verdict, Verdict, Verdict]:
    """The three conditions of kstatus for an assessment."""
    progress, reason, message = assessment.progress, assessment.reason, assessment.message
    idle = (ConditionStatus.FALSE, ConditionReason.IDLE, "nothing is under way")
    unstalled = (ConditionStatus.FALSE, ConditionReason.NOT_STALLED, "nothing blocks it")
    happening = (ConditionStatus.TRUE, reason, message)
    ready = _READY.get(progress, ConditionStatus.FALSE)
    # A client that waits for the resource goes on waiting meanwhile (kstatus: InProgress).
    is_pending = progress in (Progress.PROGRESSING, Progress.UNKNOWN)
    return (
        Verdict(ConditionType.READY, ready, reason, message),
        Verdict(ConditionType.RECONCILING, *(happening if is_pending else idle)),
        Verdict(ConditionType.STALLED, *(happening if progress is Progress.STALLED else unstalled)),
    )


def unreadable_assessment(field: str, problem: str) -> Assessment:
    """How a resource is doing of which a field of the spec, or of the status, cannot be read."""
    if not field.startswith("status."):
        return Assessment(Progress.STALLED, ConditionReason.INVALID_SPEC, f"{field}: {problem}")
    return Assessment(
        Progress.STALLED,
        ConditionReason.STATUS_UNREADABLE,
        f"{field}: {problem}; nothing is done, and what is stored is kept: bring Regent up to "
        "date, or delete the resource and create it again",
    )


def unknown_verdict(condition: ConditionType, message: str) -> Verdict:
    """A condition about which nothing can be said."""
    return Verdict(condition, ConditionStatus.UNKNOWN, ConditionReason.UNKNOWN, message)
