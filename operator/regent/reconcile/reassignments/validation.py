"""From what a resource asks for to a plan, and everything that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from regent.controller.reassignment.algebra import target_problem
from regent.controller.topic_defaults import TopicDefaults, topic_defaults
from regent.controller.view import ClusterView, PartitionView
from regent.model.partition import TopicPartition
from regent.model.topic_config import MIN_INSYNC_REPLICAS, parse_int
from regent.reconcile.checks import Check, Finding, all_findings
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from regent.reconcile.reassignments.replication_factor import ReplicaPlacement
from regent.reconcile.reassignments.request import ReassignmentRequest
from regent.reconcile.reassignments.sources import explicit_targets
from regent.reconcile.reassignments.stages import find_partition
from regent.reconcile.unreadable_topics import problem_of
from regent.resources.conditions import ConditionReason
from regent.resources.kafka_topic_status import MAX_REPLICAS
from regent.resources.partition_reassignment import RackPolicy
from regent.resources.partition_reassignment_status import MAX_DOCUMENT_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """A move with what it is judged by.

    Attributes:
        field: Where the resource asks for it.
        keeps_racks: Whether it may not lose a rack.
        available: Brokers that may get replicas.
        defaults: Those of the brokers for topics; None: no broker has said them yet.
        waits_for: That another resource moves the partition; None: none does.
        undone_by: That another resource would undo it; None: none would.
    """

    move: Move
    partition: PartitionView
    view: ClusterView
    config: Mapping[str, str]
    field: str
    keeps_racks: bool
    available: frozenset[int]
    defaults: TopicDefaults | None
    waits_for: str | None
    undone_by: str | None


def make_plan(request: ReassignmentRequest) -> tuple[MovePlan, tuple[Finding, ...]]:
    """The plan for a resource by the present view, and what is wrong: with findings the plan is
    not to be executed."""
    targets, fields, findings = _targets(request)
    moves: list[Move] = []
    for tp, target in targets.items():
        forbidden = _forbidden(request, tp.topic, fields[tp])
        if forbidden is not None:
            findings.append(forbidden)
            continue
        topic = request.view.topics.get(tp.topic)
        partition = None if topic is None else find_partition(topic, tp.partition)
        if topic is None or partition is None or topic.is_being_deleted:
            findings.append(_unknown(request.view, tp, fields[tp]))
            continue
        move = Move(tp.topic, tp.partition, topic.czxid, partition.replicas, target)
        if target == partition.replicas and tp not in request.moving:
            continue
        moves.append(move)
    plan = MovePlan.of(request.view.cluster_id, moves)
    findings.extend(plan_findings(request, plan, fields))
    return plan, tuple(findings)


def plan_findings(
    request: ReassignmentRequest,
    plan: MovePlan,
    fields: Mapping[TopicPartition, str],
    *,
    checks: Sequence[Check[PlannedMove]] | None = None,
) -> Iterator[Finding]:
    """Yield the problems of a plan's moves. The partitions are where the plan expects them. A topic
    that the namespace may not move yields no other problem.

    Args:
        checks: Default: :data:`MOVE_CHECKS`.
    """
    chain = MOVE_CHECKS if checks is None else checks
    view = request.view
    keeps_racks = request.resource.spec.racks is RackPolicy.KEEP
    available, defaults = view.available_brokers, topic_defaults(view)
    for move in plan.moves:
        field = fields.get(move.tp, "")
        forbidden = _forbidden(request, move.topic, field)
        if forbidden is not None:
            yield forbidden
            continue
        partition = find_partition(view.topics[move.topic], move.partition)
        assert partition is not None, f"{move.tp} is in the plan and not in the view"
        yield from all_findings(
            chain,
            PlannedMove(
                move=move,
                partition=partition,
                view=view,
                config=request.configs.get(move.topic, {}),
                field=field,
                keeps_racks=keeps_racks,
                available=available,
                defaults=defaults,
                waits_for=request.waits_for(move),
                undone_by=request.undone_by(move),
            ),
        )
    if len(plan.document) > MAX_DOCUMENT_LENGTH:
        remedy = "divide it into several PartitionReassignments"
        if request.resource.spec.rebalance is not None:
            remedy = "pin topics (spec.rebalance.pinnedTopics), or choose larger thresholds"
        yield Finding(
            ConditionReason.TOO_LARGE,
            f"the plan moves {len(plan.moves)} partitions and is {len(plan.document)} characters "
            f"long, more than {MAX_DOCUMENT_LENGTH}; {remedy}",
        )


def wrong_partitions(request: ReassignmentRequest) -> dict[TopicPartition, int]:
    """The partitions that have another number of replicas than ``replicationFactor`` asks for, each
    with that number; of topics that the namespace may move."""
    namespace = request.resource.metadata.namespace
    return {
        TopicPartition(name, partition.partition): factor
        for name, factor in (request.resource.spec.replication_factor or {}).items()
        if name in request.view.topics and request.name_rules.allow(namespace, name)
        for partition in request.view.topics[name].partitions
        if len(partition.replicas) != factor
    }


def _targets(
    request: ReassignmentRequest,
) -> tuple[dict[TopicPartition, tuple[int, ...]], dict[TopicPartition, str], list[Finding]]:
    """Targets by partition, the fields that ask for them, and what is wrong with these."""
    spec = request.resource.spec
    wanted = explicit_targets(spec)
    if spec.replication_factor is None:
        return wanted.targets, wanted.fields, wanted.findings
    hosts = request.view.brokers_for_new_replicas
    placement = ReplicaPlacement(request.view, hosts=hosts)
    for name, factor in sorted(spec.replication_factor.items()):
        at = f"spec.replicationFactor[{name}]"
        topic = request.view.topics.get(name)
        forbidden = _forbidden(request, name, at)
        if forbidden is not None:
            wanted.findings.append(forbidden)
        elif topic is None or topic.is_being_deleted:
            wanted.findings.append(_unknown(request.view, name, at))
        elif factor > len(hosts):
            wanted.findings.append(
                Finding(
                    ConditionReason.NOT_ENOUGH_BROKERS,
                    f"{factor} replicas need as many brokers; alive and not cordoned are "
                    f"{sorted(hosts)}",
                    at,
                    is_transient=True,
                )
            )
        else:
            for tp, replicas in placement.resized(topic, factor).items():
                wanted.add(tp, replicas, at=at)
    return wanted.targets, wanted.fields, wanted.findings


def _forbidden(request: ReassignmentRequest, topic: str, at: str) -> Finding | None:
    """Who may not declare a topic may not move it, and learns nothing about it."""
    namespace = request.resource.metadata.namespace
    if request.name_rules.allow(namespace, topic):
        return None
    return Finding(
        ConditionReason.TOPIC_NAME_NOT_ALLOWED,
        f"topic_name_rules do not let namespace {namespace} move topic {topic}; leave it out, or "
        "have the setting allow it",
        at,
    )


def _unknown(view: ClusterView, what: TopicPartition | str, at: str) -> Finding:
    """A topic may yet be created, and may grow: it is waited for."""
    name = what if isinstance(what, str) else what.topic
    topic, problem = view.topics.get(name), problem_of(view, name)
    if problem is not None:
        message = f"{problem}; its repair is waited for"
        return Finding(ConditionReason.TOPICS_UNREADABLE, message, at, is_transient=True)
    if topic is None:
        message = f"there is no topic {name}; it is waited for"
    elif topic.is_being_deleted:
        message = f"topic {name} is being deleted"
    else:
        message = f"topic {name} has no partition {what}; it is waited for"
    return Finding(ConditionReason.UNKNOWN_TOPIC, message, at, is_transient=True)


def _replica_list(subject: PlannedMove) -> Finding | None:
    target = subject.move.target
    problem = target_problem(target)
    if problem is None and len(target) > MAX_REPLICAS:
        problem = f"{len(target)} replicas are more than {MAX_REPLICAS}"
    if problem is None:
        return None
    return Finding(
        ConditionReason.INVALID_REPLICA_ASSIGNMENT,
        f"partition {subject.move.tp}: {problem}",
        subject.field,
    )


def _live_brokers(subject: PlannedMove) -> Finding | None:
    missing = sorted({b for b in subject.move.adding if b not in subject.available})
    if not missing:
        return None
    return Finding(
        ConditionReason.BROKERS_UNAVAILABLE,
        f"partition {subject.move.tp} goes to brokers {missing}, which are not alive or shut "
        f"down; alive are {sorted(subject.available)}",
        subject.field,
        is_transient=True,
    )


def _not_cordoned(subject: PlannedMove) -> Finding | None:
    """It would be moved off again."""
    cordoned = [b for b in subject.move.adding if b in subject.view.cordoned]
    if not cordoned:
        return None
    return Finding(
        ConditionReason.BROKERS_CORDONED,
        f"partition {subject.move.tp} goes to brokers {cordoned}, which a BrokerDrain has "
        "cordoned; choose others, or delete the BrokerDrain",
        subject.field,
        is_transient=True,
    )


def _min_insync_replicas(subject: PlannedMove) -> Finding | None:
    replicas = len(subject.move.target)
    own = parse_int(subject.config.get(MIN_INSYNC_REPLICAS, ""))
    defaults = subject.defaults
    if own is None and defaults is None:
        return _min_insync_replicas_unknown(subject)
    needed = own or (1 if defaults is None else defaults.min_insync_replicas)
    if not 0 < replicas < needed:
        return None
    whose = "the brokers' default" if own is None else "that of its topic"
    return Finding(
        ConditionReason.BELOW_MIN_INSYNC_REPLICAS,
        f"partition {subject.move.tp} would have {replicas} replicas, fewer than "
        f"{MIN_INSYNC_REPLICAS}={needed}, {whose}: producers with acks=all could not write; lower "
        "it first, or keep more replicas",
        subject.field,
    )


def _min_insync_replicas_unknown(subject: PlannedMove) -> Finding | None:
    replicas, partition = len(subject.move.target), subject.partition
    if not 0 < replicas < len(partition.replicas) - len(partition.adding_replicas):
        return None
    return Finding(
        ConditionReason.BROKER_DEFAULTS_UNKNOWN,
        f"partition {subject.move.tp} would have fewer replicas than now, and no broker has said "
        f"yet what {MIN_INSYNC_REPLICAS} is; waiting for one",
        subject.field,
        is_transient=True,
    )


def _racks(subject: PlannedMove) -> Finding | None:
    if not subject.keeps_racks:
        return None
    move = subject.move
    # The rack of a broker is known while it is alive. One that is not may be in one of its own.
    before, _ = _known_racks(move.replicas, subject.view)
    after, unknown = _known_racks(move.target, subject.view)
    if after + unknown >= min(before, len(move.target)):
        return None
    return Finding(
        ConditionReason.RACKS_LOST,
        f"partition {move.tp} would go from {before} racks to {after} with the replicas "
        f"{list(move.target)}; choose brokers in other racks, or set spec.racks to Ignore",
        subject.field,
    )


def _known_racks(replicas: tuple[int, ...], view: ClusterView) -> tuple[int, int]:
    """On how many racks replicas are, and of how many replicas the rack is not known."""
    racks = [view.brokers[b].rack if b in view.brokers else None for b in replicas]
    return len(set(racks) - {None}), racks.count(None)


def _not_moving(subject: PlannedMove) -> Finding | None:
    partition = subject.partition
    if not partition.is_being_reassigned:
        return None
    return Finding(
        ConditionReason.REASSIGNMENT_IN_PROGRESS,
        f"partition {subject.move.tp} is being moved already; its plan is made when it has arrived",
        subject.field,
        is_transient=True,
    )


def _not_moved_by_another(subject: PlannedMove) -> Finding | None:
    if subject.waits_for is None:
        return None
    message = f"partition {subject.move.tp}: {subject.waits_for}"
    return Finding(
        ConditionReason.REASSIGNMENT_IN_PROGRESS, message, subject.field, is_transient=True
    )


def _not_undone(subject: PlannedMove) -> Finding | None:
    if subject.undone_by is None:
        return None
    message = f"partition {subject.move.tp}: {subject.undone_by}"
    return Finding(ConditionReason.RESOURCE_CONFLICT, message, subject.field)


MOVE_CHECKS: Final[tuple[Check[PlannedMove], ...]] = (
    _replica_list,
    _live_brokers,
    _not_cordoned,
    _min_insync_replicas,
    _racks,
    _not_moving,
    _not_moved_by_another,
    _not_undone,
)

REBALANCE_CHECKS: Final[tuple[Check[PlannedMove], ...]] = tuple(
    check for check in MOVE_CHECKS if check is not _min_insync_replicas
)
"""Those for a plan of the planner, which gives no partition fewer replicas."""
