"""What comes of planning, and how it is read from a run of ``regent plan``."""

from __future__ import annotations

import enum
import hashlib
import re
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final, NamedTuple

import msgspec

_ERROR: Final = "Error: "
_TRACEBACK: Final = "Traceback (most recent call last):"
_REASON: Final = re.compile(r"^  - (.+)$", re.MULTILINE)
_MESSAGE_MAX: Final = 2000
"""Characters of what a planner said, of each reason: the last ones if it has failed."""

_REASONS_MAX: Final = 100
_GOALS_MAX: Final = 64
_NOTES_MAX: Final = 64

_Id = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""What a status can hold. A plan may come from somebody else than the planner (verification.py)."""


class PlannerStatus(enum.IntEnum):
    """Exit status of ``regent plan``, as docs/planner.md has them."""

    ALL_GOALS_MET = 0
    INVALID_INPUT = 1
    INFEASIBLE = 3
    SOFT_GOAL_UNMET = 4
    PACKAGE_MISSING = 6
    HISTORY_UNUSABLE = 7


class PlannedChange(NamedTuple):
    """A partition of a plan. Where replicas before and after are the same, the first is to lead
    again.

    Attributes:
        previous: Its replicas in the snapshot.
        replicas: What they shall be, the leader first.
        batch: In which batch it is made, as the planner has it.
    """

    topic: str
    partition: int
    previous: tuple[int, ...]
    replicas: tuple[int, ...]
    batch: int = 0


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
        notes: What the planner says of the loads that it was made from, and of goals about brokers
            and topics that the cluster does not have.
        warnings: What it says will go wrong: disks and log directories without room.
        short_of_room: Brokers whose disks have not room for all their new replicas before others
            have left.
    """

    changes: tuple[PlannedChange, ...]
    bytes: int = 0
    leader_changes: int = 0
    lower_bound: int = 0
    missed: tuple[MissedGoal, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    short_of_room: tuple[int, ...] = ()


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
class HistoryUnusable:
    """The history that is asked for is missing, too old, or cannot be read: the planner's
    sentence."""

    problem: str


@dataclass(frozen=True, slots=True)
class PlannerFailed:
    """The planner has ended without a plan: it took too long, or too much memory, or has a
    defect."""

    problem: str


PlanResult = (
    PlannedChanges
    | InfeasibleGoals
    | InvalidGoals
    | PlannerMissing
    | HistoryUnusable
    | PlannerFailed
)


class _Change(msgspec.Struct):
    topic: str
    partition: _Id
    replicas: tuple[_Id, ...]
    previous: tuple[_Id, ...]
    batch: _Id = 0


class _Goal(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(max_length=64)]
    met: bool
    reason: str = ""


class _Bounds(msgspec.Struct):
    mandatory: _Count
    fractional: _Count
    dual: _Count


_Notes = Annotated[tuple[str, ...], msgspec.Meta(max_length=_NOTES_MAX)]


class _Schedule(msgspec.Struct, frozen=True, rename="camel"):
    notes: _Notes = ()
    short_of_room: tuple[_Id, ...] = ()


class _Details(msgspec.Struct):
    notes: _Notes = ()
    schedule: _Schedule = _Schedule()


class _Summary(msgspec.Struct, rename="camel"):
    hash: str
    bytes: _Count
    leader_changes: _Count
    bounds: _Bounds
    goals: Annotated[tuple[_Goal, ...], msgspec.Meta(max_length=_GOALS_MAX)]
    details: _Details | None = None


class _Plan(msgspec.Struct):
    plan: _Summary
    partitions: tuple[_Change, ...]


def read_answer(status: int, body: bytes) -> PlanResult:
    """The same as :func:`read_result` where there is one output: the plan, or else the errors."""
    if status in (PlannerStatus.ALL_GOALS_MET, PlannerStatus.SOFT_GOAL_UNMET):
        return read_result(status, body, "")
    return read_result(status, b"", body.decode(errors="replace"))


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
    said = _planners_own(message)
    beginning = (said or message)[:_MESSAGE_MAX]
    if status == PlannerStatus.INFEASIBLE:
        found = islice(_REASON.finditer(said or message), _REASONS_MAX)
        return InfeasibleGoals(tuple(m[1][:_MESSAGE_MAX] for m in found) or (beginning,))
    # Python ends with the same status after a traceback: then the planner has said nothing itself.
    if status == PlannerStatus.INVALID_INPUT and said is not None and _TRACEBACK not in said:
        return InvalidGoals(beginning)
    if status == PlannerStatus.PACKAGE_MISSING:
        return PlannerMissing(beginning)
    if status == PlannerStatus.HISTORY_UNUSABLE:
        return HistoryUnusable(beginning)
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return PlannerFailed(f"it ended with {how}: {message[-_MESSAGE_MAX:] or 'it said nothing'}")


def _planners_own(errors: str) -> str | None:
    """The planner's message, if there is one: it is the last, after what a Java process that reads
    a history for the planner has written to the same stream."""
    _, found, message = f"\n{errors}".rpartition(f"\n{_ERROR}")
    return message if found else None


def _read_plan(output: bytes) -> PlannedChanges | PlannerFailed:
    try:
        document = msgspec.json.decode(output, type=_Plan)
    except (msgspec.DecodeError, RecursionError) as error:
        return PlannerFailed(f"its plan cannot be read: {error}")
    summary, bounds = document.plan, document.plan.bounds
    details = summary.details or _Details()
    found = _hash_of(document.partitions)
    if found != summary.hash:
        return PlannerFailed(
            f"its plan is damaged: its changes have the hash {found}, and it says {summary.hash}"
        )
    return PlannedChanges(
        changes=tuple(
            PlannedChange(each.topic, each.partition, each.previous, each.replicas, each.batch)
            for each in document.partitions
        ),
        bytes=summary.bytes,
        leader_changes=summary.leader_changes,
        lower_bound=max(bounds.mandatory, bounds.fractional, bounds.dual),
        missed=tuple(MissedGoal(goal.name, goal.reason) for goal in summary.goals if not goal.met),
        notes=details.notes,
        warnings=details.schedule.notes,
        short_of_room=details.schedule.short_of_room,
    )


def _hash_of(changes: tuple[_Change, ...]) -> str:
    """The hash of a plan's changes, as docs/planner.md has it."""
    digest = hashlib.sha256(b"regent plan 1\n")
    for each in changes:
        before, after = (",".join(map(str, ids)) for ids in (each.previous, each.replicas))
        digest.update(f"{each.topic} {each.partition} {before} {after}\n".encode())
    return f"sha256:{digest.hexdigest()}"
