"""Whether a plan may be executed."""

from __future__ import annotations

from regent.reconcile.reassignments.move_plan import MovePlan
from regent.resources.conditions import ConditionReason, ConditionStatus, ConditionType, Verdict
from regent.resources.partition_reassignment import Approval, ApprovalPolicy


def approval_verdict(approval: Approval, plan: MovePlan) -> Verdict:
    """The condition ``Approved`` for a plan whose execution has not begun."""
    if approval.plan_hash == plan.hash:
        return _approved("spec.approval.planHash names the plan")
    if approval.plan_hash is not None:
        return _refused(
            ConditionReason.PLAN_CHANGED,
            f"spec.approval.planHash names the plan {approval.plan_hash}, the plan now is "
            f"{plan.hash}; set it to that, or remove it",
        )
    if approval.policy is ApprovalPolicy.AUTOMATIC:
        return _approved("spec.approval.policy is Automatic")
    needed = f"set spec.approval.planHash to {plan.hash} to have it executed"
    if approval.policy is ApprovalPolicy.MANUAL:
        return _refused(ConditionReason.APPROVAL_NEEDED, f"{describe(plan)}; {needed}")
    exceeded = _exceeded(approval, plan)
    if exceeded:
        return _refused(
            ConditionReason.APPROVAL_NEEDED,
            f"the plan exceeds spec.approval.limits: {', '.join(exceeded)}; {needed}",
        )
    return _approved("the plan is within spec.approval.limits")


def describe(plan: MovePlan) -> str:
    """A plan in one line."""
    return (
        f"the plan changes {len(plan.moves)} partitions, copies {plan.replica_moves} replicas and "
        f"changes {plan.leader_changes} preferred leaders"
    )


def _exceeded(approval: Approval, plan: MovePlan) -> list[str]:
    limits = approval.limits
    return [
        f"{field} is {actual}, more than {limit}"
        for field, actual, limit in (
            ("partitions", len(plan.moves), limits.partitions),
            ("replicaMoves", plan.replica_moves, limits.replica_moves),
            ("leaderChanges", plan.leader_changes, limits.leader_changes),
        )
        if limit is not None and actual > limit
    ]


def _approved(message: str) -> Verdict:
    return Verdict(
        ConditionType.APPROVED, ConditionStatus.TRUE, ConditionReason.PLAN_APPROVED, message
    )


def _refused(reason: ConditionReason, message: str) -> Verdict:
    return Verdict(ConditionType.APPROVED, ConditionStatus.FALSE, reason, message)
