"""Taking a drain back: what it has moved goes back to where it was.

First what is on its way is called back, then what had arrived is moved by the plan in reverse. Both
follow from the stored plan and from where its partitions are, so an interruption loses nothing.
"""

from __future__ import annotations

from typing import Any, Final

from regent.admin.commands import ResourceCommand
from regent.model.partition import TopicPartition
from regent.reconcile.dispatch import dispatch
from regent.reconcile.drains.execution import Execution, execute, in_present_order, reversed_plan
from regent.reconcile.drains.leadership_moves import election_back
from regent.reconcile.drains.request import DrainRequest
from regent.reconcile.drains.status import status_in
from regent.reconcile.plan import Plan
from regent.reconcile.reassignments.finished import UNDONE_BEFORE
from regent.reconcile.reassignments.move_plan import MovePlan
from regent.reconcile.reassignments.stages import MoveState, find_partition, statuses
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.broker_drain_status import BrokerDrainStatus, DrainPhase
from regent.resources.conditions import (
    ConditionReason,
    ConditionType,
    enumerate_some,
    find_condition,
)
from regent.resources.partition_reassignment import DesiredState
from regent.resources.partition_reassignment_status import Phase

_NAMED: Final = 5
"""Partitions that a message names."""

_FORGOTTEN: Final[dict[str, Any]] = {
    "plan": None,
    "progress": None,
    "summary": None,
    "partitions": (),
    "started_at": None,
    "finished_at": None,
}
"""Fields of a status of which nothing is left once a drain is undone."""


def undo(request: DrainRequest, plan: MovePlan) -> Plan[BrokerDrainStatus]:
    """What has to be done for a drain that is to be undone."""
    if not plan.moves:
        return _undone(request, "spec.desiredState is Undone: nothing has to go back")
    calling_back = execute(request, plan, DesiredState.CANCELLED)
    if calling_back.phase is Phase.CANCELLING:
        return _undoing(request, calling_back)
    back = in_present_order(reversed_plan(plan), request.view)
    going_back = execute(request, back, DesiredState.RUNNING)
    if not going_back.is_over:
        return _undoing(request, going_back)
    election = election_back(request, plan.moves, _partitions(request, plan))
    sent = dispatch(request, () if election is None else (election,), fields={})
    if sent.send:
        return Plan(commands=sent.send)
    elsewhere = [
        f"{each.move.tp}: {each.problem}"
        for each in statuses(back, request.view)
        if each.state is MoveState.DRIFTED
    ]
    text = f"what was moved is back; {len(plan.moves) - len(elsewhere)} partitions"
    if elsewhere:
        text += (
            f"; {len(elsewhere)} are left where they are, since somebody else has moved them: "
            f"{enumerate_some(elsewhere, limit=_NAMED)}"
        )
    return _undone(request, text)


def _partitions(request: DrainRequest, plan: MovePlan) -> dict[TopicPartition, Any]:
    topics = request.view.topics
    return {
        move.tp: find_partition(topics[move.topic], move.partition)
        for move in plan.moves
        if move.topic in topics
    }


def _undoing(request: DrainRequest, execution: Execution) -> Plan[BrokerDrainStatus]:
    waits = {
        ConditionReason.MOVING: ConditionReason.UNDOING,
        ConditionReason.CANCELLING: ConditionReason.UNDOING,
    }
    assessment = Assessment(
        Progress.PROGRESSING,
        waits.get(execution.reason, execution.reason),
        f"what was moved goes back: {execution.message}",
    )
    commands: tuple[ResourceCommand, ...] = execution.commands
    status = status_in(request, DrainPhase.UNDOING, assessment, **execution.fields)
    return Plan(status=status, commands=commands, requeue_after_s=execution.requeue_after_s)


def _undone(request: DrainRequest, text: str) -> Plan[BrokerDrainStatus]:
    """It stays undone, with what was said first: the plan is gone then. While there was no
    controller, or it was reading the cluster, something else was said."""
    before = request.resource.status
    if before.phase is DrainPhase.UNDONE:
        ready = find_condition(before.conditions, ConditionType.READY)
        is_said = ready is not None and ready.reason == ConditionReason.DRAIN_UNDONE
        text = ready.message if ready is not None and is_said else UNDONE_BEFORE
    assessment = Assessment(Progress.READY, ConditionReason.DRAIN_UNDONE, text)
    status = status_in(request, DrainPhase.UNDONE, assessment, **_FORGOTTEN)
    return Plan(status=status)
