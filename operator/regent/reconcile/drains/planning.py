"""Reconciling a BrokerDrain: what is known goes in, a plan comes out.

The order of questions: does the view know the cluster, and is it that of the resource; does
another drain of the same brokers count; is the drain to be undone; are the brokers drained already;
are they cordoned; what is on them that no move of the stored plan takes off. Moves are stored, with
the replicas that each partition had, before they begin.
"""

from __future__ import annotations

from functools import partial

from regent.reconcile.departing import plan_departing
from regent.reconcile.drains.claims import claim_before
from regent.reconcile.drains.draining import keep_drained
from regent.reconcile.drains.execution import in_present_order
from regent.reconcile.drains.request import DrainRequest
from regent.reconcile.drains.status import DOMAIN_CONDITIONS, blind_status, status_in
from regent.reconcile.drains.undoing import undo
from regent.reconcile.loading import plan_kept_answer
from regent.reconcile.other_regent import inactive, plan_looked_after
from regent.reconcile.plan import Plan
from regent.reconcile.reassignments.move_plan import MovePlan, PlanDocumentError, read_plan
from regent.reconcile.verdicts import (
    CLUSTER_LOADING,
    Assessment,
    Progress,
)
from regent.resources.broker_drain import DesiredDrainState
from regent.resources.broker_drain_status import BrokerDrainStatus, DrainPhase
from regent.resources.conditions import ConditionReason

DrainPlan = Plan[BrokerDrainStatus]


def plan_drain(request: DrainRequest) -> DrainPlan:
    """What has to be done for a BrokerDrain, given everything that is known now."""
    looked_after = plan_looked_after(request, partial(blind_status, request))
    if looked_after is not None:
        return looked_after
    resource = request.resource
    if resource.metadata.is_being_deleted:
        # Nothing holds it: what is on its way arrives, nothing more is begun.
        return plan_departing(resource, DOMAIN_CONDITIONS, now=request.now)
    if not request.view.may_act:
        return _outside_term(request)
    if not request.view.is_complete or request.view.cluster_id is None:
        return _loading(request)
    if resource.status.cluster_id not in (None, request.view.cluster_id):
        return _other_cluster(request)
    conflict = _conflict(request)
    if conflict is not None:
        return conflict
    try:
        plan = in_present_order(_stored_plan(request), request.view)
    except PlanDocumentError as error:
        return _unreadable(request, error)
    if resource.spec.desired_state is DesiredDrainState.UNDONE:
        return undo(request, plan)
    return keep_drained(request, plan)


def _stored_plan(request: DrainRequest) -> MovePlan:
    """The moves that have begun; none yet: a plan without any.

    Raises:
        PlanDocumentError: The stored plan cannot be read.
    """
    stored = request.resource.status.plan
    if stored is None:
        return MovePlan.of(request.view.cluster_id, ())
    return read_plan(stored.document, expected_hash=stored.hash)


def _outside_term(request: DrainRequest) -> DrainPlan:
    """There is no controller: after a while the status says that nothing is known."""
    if request.until_unknown_s > 0:
        return Plan(requeue_after_s=request.until_unknown_s)
    assessment = inactive(
        request.absence,
        "the brokers are not cordoned, and nothing more is begun, until a Regent that serves this "
        "resource is",
    )
    return Plan(status=blind_status(request, assessment))


def _loading(request: DrainRequest) -> DrainPlan:
    kept = plan_kept_answer(request)
    return Plan(status=blind_status(request, CLUSTER_LOADING)) if kept is None else kept


def _other_cluster(request: DrainRequest) -> DrainPlan:
    assessment = Assessment(
        Progress.STALLED,
        ConditionReason.OTHER_CLUSTER,
        f"it drains brokers of Kafka cluster {request.resource.status.cluster_id}, Regent controls "
        f"{request.view.cluster_id} now; create another BrokerDrain there",
    )
    return Plan(status=blind_status(request, assessment))


def _conflict(request: DrainRequest) -> DrainPlan | None:
    """Another drain of the same brokers counts."""
    uid, cluster_id = request.resource.metadata.uid, request.view.cluster_id
    first = claim_before(uid, request.claims, cluster_id=cluster_id)
    if first is None:
        return None
    assessment = Assessment(
        Progress.STALLED,
        ConditionReason.RESOURCE_CONFLICT,
        f"BrokerDrain {first.namespace}/{first.name} drains some of these brokers; delete one of "
        "the two, or leave the brokers out here",
    )
    return Plan(status=status_in(request, DrainPhase.REFUSED, assessment))


def _unreadable(request: DrainRequest, error: PlanDocumentError) -> DrainPlan:
    assessment = Assessment(
        Progress.STALLED,
        ConditionReason.PLAN_UNREADABLE,
        f"{error}; what is on its way arrives, nothing more is begun: delete the BrokerDrain and "
        "create it again, what was moved before cannot be undone",
    )
    return Plan(status=blind_status(request, assessment))
