"""What comes of planning, and how it is read from a run of ``regent plan``."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

_ERROR: Final = "Error: "
_REASON: Final = re.compile(r"^  - (.+)$", re.MULTILINE)
_MESSAGE_MAX: Final = 2000
"""Characters of what a planner that has failed said last."""


class PlannerStatus(enum.IntEnum):
    """Exit status of ``regent plan``, as docs/planner.md has them."""

    ALL_GOALS_MET = 0
    INVALID_INPUT = 1
    INFEASIBLE = 3
    SOFT_GOAL_UNMET = 4
    PACKAGE_MISSING = 6


class PlannedChange(NamedTuple):
    """A partition of a plan. Where replicas before and after are the same, the first is to lead
    again.

    Attributes:
        previous: Its replicas in the snapshot.
        replicas: What they shall be, the leader first.
    """

    topic: str
    partition: int
    previous: tuple[int, ...]
    replicas: tuple[int, ...]


class MissedGoal(NamedTuple):
    """A soft goal that a plan does not meet, with the planner's reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedChanges:
    """A plan.

    Attributes:
        bytes: What is copied, as far as sizes are known.
        leader_changes: Partitions that get another leader.
        lower_bound: No plan that comes as close to the goals copies fewer replicas.
        missed: Soft goals that it does not meet.
    """

    changes: tuple[PlannedChange, ...]
    bytes: int = 0
    leader_changes: int = 0
    lower_bound: int = 0
    missed: tuple[MissedGoal, ...] = ()


@dataclass(frozen=True, slots=True)
class InfeasibleGoals:
    """No plan meets the hard goals: the planner's reasons, a sentence each."""

    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvalidGoals:
    """The goals do not fit the cluster: the planner's sentence."""

    problem: str


@dataclass(frozen=True, slots=True)
class PlannerMissing:
    """There is no planner here: what is missing, and how to get it."""

    problem: str


@dataclass(frozen=True, slots=True)
class PlannerFailed:
    """The planner has ended without a plan: it took too long, or too much memory, or has a
    defect."""

    problem: str


PlanResult = PlannedChanges | InfeasibleGoals | InvalidGoals | PlannerMissing | PlannerFailed


class _Change(msgspec.Struct):
    topic: str
    partition: int
    replicas: tuple[int, ...]
    previous: tuple[int, ...]


class _Goal(msgspec.Struct):
    name: str
    met: bool
    reason: str = ""


class _Bounds(msgspec.Struct):
    mandatory: int
    fractional: int
    dual: int


class _Summary(msgspec.Struct, rename="camel"):
    bytes: int
    leader_changes: int
    bounds: _Bounds
    goals: tuple[_Goal, ...]


class _Plan(msgspec.Struct):
    plan: _Summary
    partitions: tuple[_Change, ...]


def read_result(status: int, output: bytes, errors: str) -> PlanResult:
    """What a run of ``regent plan SNAPSHOT --json`` has said.

    Args:
        status: Its exit status; negative if a signal has ended it.
        output: Its standard output: the plan, if there is one.
        errors: Its standard error.
    """
    if status in (PlannerStatus.ALL_GOALS_MET, PlannerStatus.SOFT_GOAL_UNMET):
        return _read_plan(output)
    message = errors.strip()
    if status == PlannerStatus.INFEASIBLE:
        return InfeasibleGoals(tuple(_REASON.findall(errors)) or (message,))
    if status == PlannerStatus.INVALID_INPUT and message.startswith(_ERROR):
        return InvalidGoals(message.removeprefix(_ERROR))
    if status == PlannerStatus.PACKAGE_MISSING:
        return PlannerMissing(message.removeprefix(_ERROR))
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return PlannerFailed(f"it ended with {how}: {message[-_MESSAGE_MAX:] or 'it said nothing'}")


def _read_plan(output: bytes) -> PlannedChanges | PlannerFailed:
    try:
        document = msgspec.json.decode(output, type=_Plan)
    except msgspec.DecodeError as error:
        return PlannerFailed(f"its plan cannot be read: {error}")
    summary, bounds = document.plan, document.plan.bounds
    return PlannedChanges(
        changes=tuple(
            PlannedChange(each.topic, each.partition, each.previous, each.replicas)
            for each in document.partitions
        ),
        bytes=summary.bytes,
        leader_changes=summary.leader_changes,
        lower_bound=max(bounds.mandatory, bounds.fractional, bounds.dual),
        missed=tuple(MissedGoal(goal.name, goal.reason) for goal in summary.goals if not goal.met),
    )
