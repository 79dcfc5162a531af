"""Carrying out a plan whose execution has begun.

What has to be done follows from the plan and from where its partitions are now. So it goes on after
a crash, under another process or another controller, without a repeated and without a lost move.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from regent.model.partition import TopicPartition
from regent.reconcile.dispatch import dispatch
from regent.reconcile.plan import Plan
from regent.reconcile.reassignments.alterations import alter_reassignments
from regent.reconcile.reassignments.batching import next_batch, present_traffic
from regent.reconcile.reassignments.copies import figures
from regent.reconcile.reassignments.elections import election_of
from regent.reconcile.reassignments.hindrances import (
    HINDRANCES,
    blocked_by_another,
    with_hindrance,
)
from regent.reconcile.reassignments.leaders import awaited_moves
from regent.reconcile.reassignments.move_plan import MovePlan
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.room import with_room
from regent.reconcile.reassignments.stages import MoveState, MoveStatus, statuses
from regent.reconcile.reassignments.status import planned_verdict, progress_fields, status_in
from regent.reconcile.reassignments.throttling import (
    rate_changes,
    throttled_still,
    wanted_rate,
)
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.conditions import (
    ConditionReason,
    ConditionStatus,
    ConditionType,
    Verdict,
    enumerate_some,
    find_condition,
    rfc3339,
)
from regent.resources.partition_reassignment import DesiredState, DriftPolicy
from regent.resources.partition_reassignment_status import (
    PartitionReassignmentStatus,
    Phase,
    StoredPlan,
)

ReassignmentPlan = Plan[PartitionReassignmentStatus]

PAUSED: Final = Assessment(
    Progress.READY, ConditionReason.PAUSED, "nothing is moved while spec.desiredState is Paused"
)
"""Of a resource that is paused, before its execution has begun or later."""

_REASONS_OF_INCOMPLETE: Final = (ConditionReason.PARTITIONS_DRIFTED, ConditionReason.UNKNOWN)
"""Reasons of ``Executing``; the second one after a time without a controller."""

_NAMED = 5
"""Partitions that a message names."""


@dataclass(frozen=True, slots=True)
class Course:
    """How the moves of a plan are doing, by state."""

    moves: tuple[MoveStatus, ...]

    def of(self, state: MoveState) -> list[MoveStatus]:
        return [move for move in self.moves if move.state is state]


def plan_execution(request: ReassignmentRequest, plan: MovePlan) -> ReassignmentPlan:
    """What has to be done now for a plan whose execution has begun."""
    moves = tuple(with_hindrance(request, move) for move in _seen(request, plan))
    course = Course(with_room(plan.room, moves))
    if request.resource.spec.desired_state is DesiredState.CANCELLED:
        return _cancelling(request, plan, course)
    return _moving(request, plan, course)


def _seen(request: ReassignmentRequest, plan: MovePlan) -> tuple[MoveStatus, ...]:
    """The moves as the view shows them. What was sent and does not show yet is under way, and what
    another resource keeps from beginning is blocked."""
    one_by_one = request.resource.spec.concurrency.per_partition_one_by_one

    def with_sent(move: MoveStatus) -> MoveStatus:
        if move.state is not MoveState.PENDING:
            return move
        goal = move.next_goal(one_by_one=one_by_one)
        if request.is_sent(move.move.tp, goal):
            return dataclasses.replace(move, state=MoveState.RUNNING, goal=goal)
        return blocked_by_another(request, move)

    return tuple(map(with_sent, statuses(plan, request.view)))


def _moving(request: ReassignmentRequest, plan: MovePlan, course: Course) -> ReassignmentPlan:
    drifted, running = course.of(MoveState.DRIFTED), course.of(MoveState.RUNNING)
    rest = [*course.of(MoveState.PENDING), *course.of(MoveState.BLOCKED), *running]
    if not rest or _has_given_up(request):
        return _ended(request, plan, course)
    spec = request.resource.spec
    if drifted and spec.on_drift is DriftPolicy.STOP:
        message = (
            f"{_describe_drift(drifted)}; nothing more is begun before they are back, or "
            "spec.onDrift is Skip"
        )
        if running:
            going = _under_way(request, plan, course, ConditionReason.PARTITIONS_DRIFTED, message)
            return dataclasses.replace(going, commands=rate_changes(request, course.moves))
        assessment = Assessment(Progress.STALLED, ConditionReason.PARTITIONS_DRIFTED, message)
        return Plan(status=_status(request, plan, course, Phase.STOPPED, assessment))
    if spec.desired_state is DesiredState.PAUSED:
        return _pausing(request, plan, course)
    return _going_on(request, plan, course)


def _has_given_up(request: ReassignmentRequest) -> bool:
    """Whether it has left partitions to others, and its spec was not changed since.

    What others move then is left to them, too, also if it had arrived: two that are incomplete
    would move a partition back and forth without end. A phase alone, which somebody may have
    edited, does not say so.
    """
    status = request.resource.status
    if not request.is_answered or status.phase is not Phase.INCOMPLETE:
        return False
    executing = find_condition(status.conditions, ConditionType.EXECUTING)
    return (
        executing is not None
        and executing.status is not ConditionStatus.TRUE
        and executing.reason in _REASONS_OF_INCOMPLETE
    )


def _going_on(request: ReassignmentRequest, plan: MovePlan, course: Course) -> ReassignmentPlan:
    batch = next_batch(
        _startable(request, course),
        present_traffic(request.moving, request.sent),
        request.resource.spec.concurrency,
    )
    reason, message = _what_happens(request, course)
    going = _under_way(request, plan, course, reason, message)
    begin = alter_reassignments(batch, course.moves, throttle=wanted_rate(request))
    return dataclasses.replace(going, commands=(*begin, *rate_changes(request, course.moves)))


def _startable(request: ReassignmentRequest, course: Course) -> list[MoveStatus]:
    """Pending moves that may begin, as far as they themselves are concerned."""
    available = request.view.brokers_for_new_replicas

    def may_begin(move: MoveStatus) -> bool:
        if move.waits_for_room:
            return False
        refused = request.refused.get(move.move.tp)
        if refused is not None and refused.retry_at > request.monotonic_s:
            return False
        return available.issuperset(move.still_adding)

    return [move for move in course.of(MoveState.PENDING) if may_begin(move)]


def _what_happens(request: ReassignmentRequest, course: Course) -> tuple[ConditionReason, str]:
    """Why it is not completed yet."""
    held = [move for move in course.moves if move.reason is not None]
    text = (
        f"the plan for {len(course.moves)} partitions is being executed; status.progress says how "
        "far it is"
    )
    rate = wanted_rate(request)
    if rate is not None:
        text += f"; each broker may copy {rate:,} bytes a second (spec.throttle)"
    if not held:
        return ConditionReason.MOVING, text
    reasons = {move.reason for move in held}
    reason = next(each for each in HINDRANCES if each in reasons)
    return reason, f"{text}{_waits(held)}"


def _waits(moves: Sequence[MoveStatus]) -> str:
    """Which of the moves wait, and for what."""
    problems = [f"{each.move.tp}: {each.problem}" for each in moves if each.problem]
    return f"; these wait: {enumerate_some(problems, limit=_NAMED)}" if problems else ""


def _under_way(
    request: ReassignmentRequest,
    plan: MovePlan,
    course: Course,
    reason: ConditionReason,
    message: str,
    phase: Phase = Phase.EXECUTING,
) -> ReassignmentPlan:
    assessment = Assessment(Progress.PROGRESSING, reason, message)
    return Plan(
        status=_status(request, plan, course, phase, assessment),
        requeue_after_s=_requeue_after_s(request, plan),
    )


def _requeue_after_s(request: ReassignmentRequest, plan: MovePlan) -> float | None:
    """Seconds until something that was sent has to show, or something refused is tried again."""
    moves = {move.tp for move in plan.moves}
    waits = [
        at - request.monotonic_s
        for tp, at in (
            *((tp, sent.until) for tp, sent in request.sent.items()),
            *((tp, refused.retry_at) for tp, refused in request.refused.items()),
        )
        if tp in moves and at > request.monotonic_s
    ]
    return min(waits) if waits else None


def _pausing(request: ReassignmentRequest, plan: MovePlan, course: Course) -> ReassignmentPlan:
    running = course.of(MoveState.RUNNING)
    if running:
        message = f"{len(running)} partitions are on their way and arrive; nothing more is begun"
        going = _under_way(
            request, plan, course, ConditionReason.PAUSING, message, phase=Phase.PAUSING
        )
        return dataclasses.replace(going, commands=rate_changes(request, course.moves))
    return Plan(status=_status(request, plan, course, Phase.PAUSED, PAUSED))


def _cancelling(request: ReassignmentRequest, plan: MovePlan, course: Course) -> ReassignmentPlan:
    """What is on its way goes back: to exactly the replicas that it had, in their order. What
    another resource moves to the same replicas is left to that: it would begin again. Where others
    take the partitions later is no concern of a reassignment that was given up."""
    under_way = course.of(MoveState.RUNNING)
    running = [move for move in under_way if move.move.tp not in request.moved_by_others]
    if not running:
        if all(move.state is MoveState.DONE for move in course.moves):
            return _ended(request, plan, course)
        releasing = _releasing(request, plan, course, Phase.CANCELLING)
        if releasing is not None:
            return releasing
        assessment = Assessment(
            Progress.READY,
            ConditionReason.REASSIGNMENT_CANCELLED,
            "spec.desiredState is Cancelled: nothing is moved; what had arrived stays, and Running "
            "goes on with the rest",
        )
        return Plan(status=_status(request, plan, course, Phase.CANCELLED, assessment))
    back: dict[TopicPartition, tuple[int, ...]] = {}
    for move in running:
        tp = move.move.tp
        if tp in request.moving and request.may_ask_for(tp, move.stage):
            back[tp] = move.stage
    going = _under_way(
        request,
        plan,
        course,
        ConditionReason.CANCELLING,
        f"{len(running)} partitions go back to where they were{_waits(running)}",
        phase=Phase.CANCELLING,
    )
    return dataclasses.replace(going, commands=alter_reassignments(back, course.moves))


def _releasing(
    request: ReassignmentRequest, plan: MovePlan, course: Course, phase: Phase
) -> ReassignmentPlan | None:
    """Nothing moves any more; None: nor is anything throttled."""
    throttled = throttled_still(course.moves)
    if not throttled:
        return None
    message = (
        f"nothing moves any more; the throttles of {len(throttled)} partitions are still to be "
        f"removed, of {enumerate_some([str(tp) for tp in throttled], limit=_NAMED)}"
    )
    return _under_way(
        request, plan, course, ConditionReason.REMOVING_THROTTLES, message, phase=phase
    )


def _ended(request: ReassignmentRequest, plan: MovePlan, course: Course) -> ReassignmentPlan:
    """Nothing is left to be moved. It is not over as long as something of it is throttled."""
    releasing = _releasing(request, plan, course, Phase.EXECUTING)
    if releasing is not None:
        return releasing
    electing = None if _has_given_up(request) else _electing(request, plan, course)
    if electing is not None:
        return electing
    awaiting = _awaiting_leaders(request, plan, course)
    if awaiting is not None:
        return awaiting
    elsewhere = [move for move in course.moves if move.state is not MoveState.DONE]
    if elsewhere:
        assessment = Assessment(
            Progress.STALLED,
            ConditionReason.PARTITIONS_DRIFTED,
            f"all others have arrived; {_describe_drift(elsewhere)}; to go on with what is where "
            "it was planned, change spec.desiredState to Paused and back",
        )
        return Plan(status=_status(request, plan, course, Phase.INCOMPLETE, assessment))
    assessment = Assessment(
        Progress.READY,
        ConditionReason.REASSIGNED,
        f"all {len(course.moves)} partitions have the replicas of the plan",
    )
    status = _status(request, plan, course, Phase.COMPLETED, assessment)
    return Plan(status=status.model_copy(update={"finished_at": rfc3339(request.now)}))


def _electing(
    request: ReassignmentRequest, plan: MovePlan, course: Course
) -> ReassignmentPlan | None:
    """Everything has arrived; None: and the plan's leaders lead, as far as they can."""
    election = election_of(request, course.moves)
    if election is None:
        return None
    sent = dispatch(request, (election,), fields={})
    partitions = [str(tp) for tp in election.partitions or ()]
    message = (
        f"all partitions have arrived; the preferred leaders of {len(partitions)} are being "
        f"elected, of {enumerate_some(partitions, limit=_NAMED)}"
    )
    if sent.findings:
        message += f"; refused: {sent.findings[0].text}"
    going = _under_way(request, plan, course, ConditionReason.ELECTING_LEADERS, message)
    return dataclasses.replace(going, commands=sent.send, requeue_after_s=sent.wait_s)


