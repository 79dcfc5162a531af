"""Growing a topic by command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from regent.admin.commands import Accepted, CreatePartitions, Outcome, Reason, Rejected
from regent.admin.replica_assignment import (
    Placement,
    PlacementError,
    continue_assignment,
)
from regent.admin.topic_admin import TopicAdmin
from regent.admin.topic_placement import (
    given_assignment,
    placement_refused,
)
from regent.admin.topic_refusals import (
    concurrent_change,
    not_usable,
    refused_by_zookeeper,
    too_large,
    unknown,
)
from regent.model.errors import MalformedZNodeError, UnexpectedZooKeeperError
from regent.model.partition import ReplicaAssignment
from regent.model.topic import MAX_PARTITION, MAX_PARTITIONS
from regent.zk_data import paths
from regent.zk_data.effects import ReadData, Write
from regent.zk_data.operations import SetData, WriteResult, Written, ZkError, ZNode
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic


class _Growth(NamedTuple):
    """A topic that will grow, with the new content of its node."""

    topic: str
    write: SetData


async def create_partitions(
    admin: TopicAdmin, commands: Sequence[CreatePartitions]
) -> list[Outcome]:
    """Grow topics, all in one write. No topic may be named twice."""
    refused = [_not_growable(admin, command.topic) for command in commands]
    growable = [c for c, refusal in zip(commands, refused, strict=True) if refusal is None]
    nodes = iter(await ReadData([paths.topic(command.topic) for command in growable]))
    decided = [
        refusal or _decide(admin, command, next(nodes))
        for command, refusal in zip(commands, refused, strict=True)
    ]
    growing = [each for each in decided if isinstance(each, _Growth)]
    written: Iterator[WriteResult] = iter(())
    if growing:
        guard = admin.guard
        written = iter(await Write([each.write for each in growing], guard=guard))
    return [
        _outcome(each.topic, next(written)) if isinstance(each, _Growth) else each
        for each in decided
    ]


def _not_growable(admin: TopicAdmin, topic: str) -> Rejected | None:
    refused = not_usable(admin, topic)
    if refused is None and admin.cluster.is_topic_being_reassigned(topic):
        return Rejected(
            Reason.REASSIGNMENT_IN_PROGRESS,
            f"topic {topic!r} is being reassigned; it can grow once that is done",
        )
    return refused


def _outcome(topic: str, result: WriteResult) -> Outcome:
    if result is ZkError.NO_AUTH:
        return refused_by_zookeeper(UnexpectedZooKeeperError(result.value, paths.topic(topic)))
    return Accepted() if isinstance(result, Written) else concurrent_change(topic)


def _decide(admin: TopicAdmin, command: CreatePartitions, node: ZNode | None) -> _Growth | Outcome:
    """Return the write for a command, or the outcome if there is nothing to write."""
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
        added = _growth(admin, command, znode)
    except PlacementError as error:
        return placement_refused(topic, error)
    assignments = znode.assignments | {p: ReplicaAssignment(r) for p, r in added.items()}
    content = encode_topic(TopicZNode(znode.topic_id, assignments))
    write = SetData(paths.topic(topic), content, node.version)
    refused = too_large(admin, topic, [write], field="total")
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


def _growth(admin: TopicAdmin, command: CreatePartitions, znode: TopicZNode) -> Placement:
    existing = {p: a.replicas for p, a in znode.assignments.items()}
    first_new = max(existing) + 1
    new = range(first_new, first_new + command.total - len(existing))
    if command.assignment is not None:
        return given_assignment(admin, command.assignment, new)
    factor = len(existing[min(existing)])
    brokers = admin.brokers_for_new_replicas(replication_factor=factor)
    return continue_assignment(brokers, existing, partitions=len(new))
