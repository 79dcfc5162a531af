"""``spec.rebalance``: when a plan is wanted of the planner, and what follows from its answer.

The planner is another process, which takes a while. So a reconciliation says which plan is wanted
(a :class:`~regent.planning.orders.PlanningOrder`), and a later one finds the outcome. From then on
the plan is as good as any other: it is checked, gets a hash, is approved and executed. It is kept
as long as its partitions are where it has them, for whoever is about to approve it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from regent.model.partition import TopicPartition
from regent.planning.goals import PlannerGoals
from regent.planning.orders import PlanningOrder, PlanningOutcome, live_brokers
from regent.planning.results import (
    HistoryUnusable,
    InfeasibleGoals,
    InvalidGoals,
    PlannedChanges,
    PlannerFailed,
    PlannerMissing,
    PlanResult,
)
from regent.planning.snapshotting import expected_replicas
from regent.reconcile.checks import Finding
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from regent.reconcile.reassignments.request import HeldUp, ReassignmentRequest
from regent.reconcile.reassignments.stages import MoveState, find_partition, statuses
from regent.reconcile.reassignments.status import readable_plan
from regent.reconcile.reassignments.validation import REBALANCE_CHECKS, plan_findings
from regent.reconcile.unreadable_topics import problem_in
from regent.resources.conditions import ConditionReason, enumerate_some, shorten
from regent.resources.partition_reassignment_status import (
    MAX_REMARKS,
    MAX_UNMET_GOALS,
    RebalanceStatus,
    UnmetGoal,
)
from regent.resources.rebalance import Goal, Rebalance

FIELD: Final = "spec.rebalance"

_FIRST_PAUSE_S: Final = 10.0
"""Before a planner that has failed, or whose plan was out of date, is asked again; doubled with
each further attempt."""

_LONGEST_PAUSE_S: Final = 600.0
"""Also before goals that could not be met, or did not fit, are tried again: the cluster may have
changed in a way that nobody has noticed."""

_DISK_GOALS: Final = frozenset({Goal.DISK_CAPACITY.value, Goal.DISK_USAGE_DISTRIBUTION.value})

_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalancing:
    """How far the planning is.

    Attributes:
        plan: The plan that there is; None: there is none.
        findings: What keeps it from being executed, or from being made.
        order: The plan that is wanted of the planner, or whose outcome is still needed; None: none.
        wait_s: When to look again, if nothing happens before.
        status: What the planner says of a plan that is new; None: what is stored stays.
        dropped: Which plan there was and why it is none any more, for people; "": there was none,
            or it stays.
    """

    plan: MovePlan | None = None
    findings: tuple[Finding, ...] = ()
    order: PlanningOrder | None = None
    wait_s: float | None = None
    status: RebalanceStatus | None = None
    dropped: str = ""


def rebalancing(request: ReassignmentRequest, spec: Rebalance) -> Rebalancing:
    """Where the planning of a resource is whose execution has not begun."""
    stored = readable_plan(request.resource.status.plan)
    if stored is None or not stored.moves:
        return _being_planned(request, spec)
    unfit = list(_unfit(request, stored))
    if not unfit:
        findings = _findings(request, stored)
        # What heals by itself is no reason to take a plan from whoever is about to approve it.
        unfit = [finding.message for finding in findings if not _heals(finding)]
        if not unfit:
            return Rebalancing(plan=stored, findings=findings)
    dropped = f"the plan {stored.hash} is dropped, another one is made: {_some(unfit)}"
    return dataclasses.replace(_being_planned(request, spec), dropped=dropped)


def _being_planned(request: ReassignmentRequest, spec: Rebalance) -> Rebalancing:
    """Where the planning is that has stored no plan yet."""
    wanted = order_of(request, spec)
    outcome = request.planned
    if outcome is None or not outcome.order.is_like(wanted):
        return _begin(request, wanted)
    if isinstance(outcome.result, PlannedChanges):
        return _planned(request, outcome, outcome.result)
    pause_s = _pause_s(outcome)
    is_over = outcome.at + pause_s <= request.monotonic_s
    others = (*_held_remarks(request), *_unknown_disks(outcome))
    refusals = _refusals(outcome.result, others, is_tried_again=is_over)
    waiting = Rebalancing(findings=refusals, order=outcome.order)
    return _after(request, waiting, outcome, pause_s)


def _heals(finding: Finding) -> bool:
    """Whether a plan is worth waiting for. A cordon stays: another plan does without the broker."""
    return finding.is_transient and finding.reason is not ConditionReason.BROKERS_CORDONED


def order_of(request: ReassignmentRequest, spec: Rebalance) -> PlanningOrder:
    """The plan that a resource wants, as the cluster is. Brokers that are cordoned get nothing."""
    view = request.view
    cordoned = [broker for broker in view.cordoned if broker in view.brokers]
    return PlanningOrder(
        goals=PlannerGoals(
            names=tuple(goal.value for goal in spec.goals),
            replica_balance_percent=spec.replica_balance_percent,
            leader_balance_percent=spec.leader_balance_percent,
            max_replicas=spec.max_replicas_per_broker,
            drained=tuple(sorted(spec.drained_brokers)),
            excluded=tuple(sorted({*spec.excluded_brokers, *cordoned})),
            pinned=tuple(sorted({*spec.pinned_topics, *_held_topics(request)})),
            min_leaders=tuple(sorted(spec.min_topic_leaders_per_broker.items())),
        ),
        brokers=live_brokers(view),
        spark=spec.spark,
        history=spec.history,
    )


def _held_topics(request: ReassignmentRequest) -> dict[str, HeldUp]:
    """Topics that stay as they are, as another PartitionReassignment moves them and does not go on;
    each with the first one."""
    found: dict[str, HeldUp] = {}
    for each in request.under_way.held_up:
        for topic in each.topics:
            if topic in request.view.topics and not request.view.topics[topic].is_being_deleted:
                found.setdefault(topic, each)
    return found


def _unfit(request: ReassignmentRequest, plan: MovePlan) -> Iterator[str]:
    """Why a stored plan is of no use any more: not all its partitions are where it has them."""
    if plan.cluster_id != request.view.cluster_id:
        yield f"it is for Kafka cluster {plan.cluster_id}, and this is {request.view.cluster_id}"
        return
    for status in statuses(plan, request.view):
        partition, move = status.partition, status.move
        if status.state is MoveState.DRIFTED or partition is None:
            yield f"{move.tp}: {status.problem}"
        elif not partition.is_being_reassigned and partition.replicas != move.replicas:
            yield _is_elsewhere(move.tp, partition.replicas, move.replicas)


def _is_elsewhere(tp: TopicPartition, replicas: tuple[int, ...], expected: tuple[int, ...]) -> str:
    return f"{tp} has the replicas {list(replicas)}, not {list(expected)}"


def _some(reasons: Sequence[str]) -> str:
    return enumerate_some(reasons, limit=_NAMED)


def _begin(request: ReassignmentRequest, wanted: PlanningOrder) -> Rebalancing:
    """Ask for a plan, once the cluster is one that a plan can be made for."""
    obstacles = tuple(_obstacles(request, wanted))
    if obstacles:
        return Rebalancing(findings=obstacles)
    return Rebalancing(order=wanted)


def _obstacles(request: ReassignmentRequest, wanted: PlanningOrder) -> Iterator[Finding]:
    """What the planner would take for the cluster as it is to stay: it moves everything off a
    broker that is merely restarted, and a partition that moves would be moved twice."""
    view = request.view
    available = view.available_brokers
    hosts = {
        broker
        for topic in view.topics.values()
        if not topic.is_being_deleted
        for partition in topic.partitions
        for broker in partition.replicas
        if broker in view.brokers or broker not in partition.adding_replicas
    }
    missing = sorted(hosts.difference(available).difference(wanted.goals.drained))
    if missing:
        yield Finding(
            ConditionReason.BROKERS_UNAVAILABLE,
            f"brokers {missing} have replicas, and are not alive or shut down; they are waited "
            "for. To have their replicas moved to others, create a PartitionReassignment with "
            "spec.rebalance.drainedBrokers",
            FIELD,
            is_transient=True,
        )
    problem = problem_in(view)
    if problem is not None:
        yield Finding(
            ConditionReason.TOPICS_UNREADABLE,
            f"{problem}; a plan would not count their replicas: the plan "
            "is made once they are repaired",
            FIELD,
            is_transient=True,
        )
    yield from _others_under_way(request, wanted)


def _others_under_way(request: ReassignmentRequest, wanted: PlanningOrder) -> Iterator[Finding]:
    """What else moves, or is about to. What does not go on by itself is waited for only where the
    plan cannot leave it as it is."""
    under_way = request.under_way
    problems: list[str] = []
    if under_way.going_on:
        named = enumerate_some(under_way.going_on, limit=_NAMED)
        problems.append(
            f"the plan is made when no other PartitionReassignment is executed: {named}"
        )
    held = {tp for each in under_way.held_up for tp in each.partitions}
    moving = sorted(str(tp) for tp in request.moving if tp not in held)
    if moving:
        named = enumerate_some(moving, limit=_NAMED)
        problems.append(
            f"{len(moving)} partitions are being moved; the plan is made when nothing moves: "
            f"{named}"
        )
    problems.extend(_held_on_drained(request, wanted))
    for problem in problems:
        yield Finding(ConditionReason.REASSIGNMENT_IN_PROGRESS, problem, FIELD, is_transient=True)


def _held_on_drained(request: ReassignmentRequest, wanted: PlanningOrder) -> Iterator[str]:
    """Topics that have to stay as they are, on brokers that shall have no replica."""
    drained = frozenset(wanted.goals.drained)
    for topic, held in sorted(_held_topics(request).items()):
        hosts = {
            broker
            for partition in request.view.topics[topic].partitions
            for broker in expected_replicas(partition, request.view)
        }
        if drained & hosts:
            yield (
                f"topic {topic} has replicas on brokers {sorted(drained & hosts)}, which are to be "
                f"drained, and PartitionReassignment {held.name} moves partitions of it. That one "
                f"does not go on ({held.waits_for}): it is waited for; cancel it "
                "(spec.desiredState: Cancelled) to have the plan made"
            )


def _planned(
    request: ReassignmentRequest, outcome: PlanningOutcome, result: PlannedChanges
) -> Rebalancing:
    moved = tuple(dict.fromkeys(_moved_meanwhile(request, result)))
    if moved:
        problem = f"the plan is out of date already, another one is made: {_some(moved)}"
        finding = Finding(ConditionReason.PLAN_OUTDATED, problem, FIELD, is_transient=True)
        waiting = Rebalancing(findings=(finding,), order=outcome.order)
        after = _after(request, waiting, outcome, _pause_s(outcome))
        return dataclasses.replace(after, dropped=problem)
    plan = _move_plan(request, result)
    findings = _findings(request, plan)
    if not findings:
        status = _status(request, outcome, result)
        return Rebalancing(plan=plan, order=outcome.order, status=status)
    waiting = Rebalancing(findings=findings, order=outcome.order)
    return _after(request, waiting, outcome, _LONGEST_PAUSE_S)


def _moved_meanwhile(request: ReassignmentRequest, result: PlannedChanges) -> Iterator[str]:
    """Which partitions of a new plan are not where they were when the snapshot was taken."""
    for change in result.changes:
        tp = TopicPartition(change.topic, change.partition)
        topic = request.view.topics.get(change.topic)
        if topic is None or topic.is_being_deleted:
            yield f"topic {change.topic} does not exist any more"
            continue
        partition = find_partition(topic, change.partition)
        if partition is None:
            yield f"{tp} does not exist any more"
        elif partition.replicas != change.previous and not partition.is_being_reassigned:
            yield _is_elsewhere(tp, partition.replicas, change.previous)


def _move_plan(request: ReassignmentRequest, result: PlannedChanges) -> MovePlan:
    """The planner's changes as moves of the partitions that there are. Those to brokers that are
    short of room keep the order of its batches."""
    topics = request.view.topics
    plan = MovePlan.of(
        request.view.cluster_id,
        [
            Move(each.topic, each.partition, topics[each.topic].czxid, each.previous, each.replicas)
            for each in result.changes
        ],
    )
    batches = {TopicPartition(each.topic, each.partition): each.batch for each in result.changes}
    return plan.in_batches(result.short_of_room, batches)


def _findings(request: ReassignmentRequest, plan: MovePlan) -> tuple[Finding, ...]:
    fields = {move.tp: FIELD for move in plan.moves}
    return tuple(plan_findings(request, plan, fields, checks=REBALANCE_CHECKS))


def _after(
    request: ReassignmentRequest,
    waiting: Rebalancing,
    outcome: PlanningOutcome,
    pause_s: float,
) -> Rebalancing:
    """Try again after a pause. What is wrong stays said until there is another outcome."""
    left_s = outcome.at + pause_s - request.monotonic_s
    if left_s > 0:
        return Rebalancing(findings=waiting.findings, order=waiting.order, wait_s=left_s)
    begun = _begin(request, outcome.order.again())
    return Rebalancing(findings=begun.findings or waiting.findings, order=begun.order)


def _pause_s(outcome: PlanningOutcome) -> float:
    if not isinstance(outcome.result, InfeasibleGoals | InvalidGoals):
        return float(
            min(_FIRST_PAUSE_S * 2 ** min(outcome.order.attempt - 1, 10), _LONGEST_PAUSE_S)
        )
    return _LONGEST_PAUSE_S


def _unknown_disks(outcome: PlanningOutcome) -> tuple[str, ...]:
    """What the snapshot lacked, where goals of disks may have been refused for that: the planner
    knows which brokers lack a capacity, and not why."""
    are_disks_asked_for = _DISK_GOALS.intersection(outcome.order.goals.names)
    return outcome.remarks if are_disks_asked_for else ()


def _refusals(
    result: PlanResult, others: Iterable[str], *, is_tried_again: bool
) -> tuple[Finding, ...]:
    """Why there is no plan.

    Args:
        others: What goals that cannot be met, or do not fit, may come of: what others keep it from
            moving, what is not known. For people.
        is_tried_again: Whether the next attempt has begun.
    """
    match result:
        case InfeasibleGoals(reasons):
            return tuple(
                Finding(ConditionReason.GOALS_INFEASIBLE, reason, FIELD)
                for reason in (*reasons, *others)
            )
        case InvalidGoals(problem):
            return tuple(
                Finding(ConditionReason.INVALID_REBALANCE, reason, FIELD)
                for reason in (problem, *others)
            )
        case PlannerMissing(problem):
            return (Finding(ConditionReason.PLANNER_MISSING, problem, FIELD),)
        case HistoryUnusable(problem):
            return (Finding(ConditionReason.HISTORY_UNUSABLE, problem, FIELD, is_transient=True),)
        case PlannerFailed(problem):
            message = "the planner has failed and is started again"
            if is_tried_again:
                message = "the planner is at work again, after it has failed"
            message += f": {problem}"
            return (Finding(ConditionReason.PLANNER_FAILED, message, FIELD, is_transient=True),)
        case PlannedChanges():
            return ()


def _status(
    request: ReassignmentRequest, outcome: PlanningOutcome, result: PlannedChanges
) -> RebalanceStatus:
    return RebalanceStatus(
        bytes=result.bytes,
        leader_changes=result.leader_changes,
        lower_bound=result.lower_bound,
        unmet_goals=tuple(
            UnmetGoal(goal=goal.name, reason=shorten(goal.reason, limit=512))
            for goal in result.missed[:MAX_UNMET_GOALS]
        ),
        remarks=_remarks(
            (*result.warnings, *_held_remarks(request), *result.notes, *outcome.remarks)
        ),
    )


def _held_remarks(request: ReassignmentRequest) -> Iterator[str]:
    """Which topics the plan leaves as they are though its spec does not say so."""
    for held in request.under_way.held_up:
        topics = [topic for topic, first in _held_topics(request).items() if first is held]
        if topics:
            yield (
                f"topics stay as they are: {enumerate_some(topics, limit=_NAMED)}; "
                f"PartitionReassignment {held.name} moves partitions of them, and does not go on "
                f"({held.waits_for})"
            )


def _remarks(remarks: Sequence[str]) -> tuple[str, ...]:
    return tuple(shorten(remark, limit=512) for remark in remarks[:MAX_REMARKS])
