"""Reconciling a PartitionReassignment: what is known goes in, a plan comes out.

The order of questions: is it over; does the view know the cluster, and is it that of the resource;
has the execution begun; is there a valid plan; may it be executed. The plan is stored, with the
moment at which its execution begins, before anything is moved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from regent.admin.commands import DescribeTopicConfigs
from regent.reconcile.checks import Finding
from regent.reconcile.departing import plan_departing
from regent.reconcile.dispatch import dispatch
from regent.reconcile.loading import plan_kept_answer
from regent.reconcile.other_regent import inactive, plan_looked_after
from regent.reconcile.plan import Plan, PlannedEvent
from regent.reconcile.reassignments.approval import approval_verdict
from regent.reconcile.reassignments.execution import (
    PAUSED,
    ReassignmentPlan,
    begun_verdict,
    plan_execution,
)
from regent.reconcile.reassignments.finished import (
    is_finished,
    look_again,
    may_be_undone,
    plan_finished,
)
from regent.reconcile.reassignments.move_plan import MovePlan, PlanDocumentError, read_plan
from regent.reconcile.reassignments.rebalancing import Rebalancing, rebalancing
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.stages import MoveState, statuses
from regent.reconcile.reassignments.status import (
    DOMAIN_CONDITIONS,
    blind_status,
    planned_verdict,
    problems_of,
    progress_fields,
    status_in,
    stored_plan,
    unapproved_verdict,
    unplanned_verdict,
)
from regent.reconcile.reassignments.undoing import begin_again, begin_undoing, undo
from regent.reconcile.reassignments.validation import (
    make_plan,
    plan_findings,
    wrong_partitions,
)
from regent.reconcile.verdicts import (
    CLUSTER_LOADING,
    Assessment,
    Progress,
)
from regent.resources.conditions import (
    ConditionReason,
    ConditionStatus,
    ConditionType,
    Verdict,
    enumerate_some,
    rfc3339,
)
from regent.resources.partition_reassignment import DesiredState
from regent.resources.partition_reassignment_status import Phase, RebalanceStatus

_WITHOUT_PLAN: Final[dict[str, Any]] = {
    "plan": None,
    "rebalance": None,
    "progress": None,
    "summary": None,
    "partitions": (),
}
"""Fields of a status that has no plan."""


def plan_reassignment(request: ReassignmentRequest) -> ReassignmentPlan:
    """What has to be done for a PartitionReassignment, given everything that is known now."""
    looked_after = plan_looked_after(request, partial(blind_status, request))
    if looked_after is not None:
        return looked_after
    resource = request.resource
    if resource.metadata.is_being_deleted:
        # Nothing holds it: what is on its way arrives, nothing more is begun.
        return plan_departing(
            resource, DOMAIN_CONDITIONS, now=request.now, stays_true=is_finished(request)
        )
    if is_finished(request) and not may_be_undone(request):
        return plan_finished(request)
    if not request.view.may_act:
        return _outside_term(request)
    recorded, actual = resource.status.cluster_id, request.view.cluster_id
    if not request.view.is_complete or actual is None:
        return _loading(request)
    if recorded is not None and recorded != actual:
        return _other_cluster(request)
    if resource.status.begun_at is not None or is_finished(request):
        return _begun(request)
    return _not_begun(request)


def _outside_term(request: ReassignmentRequest) -> ReassignmentPlan:
    """There is no controller: after a while the status says that nothing is known."""
    if request.until_unknown_s > 0:
        return Plan(requeue_after_s=request.until_unknown_s)
    assessment = inactive(
        request.absence,
        "what is on its way goes on as soon as there is a controller, the rest once a Regent that "
        "serves this resource is",
    )
    return Plan(status=blind_status(request, assessment))


def _loading(request: ReassignmentRequest) -> ReassignmentPlan:
    kept = plan_kept_answer(request)
    return Plan(status=blind_status(request, CLUSTER_LOADING)) if kept is None else kept


def _other_cluster(request: ReassignmentRequest) -> ReassignmentPlan:
    assessment = Assessment(
        Progress.STALLED,
        ConditionReason.OTHER_CLUSTER,
        f"the plan is for Kafka cluster {request.resource.status.cluster_id}, Regent controls "
        f"{request.view.cluster_id} now; create another PartitionReassignment there",
    )
    return Plan(status=blind_status(request, assessment))


def _begun(request: ReassignmentRequest) -> ReassignmentPlan:
    stored = request.resource.status.plan
    try:
        if stored is None:
            raise PlanDocumentError("status.plan is missing")
        plan = read_plan(stored.document, expected_hash=stored.hash)
    except PlanDocumentError as error:
        assessment = Assessment(
            Progress.STALLED,
            ConditionReason.PLAN_UNREADABLE,
            f"{error}; what is on its way arrives, nothing more is begun: create another "
            "PartitionReassignment for the rest",
        )
        return Plan(status=blind_status(request, assessment))
    return _course(request, plan)


def _course(request: ReassignmentRequest, plan: MovePlan) -> ReassignmentPlan:
    """There or back. Which of both was stored is carried out; what is asked for is stored first."""
    desired = request.resource.spec.desired_state
    if request.resource.status.undo_started_at is None:
        if desired is DesiredState.UNDONE:
            return begin_undoing(request, plan)
        execution = plan_execution(request, plan)
        is_over = execution.status is not None and execution.status.phase is Phase.COMPLETED
        return look_again(execution) if is_over else execution
    is_on_its_way_back = desired is not DesiredState.RUNNING
    return undo(request, plan) if is_on_its_way_back else begin_again(request, plan)


def _not_begun(request: ReassignmentRequest) -> ReassignmentPlan:
    if request.resource.spec.desired_state in (DesiredState.CANCELLED, DesiredState.UNDONE):
        return _cancelled(request)
    rebalance = request.resource.spec.rebalance
    if rebalance is not None:
        return _rebalancing(request, rebalancing(request, rebalance))
    unread = _unread_topics(request)
    if unread:
        return _reading(request, unread)
    plan, findings = _present_plan(request)
    if findings:
        return _invalid(request, findings)
    return _with_plan(request, plan)


def _rebalancing(request: ReassignmentRequest, found: Rebalancing) -> ReassignmentPlan:
    """A plan of the planner, or what it waits for."""
    if found.findings:
        known = _invalid(request, found.findings, plan=found.plan)
    elif found.plan is not None:
        known = _with_plan(request, found.plan, rebalance=found.status)
    else:
        known = _being_planned(request)
    news: tuple[PlannedEvent, ...] = ()
    if found.dropped:
        reason = ConditionReason.PLAN_OUTDATED
        news = (PlannedEvent(reason, found.dropped, is_logged=True),)
    # A plan without a change is over at once: its time begins with that.
    return dataclasses.replace(
        known,
        planning=found.order,
        requeue_after_s=known.requeue_after_s if found.wait_s is None else found.wait_s,
        events=(*known.events, *news),
    )


def _being_planned(request: ReassignmentRequest) -> ReassignmentPlan:
    message = (
        "the planner is at work, for this resource or for others first; the plan comes when it is "
        "ready"
    )
    assessment = Assessment(Progress.PROGRESSING, ConditionReason.PLANNING, message)
    status = status_in(
        request,
        Phase.PENDING,
        assessment,
        planned=unplanned_verdict(assessment.reason, message),
        approved=unapproved_verdict(message),
        **_WITHOUT_PLAN,
    )
    return Plan(status=status)


def _with_plan(
    request: ReassignmentRequest, plan: MovePlan, *, rebalance: RebalanceStatus | None = None
) -> ReassignmentPlan:
    """What follows from a valid plan.

    Args:
        rebalance: What the planner says of it, if it is new and was made by the planner.
    """
    fields = {} if rebalance is None else {"rebalance": rebalance}
    if not plan.moves:
        return _nothing_to_move(request, plan, **fields)
    spec = request.resource.spec
    approved = approval_verdict(spec.approval, plan)
    if approved.status is not ConditionStatus.TRUE:
        assessment = Assessment(Progress.STALLED, approved.reason, approved.message)
        return _idle(request, plan, approved, Phase.AWAITING_APPROVAL, assessment, **fields)
    if spec.desired_state is DesiredState.PAUSED:
        return _idle(request, plan, approved, Phase.PAUSED, PAUSED, **fields)
    return _begin(request, plan, **fields)


def _cancelled(request: ReassignmentRequest) -> ReassignmentPlan:
    """It was cancelled, or is to be undone, before anything was moved: nothing is planned, nothing
    can be wrong."""
    desired = request.resource.spec.desired_state
    phase, reason = Phase.CANCELLED, ConditionReason.REASSIGNMENT_CANCELLED
    if desired is DesiredState.UNDONE:
        phase, reason = Phase.UNDONE, ConditionReason.REASSIGNMENT_UNDONE
    message = f"spec.desiredState is {desired}: nothing was moved"
    assessment = Assessment(Progress.READY, reason, message)
    status = status_in(
        request,
        phase,
        assessment,
        planned=unplanned_verdict(assessment.reason, message),
        approved=unapproved_verdict(message),
        **_WITHOUT_PLAN,
    )
    return Plan(status=status)


def _unread_topics(request: ReassignmentRequest) -> tuple[str, ...]:
    """Existing topics of the resource whose configuration was not read yet."""
    return tuple(
        topic
        for topic in request.topics
        if topic in request.view.topics and topic not in request.configs
    )


def _reading(request: ReassignmentRequest, topics: tuple[str, ...]) -> ReassignmentPlan:
    """Ask for configurations: they say how many replicas are needed."""
    sent = dispatch(request, (DescribeTopicConfigs(topics),), fields={})
    if sent.send:
        return Plan(commands=sent.send)
    message = f"the configuration of {enumerate_some(topics, limit=5)} cannot be read yet"
    if sent.findings:
        message += f": {sent.findings[0].text}"
    assessment = Assessment(Progress.PROGRESSING, ConditionReason.PLANNING, message)
    status = status_in(
        request,
        Phase.PENDING,
        assessment,
        planned=unplanned_verdict(assessment.reason, message),
        approved=unapproved_verdict(message),
    )
    return Plan(status=status, requeue_after_s=sent.wait_s)


def _present_plan(request: ReassignmentRequest) -> tuple[MovePlan, Sequence[Finding]]:
    """Where Regent chooses the brokers, the stored plan as long as the cluster is as it was for it;
    else a new one.

    Every change of the cluster would lead to another choice, and to another hash than the one that
    somebody is about to approve.
    """
    stored = request.resource.status.plan
    if stored is not None and request.resource.spec.replication_factor is not None:
        try:
            plan = read_plan(stored.document, expected_hash=stored.hash)
        except PlanDocumentError:
            return make_plan(request)
        if plan.moves and _is_current(request, plan):
            findings = tuple(plan_findings(request, plan, {}))
            if not findings:
                return plan, ()
    return make_plan(request)


def _is_current(request: ReassignmentRequest, plan: MovePlan) -> bool:
    """Whether a plan that was made before does all that is asked for, and nothing else."""
    wanted = wrong_partitions(request)
    return {move.tp: len(move.target) for move in plan.moves} == wanted and all(
        status.state is MoveState.PENDING
        and status.partition is not None
        and status.partition.replicas == status.move.replicas
        for status in statuses(plan, request.view)
    )


def _invalid(
    request: ReassignmentRequest, findings: Sequence[Finding], *, plan: MovePlan | None = None
) -> ReassignmentPlan:
    """Everything that is wrong is said at once. What may heal is waited for.

    Args:
        plan: The stored plan, if it stays.
    """
    permanent = [finding for finding in findings if not finding.is_transient]
    first = permanent[0] if permanent else findings[0]
    message = f"{len(findings)} problems, listed in status.problems: " if len(findings) > 1 else ""
    message += enumerate_some([finding.text for finding in (permanent or findings)], limit=3)
    progress, phase = (
        (Progress.STALLED, Phase.INVALID) if permanent else (Progress.PROGRESSING, Phase.PENDING)
    )
    status = status_in(
        request,
        phase,
        Assessment(progress, first.reason, message),
        planned=unplanned_verdict(first.reason, message),
        approved=unapproved_verdict("there is no valid plan"),
        problems=problems_of(findings),
        **(_WITHOUT_PLAN if plan is None else {}),
    )
    return Plan(status=status)


def _nothing_to_move(
    request: ReassignmentRequest, plan: MovePlan, **fields: Any
) -> ReassignmentPlan:
    message = "every partition has the replicas that the resource asks for"
    if request.resource.spec.rebalance is not None:
        message = "no move brings the cluster closer to the goals"
    assessment = Assessment(Progress.READY, ConditionReason.REASSIGNED, message)
    status = status_in(
        request,
        Phase.COMPLETED,
        assessment,
        planned=_planned_verdict(request, plan, fields),
        approved=Verdict(
            ConditionType.APPROVED,
            ConditionStatus.TRUE,
            ConditionReason.PLAN_APPROVED,
            "a plan without moves needs no approval",
        ),
        plan=stored_plan(plan),
        finished_at=rfc3339(request.now),
        **progress_fields(()),
        **fields,
    )
    return look_again(Plan(status=status))


def _idle(
    request: ReassignmentRequest,
    plan: MovePlan,
    approved: Verdict,
    phase: Phase,
    assessment: Assessment,
    **fields: Any,
) -> ReassignmentPlan:
    """There is a plan, and it is not executed now."""
    status = status_in(
        request,
        phase,
        assessment,
        planned=_planned_verdict(request, plan, fields),
        approved=approved,
        plan=stored_plan(plan),
        **progress_fields(statuses(plan, request.view)),
        **fields,
    )
    return Plan(status=status)


def _planned_verdict(
    request: ReassignmentRequest, plan: MovePlan, fields: Mapping[str, Any]
) -> Verdict:
    return planned_verdict(plan, fields.get("rebalance") or request.resource.status.rebalance)


def _begin(request: ReassignmentRequest, plan: MovePlan, **fields: Any) -> ReassignmentPlan:
    """Store what is about to be executed. Nothing is moved before that is done."""
    assessment = Assessment(
        Progress.PROGRESSING, ConditionReason.MOVING, "the execution of the plan begins"
    )
    status = status_in(
        request,
        Phase.EXECUTING,
        assessment,
        planned=_planned_verdict(request, plan, fields),
        approved=begun_verdict(plan),
        plan=stored_plan(plan),
        started_at=rfc3339(request.now),
        **progress_fields(statuses(plan, request.view)),
        **fields,
    )
    return Plan(status=status, status_first=True)
