"""Writing assignments into topic nodes, beside whatever else changes them.

Upstream replaces the node with what its controller remembers, and so loses partitions that a tool
adds at the same moment. Here only the named partitions change, on condition that the node is still
the one that was read.
"""

from __future__ import annotations

from collections.abc import Mapping

from regent.controller.active_controller import ActiveController
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import MalformedZNodeError
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import Write
from regent.zk_data.operations import SetData, Written, ZkError, ZNode
from regent.zk_data.permitted_reads import read_permitted
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic

Assignments = Mapping[TopicPartition, ReplicaAssignment]


async def store_assignments(
    active: ActiveController, assignments: Assignments
) -> dict[TopicPartition, str]:
    """Write assignments of existing partitions. Returns those not written, with reasons."""
    changes: dict[str, dict[int, ReplicaAssignment]] = {}
    for tp, assignment in assignments.items():
        changes.setdefault(tp.topic, {})[tp.partition] = assignment
    problems: dict[str, str] = {}
    remaining = list(changes)
    while remaining:
        nodes = await read_permitted([paths.topic(topic) for topic in remaining])
        writes: dict[str, SetData] = {}
        for topic, node in zip(remaining, nodes, strict=True):
            czxid = active.context.cluster.topic_czxids.get(topic, 0)
            prepared = _prepare(topic, node, changes[topic], czxid)
            if isinstance(prepared, str):
                problems[topic] = prepared
            elif prepared is not None:
                writes[topic] = prepared
        results = await Write(list(writes.values()), guard=epoch_guard(active.context))
        remaining = []
        for topic, result in zip(writes, results, strict=True):
            if result is ZkError.BAD_VERSION:
                remaining.append(topic)
            elif not isinstance(result, Written):
                problems[topic] = f"ZooKeeper answered {result.value} for {paths.topic(topic)}"
    for topic, problem in problems.items():
        active.log.error("Assignments not stored", path=paths.topic(topic), reason=problem)
    return {tp: problems[tp.topic] for tp in assignments if tp.topic in problems}


def _prepare(
    topic: str, node: ZNode | None, changes: Mapping[int, ReplicaAssignment], czxid: int
) -> SetData | str | None:
    """The write, or why there can be none, or None if the node says all this already.

    Args:
        czxid: Of the node of the topic that is meant; 0 if that is not known.
    """
    if node is None:
        return "the topic is gone"
    try:
        znode = decode_topic(topic, node.data)
    except MalformedZNodeError as error:
        return f"the topic node is malformed: {error.reason}"
    if czxid and node.czxid and node.czxid != czxid:
        return "somebody has deleted the topic and created another one of its name"
    if znode.problems:
        return f"the topic node has malformed partitions {sorted(znode.problems)}"
    missing = [partition for partition in changes if partition not in znode.assignments]
    if missing:
        return f"the topic node has no partitions {missing}"
    merged = {p: changes.get(p, assignment) for p, assignment in znode.assignments.items()}
    if merged == znode.assignments:
        return None
    return SetData(
        paths.topic(topic), encode_topic(TopicZNode(znode.topic_id, merged)), node.version
    )
