"""Growing a topic by command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.cordon import brokers_for_new_replicas
from regent.controller.commands import Accepted, CreatePartitions, Outcome, Reason, Rejected
from regent.controller.topics.replica_assignment import (
    Placement,
    PlacementError,
    continue_assignment,
)
from regent.controller.topics.topic_placement import (
    given_assignment,
    placement_refused,
)
from regent.controller.topics.topic_refusals import (
    concurrent_change,
    not_usable,
    refused_by_zookeeper,
    too_large,
    unknown,
)
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import MalformedZNodeError, UnexpectedZooKeeperError
from regent.model.partition import ReplicaAssignment
from regent.model.topic import MAX_PARTITION, MAX_PARTITIONS
from regent.zk_data import paths
from regent.zk_data.effects import ReadData, Write
from regent.zk_data.operations import SetData, WriteResult, Written, ZkError, ZNode
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic


class _Growth(NamedTuple):
    """A topic that is to grow, with what its node is to be."""

    topic: str
    write: SetData


async def create_partitions(
    active: ActiveController, commands: Sequence[CreatePartitions]
) -> list[Outcome]:
    """Grow topics, all in one write. No topic may be named twice."""
    refused = [_not_growable(active, command.topic) for command in commands]
    growable = [c for c, refusal in zip(commands, refused, strict=True) if refusal is None]
    nodes = iter(await ReadData([paths.topic(command.topic) for command in growable]))
    decided = [
        refusal or _decide(active, command, next(nodes))
        for command, refusal in zip(commands, refused, strict=True)
    ]
    growing = [each for each in decided if isinstance(each, _Growth)]
    written: Iterator[WriteResult] = iter(())
    if growing:
        guard = epoch_guard(active.context)
        written = iter(await Write([each.write for each in growing], guard=guard))
    return [
        _outcome(each.topic, next(written)) if isinstance(each, _Growth) else each
        for each in decided
    ]


def _not_growable(active: ActiveController, topic: str) -> Rejected | None:
    refused = not_usable(active, topic)
    if refused is None and active.context.cluster.is_topic_being_reassigned(topic):
        return Rejected(
            Reason.REASSIGNMENT_IN_PROGRESS,
            f"topic {topic!r} is being reassigned; it can grow once that is done",
        )
    return refused


def _outcome(topic: str, result: WriteResult) -> Outcome:
    if result is ZkError.NO_AUTH:
        return refused_by_zookeeper(UnexpectedZooKeeperError(result.value, paths.topic(topic)))
    return Accepted() if isinstance(result, Written) else concurrent_change(topic)


def _decide(
    active: ActiveController, command: CreatePartitions, node: ZNode | None
) -> _Growth | Outcome:
    """What is to be written for a command; or its outcome, if nothing is."""
    topic = command.topic
    if node is None:
        return unknown(topic)
    try:
        znode = decode_topic(topic, node.data)
    except MalformedZNodeError as error:
        return Rejected(Reason.INTERNAL_ERROR, f"topic {topic!r} cannot be read: {error}")
    refused = _growth_problem(command, znode)
    if refused is not None:
        return refused
    try:
        added = _growth(active, command, znode)
    except PlacementError as error:
        return placement_refused(topic, error)
    assignments = znode.assignments | {p: ReplicaAssignment(r) for p, r in added.items()}
    content = encode_topic(TopicZNode(znode.topic_id, assignments))
    write = SetData(paths.topic(topic), content, node.version)
    refused = too_large(active, topic, [write], field="total")
    if refused is not None:
        return refused
    return Accepted() if command.validate_only else _Growth(topic, write)


def _growth_problem(command: CreatePartitions, znode: TopicZNode) -> Rejected | None:
    topic = command.topic
    if znode.problems:
        return Rejected(
            Reason.INTERNAL_ERROR,
            f"topic {topic!r} has malformed partitions {sorted(znode.problems)} in "
            f"{paths.topic(topic)}; correct that node first",
        )
    count = len(znode.assignments)
    if not count:
        return Rejected(
            Reason.INTERNAL_ERROR,
            f"topic {topic!r} has no partition at all in {paths.topic(topic)}, so nothing says how "
            "many replicas new ones need; delete and recreate it",
        )
    if not count < command.total <= MAX_PARTITIONS:
        return Rejected(
            Reason.INVALID_PARTITIONS,
            f"topic {topic!r} has {count} partitions and cannot be set to {command.total}: the "
            f"number can only grow, to at most {MAX_PARTITIONS}",
            "total",
        )
    last = max(znode.assignments) + command.total - count
    if last > MAX_PARTITION:
        return Rejected(
            Reason.INVALID_PARTITIONS,
            f"topic {topic!r} has a partition {max(znode.assignments)} in {paths.topic(topic)}, so "
            f"new ones would be numbered up to {last}, and Kafka knows none above {MAX_PARTITION}; "
            "delete and recreate it",
            "total",
        )
    return None


def _growth(active: ActiveController, command: CreatePartitions, znode: TopicZNode) -> Placement:
    existing = {p: a.replicas for p, a in znode.assignments.items()}
    first_new = max(existing) + 1
    new = range(first_new, first_new + command.total - len(existing))
    if command.assignment is not None:
        return given_assignment(active, command.assignment, new)
    factor = len(existing[min(existing)])
    brokers = brokers_for_new_replicas(active, replication_factor=factor)
    return continue_assignment(brokers, existing, partitions=len(new))