def _awaiting_leaders(
    request: ReassignmentRequest, plan: MovePlan, course: Course
) -> ReassignmentPlan | None:
    """Everything has arrived; None: and those that lead it have answered that they do."""
    awaited = awaited_moves(request.view, course.moves)
    if not awaited or not request.waits_for_leaders or _has_given_up(request):
        return None
    message = (
        f"all partitions have arrived; the leaders of {len(awaited)} have not answered yet that "
        f"they lead them: {enumerate_some(awaited, limit=_NAMED)}"
    )
    return _under_way(request, plan, course, ConditionReason.BROKERS_UNREACHED, message)


def _describe_drift(drifted: Sequence[MoveStatus]) -> str:
    named = enumerate_some([f"{m.move.tp}: {_whereabouts(m)}" for m in drifted], limit=_NAMED)
    return f"{len(drifted)} partitions are not where the plan has them: {named}"


def _whereabouts(move: MoveStatus) -> str:
    """Where a partition is that is not at its target."""
    if move.problem or move.partition is None:
        return move.problem
    return f"its replicas are {list(move.partition.replicas)}, not {list(move.move.target)}"


def _status(
    request: ReassignmentRequest,
    plan: MovePlan,
    course: Course,
    phase: Phase,
    assessment: Assessment,
) -> PartitionReassignmentStatus:
    return status_in(
        request,
        phase,
        assessment,
        planned=planned_verdict(plan),
        approved=begun_verdict(plan),
        **progress_fields(course.moves, figures(plan, request.view, request.copies)),
    )


def begun_verdict(plan: MovePlan | StoredPlan) -> Verdict:
    """``Approved`` for a plan whose execution has begun: it stays approved."""
    return Verdict(
        ConditionType.APPROVED,
        ConditionStatus.TRUE,
        ConditionReason.PLAN_APPROVED,
        f"the execution of the plan {plan.hash} has begun",
    )
