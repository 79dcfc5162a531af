"""Growing a topic by command."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.commands import Accepted, CreatePartitions, Outcome, Reason, Rejected
from regent.controller.effects import ReadData, Write
from regent.controller.topics.replica_assignment import (
    Placement,
    PlacementError,
    continue_assignment,
)
from regent.controller.topics.topic_placement import (
    broker_racks,
    given_assignment,
    placement_refused,
)
from regent.controller.topics.topic_refusals import (
    concurrent_change,
    not_usable,
    too_large,
    unknown,
)
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.controller.znodes.transactions import all_written
from regent.model.errors import MalformedZNodeError
from regent.model.partition import ReplicaAssignment
from regent.model.topic import MAX_PARTITIONS
from regent.zk_data import paths
from regent.zk_data.operations import SetData
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic


async def create_partitions(active: ActiveController, command: CreatePartitions) -> Outcome:
    topic = command.topic
    refused = not_usable(active, topic)
    if refused is not None:
        return refused
    if active.context.cluster.is_topic_being_reassigned(topic):
        return Rejected(
            Reason.REASSIGNMENT_IN_PROGRESS,
            f"topic {topic!r} is being reassigned; it can grow once that is done",
        )
    (node,) = await ReadData([paths.topic(topic)])
    if node is None:
        return unknown(topic)
    try:
        znode = decode_topic(topic, node.data)
    except MalformedZNodeError as error:
        return Rejected(Reason.INTERNAL_ERROR, f"topic {topic!r} cannot be read: {error}")
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
    results = await Write([write], guard=epoch_guard(active.context))
    return Accepted() if all_written(results) else concurrent_change(topic)


def _growth(active: ActiveController, command: CreatePartitions, znode: TopicZNode) -> Placement:
    existing = {p: a.replicas for p, a in znode.assignments.items()}
    first_new = max(existing) + 1
    new = range(first_new, first_new + command.total - len(existing))
    if command.assignment is not None:
        return given_assignment(active, command.assignment, new)
    return continue_assignment(broker_racks(active), existing, partitions=len(new))
