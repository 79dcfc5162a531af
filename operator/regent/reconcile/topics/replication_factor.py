"""Changing the replication factor of a topic: whether it may be, what to send, how far it is.

Nothing is stored for it. The resource says what is wanted and the topic's node what every partition
is on its way to, so any controller that comes goes on with the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from regent.admin.commands import ReassignTopic
from regent.admin.replica_assignment import BrokerRack
from regent.controller.topic_defaults import topic_defaults
from regent.controller.view import PartitionView, TopicView
from regent.model.topic_config import MIN_INSYNC_REPLICAS, parse_int
from regent.reconcile.checks import Finding
from regent.reconcile.topics.replica_planning import (
    MOVING_IN_CLUSTER,
    may_begin,
    plan_replicas,
)
from regent.reconcile.topics.request import TopicRequest
from regent.reconcile.verdicts import Assessment, Progress
from regent.resources.conditions import ConditionReason

_FIELD: Final = "spec.replicas"
_SHOWN: Final = 10
"""Brokers and partitions that a message lists."""


@dataclass(frozen=True, slots=True)
class ReplicaChange:
    """What can be done now about the replication factor, and what speaks against it.

    Attributes:
        command: None: nothing is to be sent.
    """

    command: ReassignTopic | None = None
    findings: tuple[Finding, ...] = ()


def replica_change(request: TopicRequest) -> ReplicaChange:
    """For a topic that the resource may change."""
    topic, factor = request.topic, request.resource.spec.replicas
    if topic is None or factor is None:
        return ReplicaChange()
    if all(len(p.target_replicas) == factor for p in topic.partitions):
        return ReplicaChange()
    obstacle = _obstacle(request, topic, factor)
    if obstacle is not None:
        return ReplicaChange(findings=(obstacle,))
    live = [BrokerRack(b.broker_id, b.rack) for b in request.view.brokers.values()]
    available = request.view.brokers_for_new_replicas
    eligible = [b for b in live if b.broker_id in available]
    limit = may_begin(topic, moving_elsewhere=request.moving_elsewhere)
    plan = plan_replicas(topic, factor=factor, live=live, eligible=eligible, limit=limit)
    command = ReassignTopic(topic.name, plan.targets, topic.topic_id) if plan.targets else None
    findings = (_too_few_brokers(factor, live, eligible, plan.unplaced),) if plan.unplaced else ()
    return ReplicaChange(command, findings)


def _obstacle(request: TopicRequest, topic: TopicView, factor: int) -> Finding | None:
    """What keeps all partitions from getting another number of replicas."""
    growing = [p for p in topic.partitions if len(p.target_replicas) < factor]
    return (
        _below_min_insync_replicas(request, topic, factor)
        or (_racks_of_some_only(request) if growing else None)
        or _racks_unknown(request, growing)
    )


def _below_min_insync_replicas(
    request: TopicRequest, topic: TopicView, factor: int
) -> Finding | None:
    """What the resource declares itself was checked before; this is for what others have set."""
    defaults = topic_defaults(request.view)
    configured = (request.config or {}).get(MIN_INSYNC_REPLICAS)
    declared = request.resource.spec.desired_config.get(MIN_INSYNC_REPLICAS)
    value = parse_int(declared or configured or "")
    if value is None and defaults is not None:
        value = defaults.min_insync_replicas
    if value is None:
        if all(len(p.target_replicas) <= factor for p in topic.partitions):
            return None
        return Finding(
            ConditionReason.BROKER_DEFAULTS_UNKNOWN,
            f"no broker has said yet what {MIN_INSYNC_REPLICAS} is; waiting for one before "
            "replicas are removed",
            _FIELD,
            is_transient=True,
        )
    if factor >= value:
        return None
    whose = "the topic's" if configured or declared else "the brokers' default"
    return _refused(
        topic,
        factor,
        f"{whose} {MIN_INSYNC_REPLICAS} is {value}: every write with acks=all would fail; set "
        f"replicas to at least {value}, or lower {MIN_INSYNC_REPLICAS} first",
    )


def _refused(topic: TopicView, factor: int, why: str) -> Finding:
    shown = " and ".join(map(str, sorted({len(p.target_replicas) for p in topic.partitions})))
    return Finding(
        ConditionReason.REPLICAS_MISMATCH,
        f"the topic has {shown} replicas per partition, {factor} are declared, but {why}",
        _FIELD,
    )


def _racks_of_some_only(request: TopicRequest) -> Finding | None:
    brokers = request.view.brokers.values()
    without = sorted(broker.broker_id for broker in brokers if broker.rack is None)
    if not without or len(without) == len(brokers):
        return None
    return Finding(
        ConditionReason.REPLICAS_MISMATCH,
        f"brokers {without[:_SHOWN]} have no rack while others have one, so replicas cannot be "
        "placed across racks; set broker.rack on all brokers or on none",
        _FIELD,
    )


def _racks_unknown(request: TopicRequest, growing: Sequence[PartitionView]) -> Finding | None:
    """The rack of a broker is known while it is alive only."""
    brokers = request.view.brokers
    if not any(broker.rack is not None for broker in brokers.values()):
        return None
    dead = {
        replica
        for partition in growing
        for replica in partition.target_replicas
        if replica not in brokers
    }
    if not dead:
        return None
    return Finding(
        ConditionReason.BROKERS_UNAVAILABLE,
        f"brokers {sorted(dead)[:_SHOWN]} have replicas and are not alive, so their racks are not "
        "known; waiting for them before others get replicas",
        _FIELD,
        is_transient=True,
    )


def _too_few_brokers(
    factor: int,
    live: Iterable[BrokerRack],
    eligible: Iterable[BrokerRack],
    partitions: tuple[int, ...],
) -> Finding:
    brokers = sorted(broker.broker_id for broker in eligible)
    others = sorted({broker.broker_id for broker in live}.difference(brokers))
    why = f", {others[:_SHOWN]} get none: they shut down, or a BrokerDrain has cordoned them"
    return Finding(
        ConditionReason.NOT_ENOUGH_BROKERS,
        f"{factor} replicas need {factor} live brokers, there are {len(brokers)} that can get some "
        f"({brokers[:_SHOWN]}){why if others else ''}; waiting for more, for partitions "
        f"{list(partitions[:_SHOWN])}",
        _FIELD,
        is_transient=True,
    )


def waits_for_room(request: TopicRequest) -> bool:
    """Whether partitions of other topics have to arrive before any of this one may be moved."""
    topic, factor = request.topic, request.resource.spec.replicas
    return (
        topic is not None
        and factor is not None
        and request.moving_elsewhere >= MOVING_IN_CLUSTER
        and any(len(p.target_replicas) != factor for p in topic.partitions)
    )


def replica_change_assessment(request: TopicRequest) -> Assessment | None:
    """Progressing while partitions do not have the declared number of replicas, otherwise None.

    A reassignment that only moves replicas, whoever started it, is no such change.
    """
    topic, factor = request.topic, request.resource.spec.replicas
    if topic is None or factor is None:
        return None
    waiting = [p for p in topic.partitions if len(p.replicas) - len(p.adding_replicas) != factor]
    if not waiting:
        return None
    moving = [p for p in waiting if p.is_being_reassigned]
    total = len(topic.partitions)
    text = f"{total - len(waiting)} of {total} partitions have {factor} replicas"
    if moving:
        text += f", {len(moving)} are getting there"
    brokers = sorted({r for p in moving for r in p.target_replicas if r not in p.isr})
    if brokers:
        text += f"; brokers {brokers[:_SHOWN]} are not in sync with all of them yet"
        dead = [broker for broker in brokers if broker not in request.view.brokers]
        if dead:
            text += f"; of these {dead[:_SHOWN]} are not alive, and are waited for"
    if waits_for_room(request):
        text += (
            f"; {request.moving_elsewhere} partitions of other topics are being reassigned, and "
            f"further ones wait while there are {MOVING_IN_CLUSTER} or more"
        )
    return Assessment(Progress.PROGRESSING, ConditionReason.REPLICAS_CHANGING, text)
