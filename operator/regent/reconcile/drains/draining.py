"""Draining brokers, and keeping them drained.

The plan grows: what comes to the brokers although they are cordoned, by hand or by a broker that
creates topics itself, is added to it. What has been moved stays in it, so that it can be undone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from regent.admin.commands import DescribeTopicConfigs, ResourceCommand
from regent.model.partition import TopicPartition
from regent.reconcile.dispatch import dispatch
from regent.reconcile.drains.execution import Execution, call_back, execute
from regent.reconcile.drains.leadership_moves import election_off, leadership_moves, may_lead
from regent.reconcile.drains.obstacles import Obstacle
from regent.reconcile.drains.replica_moves import FoundMoves, leaving_replicas, replica_moves
from regent.reconcile.drains.request import DrainRequest, remaining
from regent.reconcile.drains.status import blockers_of, status_in
from regent.reconcile.plan import Plan
from regent.reconcile.reassignments.execution import PAUSED
from regent.reconcile.reassignments.leaders import awaited_moves
from regent.reconcile.reassignments.move_plan import MovePlan
from regent.reconcile.reassignments.stages import MoveState, MoveStatus, statuses
from regent.reconcile.reassignments.status import stored_plan
from regent.reconcile.unreadable_topics import problem_in
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.broker_drain import DesiredDrainState, DrainMode
from regent.resources.broker_drain_status import BrokerDrainStatus, DrainPhase
from regent.resources.conditions import (
    ConditionReason,
    ConditionType,
    enumerate_some,
    find_condition,
    rfc3339,
)
from regent.resources.partition_reassignment import DesiredState
from regent.resources.partition_reassignment_status import MAX_DOCUMENT_LENGTH, Phase

DrainPlan = Plan[BrokerDrainStatus]

_NAMED: Final = 3
"""Partitions that a message names."""

_COVERED: Final = (MoveState.PENDING, MoveState.RUNNING, MoveState.BLOCKED)
"""States of moves that take a partition where the plan has it, now or later."""

_IN_THE_WAY_OF_A_STOP: Final = (
    ConditionReason.BELOW_MIN_INSYNC_REPLICAS,
    ConditionReason.UNDER_REPLICATED,
)
"""Reasons why a partition could not be written to without the brokers."""

_DRAINED_TEXT: Final = {
    DrainMode.REPLICAS: "no replica is left on the brokers",
    DrainMode.LEADERSHIP: "the brokers lead nothing, and can be stopped",
}


def keep_drained(request: DrainRequest, plan: MovePlan) -> DrainPlan:
    """What has to be done for brokers that are to be drained."""
    moves = statuses(plan, request.view)
    was_drained = request.resource.status.phase is DrainPhase.DRAINED
    if was_drained and _is_clear(request) and not request.view.unreadable_topics:
        staying = _staying_drained(request, plan, moves)
        if staying is not None:
            return staying
    if not plan.moves and not request.is_cordoned:
        message = "waiting for the controller to place no new replicas on the brokers"
        return _waiting(request, ConditionReason.CORDONING, message)
    unread = _unread_topics(request)
    if unread:
        reading = _reading(request, unread)
        if reading is not None:
            return reading
    if plan.moves and request.resource.status.started_at is None:
        return _store(request, plan, ())  # it was stored in part: nothing may have been moved
    found = _found(request, moves)
    is_paused = request.resource.spec.desired_state is DesiredDrainState.PAUSED
    given_up = {move.move.tp for move in moves if _is_given_up(request, move)}
    if (found.moves or given_up) and not is_paused:
        held = [o for o in found.obstacles if o.holds_all]
        if plan.moves or not held:
            extended = _extended(plan, moves, found, given_up)
            too_large = _too_large(extended)
            if too_large is None:
                return _store(request, extended, found.obstacles)
            found = FoundMoves((), (*found.obstacles, too_large))
    return _go_on(request, plan, moves, found)


def _is_clear(request: DrainRequest) -> bool:
    """Whether the brokers have nothing of what is to leave them."""
    left = remaining(request)
    if request.resource.spec.mode is DrainMode.LEADERSHIP:
        return not left.leaders
    return not left.replicas


def _staying_drained(
    request: DrainRequest, plan: MovePlan, moves: Sequence[MoveStatus]
) -> DrainPlan | None:
    """The plan for brokers that were drained and have got nothing since; None: one that is alive
    cannot be stopped any more.

    Otherwise replicas elsewhere may fall out of sync later on, or be moved on by somebody else:
    that has nothing to do with the drain any more.
    """
    is_alive = not request.brokers.isdisjoint(request.view.brokers)
    if request.resource.spec.mode is DrainMode.LEADERSHIP and is_alive:
        unread = _unread_topics(request)
        reading = _reading(request, unread) if unread else None
        if reading is not None:
            return reading
        obstacles = leadership_moves(request, (), {}).obstacles
        if _led_in_name_only(request) or any(
            obstacle.reason in _IN_THE_WAY_OF_A_STOP for obstacle in obstacles
        ):
            return None
    return _drained(request, plan, moves)


def _unread_topics(request: DrainRequest) -> tuple[str, ...]:
    """Topics whose min.insync.replicas is needed and was not read yet."""
    if request.resource.spec.mode is not DrainMode.LEADERSHIP:
        return ()
    return tuple(name for name in request.hosted_topics if name not in request.configs)


def _reading(request: DrainRequest, topics: tuple[str, ...]) -> DrainPlan | None:
    """Ask for configurations; None: nothing of them is left to be read."""
    existing = tuple(topic for topic in topics if topic in request.view.topics)
    if not existing:
        return None
    sent = dispatch(request, (DescribeTopicConfigs(existing),), fields={})
    if sent.send:
        return Plan(commands=sent.send)
    message = f"the configuration of {enumerate_some(existing, limit=5)} cannot be read yet"
    if sent.findings:
        message += f": {sent.findings[0].text}"
    return _waiting(request, ConditionReason.PLANNING, message, requeue_after_s=sent.wait_s)


def _waiting(
    request: DrainRequest,
    reason: ConditionReason,
    message: str,
    *,
    requeue_after_s: float | None = None,
) -> DrainPlan:
    assessment = Assessment(Progress.PROGRESSING, reason, message)
    started = request.resource.status.started_at is not None
    phase = DrainPhase.DRAINING if started else DrainPhase.PENDING
    return Plan(status=status_in(request, phase, assessment), requeue_after_s=requeue_after_s)


def _found(request: DrainRequest, moves: Sequence[MoveStatus]) -> FoundMoves:
    """What is on the brokers and no move of the plan takes off."""
    covered = {
        move.move.tp
        for move in moves
        if move.state in _COVERED
        and not _leads_to_cordoned(request, move)
        and not _is_given_up(request, move)
    }
    if request.resource.spec.mode is DrainMode.LEADERSHIP:
        found = leadership_moves(request, covered, {move.move.tp: move.move for move in moves})
    else:
        found = replica_moves(request, leaving_replicas(request, covered))
    problem = problem_in(request.view)
    if problem is None:
        return found
    unknown = Obstacle(
        reason=ConditionReason.TOPICS_UNREADABLE,
        message=f"{problem}; they may have partitions on the brokers, which are not drained before "
        "the nodes are repaired",
        is_transient=True,
    )
    return FoundMoves(found.moves, (*found.obstacles, unknown))


def _leads_to_cordoned(request: DrainRequest, move: MoveStatus) -> bool:
    """Whether another drain has cordoned the target before the move began: it goes elsewhere."""
    if move.state is not MoveState.PENDING:
        return False
    return not frozenset(request.view.cordoned).isdisjoint(move.still_adding)


def _is_given_up(request: DrainRequest, move: MoveStatus) -> bool:
    """Whether a partition has not got its new order, and the leader that this was for cannot lead
    any more, or is to be relieved by another drain: another order is chosen, if there is one."""
    return (
        request.resource.spec.mode is DrainMode.LEADERSHIP
        and move.state is MoveState.PENDING
        and move.partition is not None
        and not may_lead(request, move.partition, move.move.target[0])
    )


def _extended(
    plan: MovePlan,
    moves: Sequence[MoveStatus],
    found: FoundMoves,
    given_up: Collection[TopicPartition],
) -> MovePlan:
    """The plan with further moves, and without those that somebody else has made void."""
    new = {move.tp for move in found.moves}
    kept = (
        status.move
        for status in moves
        if status.state is not MoveState.DRIFTED
        and status.move.tp not in new
        and status.move.tp not in given_up
    )
    return MovePlan.of(plan.cluster_id, (*kept, *found.moves))


def _too_large(plan: MovePlan) -> Obstacle | None:
    if len(plan.document) <= MAX_DOCUMENT_LENGTH:
        return None
    return Obstacle(
        reason=ConditionReason.TOO_LARGE,
        message=f"the plan moves {len(plan.moves)} partitions and is {len(plan.document)} "
        f"characters long, more than {MAX_DOCUMENT_LENGTH}; drain fewer brokers at a time",
        holds_all=True,
    )


def _store(request: DrainRequest, plan: MovePlan, obstacles: Sequence[Obstacle]) -> DrainPlan:
    """Store what is about to be moved. Nothing is moved before that is done."""
    assessment = Assessment(
        Progress.PROGRESSING, ConditionReason.MOVING, "partitions begin to leave the brokers"
    )
    execution = execute(request, plan, DesiredState.PAUSED)
    status = status_in(
        request,
        DrainPhase.DRAINING,
        assessment,
        blockers=blockers_of(obstacles),
        plan=stored_plan(plan),
        started_at=_began_at(request) or rfc3339(request.now),
        finished_at=None,
        **execution.fields,
    )
    return Plan(status=status, status_first=True)


def _go_on(
    request: DrainRequest, plan: MovePlan, moves: Sequence[MoveStatus], found: FoundMoves
) -> DrainPlan:
    is_paused = request.resource.spec.desired_state is DesiredDrainState.PAUSED
    execution = execute(request, plan, DesiredState.PAUSED if is_paused else DesiredState.RUNNING)
    commands = execution.commands
    if not is_paused:
        commands = (*commands, *call_back(request, moves))
    waits = [execution.requeue_after_s]
    elects = request.resource.spec.mode is DrainMode.LEADERSHIP and not is_paused
    election = election_off(request) if elects else None
    if election is not None:
        sent = dispatch(request, (election,), fields={})
        commands = (*commands, *sent.send)
        waits.append(sent.wait_s)
    phase, assessment = _course(request, execution, moves, found.obstacles)
    if phase is DrainPhase.DRAINED:
        return _drained(request, plan, moves)
    limit = _time_limit(request, phase)
    if limit is not None:
        left_s, message = limit
        if left_s > 0:
            waits.append(left_s)
        else:
            assessment = Assessment(
                Progress.STALLED,
                ConditionReason.DRAIN_TIMED_OUT,
                f"{message}: {assessment.message}",
            )
    status = status_in(
        request,
        phase,
        assessment,
        blockers=blockers_of(found.obstacles),
        started_at=_began_at(request),
        finished_at=None,
        **_progress_fields(request, execution),
    )
    return _plan(status, commands, waits)


def _plan(
    status: BrokerDrainStatus, commands: tuple[ResourceCommand, ...], waits: list[float | None]
) -> DrainPlan:
    known = [wait for wait in waits if wait is not None]
    return Plan(status=status, commands=commands, requeue_after_s=min(known) if known else None)


def _progress_fields(request: DrainRequest, execution: Execution) -> dict[str, Any]:
    return execution.fields if request.resource.status.plan is not None else {}


def _course(
    request: DrainRequest,
    execution: Execution,
    moves: Sequence[MoveStatus],
    obstacles: Sequence[Obstacle],
) -> tuple[DrainPhase, Assessment]:
    """Where the drain is. What is on its way comes first, then what stands in the way."""
    if execution.phase is Phase.EXECUTING:
        return DrainPhase.DRAINING, Assessment(
            Progress.PROGRESSING, execution.reason, execution.message
        )
    if execution.phase is Phase.PAUSING:
        return DrainPhase.PAUSING, Assessment(
            Progress.PROGRESSING, execution.reason, execution.message
        )
    is_clear = _is_clear(request)
    is_paused = request.resource.spec.desired_state is DesiredDrainState.PAUSED
    if is_paused and not (is_clear and execution.is_over):
        return DrainPhase.PAUSED, PAUSED
    if obstacles:
        return _obstructed(request, obstacles)
    if not is_clear:
        return _leaving(request)
    lagging = _not_in_sync(request, moves)
    if lagging:
        return DrainPhase.VERIFYING, Assessment(
            Progress.PROGRESSING,
            ConditionReason.VERIFYING,
            f"nothing is left to be moved; {len(lagging)} of the moved partitions are not in sync "
            f"yet: {enumerate_some(lagging, limit=_NAMED)}",
        )
    in_name_only = _led_in_name_only(request) or _unanswered(request, moves)
    if in_name_only:
        return DrainPhase.VERIFYING, Assessment(
            Progress.PROGRESSING,
            ConditionReason.VERIFYING,
            f"nothing is left to be moved; the leaders of {len(in_name_only)} partitions are not "
            "reached, have not answered yet, or refuse to lead: "
            f"{enumerate_some(in_name_only, limit=_NAMED)}; `regent status` says why",
        )
    return DrainPhase.DRAINED, Assessment(Progress.READY, ConditionReason.BROKERS_DRAINED, "")


def _obstructed(
    request: DrainRequest, obstacles: Sequence[Obstacle]
) -> tuple[DrainPhase, Assessment]:
    """Nothing can be moved any more, and something has to be."""
    permanent = [obstacle for obstacle in obstacles if not obstacle.is_transient]
    shown = permanent or list(obstacles)
    message = f"{len(obstacles)} obstacles, listed in status.blockers: " if obstacles[1:] else ""
    message += enumerate_some([obstacle.text for obstacle in shown], limit=_NAMED)
    if permanent:
        return DrainPhase.REFUSED, Assessment(Progress.STALLED, shown[0].reason, message)
    started = request.resource.status.started_at is not None
    phase = DrainPhase.DRAINING if started else DrainPhase.PENDING
    return phase, Assessment(Progress.PROGRESSING, shown[0].reason, message)


def _leaving(request: DrainRequest) -> tuple[DrainPhase, Assessment]:
    """What is left is on its way off the brokers already."""
    left = remaining(request)
    if request.resource.spec.mode is DrainMode.LEADERSHIP:
        reason, what = ConditionReason.LEADERS_REMAIN, f"{left.leaders} partitions have to elect"
    else:
        reason, what = ConditionReason.REPLICAS_REMAIN, f"{left.replicas} replicas are leaving"
    return DrainPhase.DRAINING, Assessment(
        Progress.PROGRESSING, reason, f"{what}; nothing more has to be begun"
    )


def _not_in_sync(request: DrainRequest, moves: Sequence[MoveStatus]) -> list[str]:
    """Moved partitions that have a replica out of sync."""
    if request.resource.spec.mode is DrainMode.LEADERSHIP:
        return []
    return [
        f"{each.move.tp}: {sorted(missing)}"
        for each in moves
        if each.state is MoveState.DONE
        and each.partition is not None
        and (missing := frozenset(each.partition.replicas).difference(each.partition.isr))
    ]


def _led_in_name_only(request: DrainRequest) -> list[str]:
    """Partitions that the brokers have, and that nobody else leads although ZooKeeper says so: they
    may be led by the brokers still, in fact, or by nobody."""
    return [
        f"{hosted.tp}: leader {hosted.partition.leader}"
        for hosted in request.hosted()
        if hosted.partition.leader not in request.brokers and not hosted.partition.does_leader_obey
    ]


def _unanswered(request: DrainRequest, moves: Sequence[MoveStatus]) -> list[str]:
    """Partitions that the brokers have or had, and whose leaders have not answered that they lead
    them. One that hangs still counts as reached."""
    moved = awaited_moves(request.view, moves)
    hosted = (
        f"{each.tp}: leader {each.partition.leader}"
        for each in request.hosted()
        if each.partition.leader not in request.brokers
        and request.view.is_leader_awaited(each.topic, each.partition)
    )
    return list(dict.fromkeys((*moved, *hosted)))


def _began_at(request: DrainRequest) -> str | None:
    """When the first move began, of those since the brokers were drained the last time."""
    status = request.resource.status
    was_drained = status.started_at is not None and status.finished_at is not None
    return rfc3339(request.now) if was_drained else status.started_at


def _time_limit(request: DrainRequest, phase: DrainPhase) -> tuple[float, str] | None:
    """Seconds left of the time that the drain may take, and what to say afterwards."""
    timeout_s, started = request.resource.spec.timeout_seconds, _began_at(request)
    if timeout_s is None or started is None or phase is DrainPhase.PAUSED:
        return None
    took_s = (request.now - datetime.fromisoformat(started)).total_seconds()
    return timeout_s - took_s, f"not drained after {timeout_s} seconds, and going on"


def _drained(request: DrainRequest, plan: MovePlan, moves: Sequence[MoveStatus]) -> DrainPlan:
    text, reason = _DRAINED_TEXT[request.resource.spec.mode], ConditionReason.BROKERS_DRAINED
    absent = sorted(request.brokers - request.view.brokers.keys())
    if not plan.moves and not _was_drained(request) and _is_nothing_known(request):
        reason = ConditionReason.BROKERS_UNKNOWN
        text = (
            f"brokers {absent} are not alive and have no replicas, so there was nothing to move; "
            "if the cluster should have them, look at the ids"
        )
    elif absent:
        text += f"; brokers {absent} are not alive"
    assessment = Assessment(Progress.READY, reason, text)
    fields = {}
    if plan.moves:
        fields = execute(request, plan, DesiredState.PAUSED).fields
    status = status_in(
        request,
        DrainPhase.DRAINED,
        assessment,
        finished_at=request.resource.status.finished_at or rfc3339(request.now),
        **fields,
    )
    return Plan(status=status)


def _was_drained(request: DrainRequest) -> bool:
    """Whether the status says that the brokers, which it knew, were drained."""
    known = find_condition(request.resource.status.conditions, ConditionType.DRAINED)
    return known is not None and known.reason == ConditionReason.BROKERS_DRAINED


def _is_nothing_known(request: DrainRequest) -> bool:
    """Whether none of the brokers is alive or has a replica. One that does is drained as it should
    be, whatever the ids of the others are."""
    is_one_alive = not request.brokers.isdisjoint(request.view.brokers)
    return not is_one_alive and next(request.hosted(), None) is None
