"""Requests for the tables of the tests of PartitionReassignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from regent.admin.commands import AlterPartitionReassignments
from regent.controller.view import ClusterView, PartitionView, TopicView
from regent.model.cluster import Broker
from regent.model.partition import TopicPartition
from regent.model.topic_config import BrokerFacts
from regent.model.topic_name_rules import TopicNameRules
from regent.reconcile.reassignments.execution import ReassignmentPlan
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.reassignments.request import (
    DeclaredReplicas,
    ReassignmentRequest,
    RefusedMove,
    SentMove,
)
from regent.reconcile.request import Absence
from regent.resources.partition_reassignment import (
    PartitionReassignment,
    parse_partition_reassignment,
)
from tests.unit.reconcile.requests import MONOTONIC_S, NOW, partition, said, state, status_of

AUTOMATIC = {"policy": "Automatic"}


def tp(partition: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, partition)


def resource(
    *, status: Mapping[str, Any] | None = None, generation: int = 1, **spec: Any
) -> PartitionReassignment:
    """A PartitionReassignment; approved by itself unless said otherwise."""
    parsed = parse_partition_reassignment(
        {
            "metadata": {
                "name": "move",
                "namespace": "shop",
                "uid": "u1",
                "generation": generation,
                "creationTimestamp": "2026-05-01T10:00:00Z",
            },
            "spec": {"approval": AUTOMATIC, **spec},
            "status": status or {},
        }
    )
    assert isinstance(parsed, PartitionReassignment), parsed
    return parsed


def assign(*replicas: tuple[int, ...] | None, topic: str = "orders") -> list[dict[str, Any]]:
    """``spec.assignments`` of the partitions of a topic; None: leave that one out."""
    return [
        {"topic": topic, "partition": index, "replicas": list(each)}
        for index, each in enumerate(replicas)
        if each is not None
    ]


def racked(seen: ClusterView, *racks: str | None) -> ClusterView:
    """The view with brokers 1, 2, ... in these racks."""
    brokers = {i: Broker(i, i, (), rack=rack) for i, rack in enumerate(racks, start=1)}
    return msgspec.structs.replace(seen, brokers=brokers)


def with_default(seen: ClusterView, min_insync_replicas: str) -> ClusterView:
    """The view of a cluster whose broker 1 has said what its min.insync.replicas is."""
    facts = BrokerFacts(
        broker_id=1, settings={"min.insync.replicas": min_insync_replicas}, has_answered=True
    )
    return msgspec.structs.replace(seen, broker_facts=(facts,))


def request(
    subject: PartitionReassignment,
    seen: ClusterView,
    *,
    configs: Mapping[str, Mapping[str, str]] | None = None,
    sent: Mapping[TopicPartition, SentMove] | None = None,
    refused: Mapping[TopicPartition, RefusedMove] | None = None,
    absence: Absence | None = None,
    rules: Sequence[str] = (),
    others: Mapping[TopicPartition, str] | None = None,
    declared: Mapping[str, DeclaredReplicas] | None = None,
) -> ReassignmentRequest:
    """A request that knows the (empty) configurations of all topics."""
    moving = {
        TopicPartition(name, each.partition): each
        for name, shown in seen.topics.items()
        for each in shown.partitions
        if each.adding_replicas or each.removing_replicas
    }
    return ReassignmentRequest(
        resource=subject,
        view=seen,
        topics=tuple(seen.topics),
        configs={name: {} for name in seen.topics} if configs is None else configs,
        moving=moving,
        sent=sent or {},
        refused=refused or {},
        seen_at=MONOTONIC_S,
        monotonic_s=MONOTONIC_S,
        now=NOW,
        absence=absence or Absence(),
        name_rules=TopicNameRules.parse(rules),
        moved_by_others=others or {},
        declared=declared or {},
    )


def moved(index: int, origin: tuple[int, ...], target: tuple[int, ...]) -> PartitionView:
    """A partition on its way, none of the new replicas in sync."""
    staying = tuple(b for b in target if b in origin)
    return partition(
        index,
        (*target, *(b for b in origin if b not in target)),
        origin,
        leader=origin[0] if origin else staying[0],
        adding=tuple(b for b in target if b not in origin),
        removing=tuple(b for b in origin if b not in target),
    )


def orders(*partitions: PartitionView | tuple[int, ...], czxid: int = 7) -> TopicView:
    """The topic ``orders`` with these partitions, or replicas."""
    shown = tuple(
        each if isinstance(each, PartitionView) else partition(index, each)
        for index, each in enumerate(partitions)
    )
    return TopicView("orders", None, shown, czxid=czxid)


def begun(subject: PartitionReassignment, seen: ClusterView, **spec: Any) -> PartitionReassignment:
    """The resource with the status that it has once its execution has begun in this view, and
    then with another spec."""
    plan = plan_reassignment(request(subject, seen))
    assert plan.status_first, state(plan)
    return subject.model_copy(
        update={
            "status": status_of(plan),
            "spec": subject.spec.model_validate(
                {**subject.spec.model_dump(by_alias=True, exclude_unset=True), **spec}
            ),
        }
    )


def targets(plan: ReassignmentPlan) -> dict[TopicPartition, tuple[int, ...] | None]:
    """The moves that a plan sends."""
    if not plan.commands:
        return {}
    (command,) = plan.commands
    assert isinstance(command, AlterPartitionReassignments)
    return dict(command.targets)


def message(plan: ReassignmentPlan) -> str:
    """What a plan says first."""
    return said(plan).message
