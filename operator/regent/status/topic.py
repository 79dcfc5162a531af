"""What ZooKeeper says of one topic: its partitions, and what bears on their state."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from regent.model.errors import MalformedZNodeError
from regent.model.partition import NO_LEADER, ReplicaAssignment, TopicPartition
from regent.model.topic import topic_name_problem
from regent.status.reader import ClusterReader
from regent.zk_data import paths
from regent.zk_data.brokers import is_controller_registration
from regent.zk_data.config import decode_entity_config
from regent.zk_data.operations import DatedZNode
from regent.zk_data.permitted_reads import UnreadableZNode
from regent.zk_data.topics import decode_partition_state, decode_topic

Report = dict[str, Any]

_GROUPS: Final = range(5)
_OFFLINE, _UNKNOWN, _UNDER_REPLICATED, _CHANGED, _CALM = _GROUPS
"""Groups of partitions, in the order in which they are described."""

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
PARTITIONS_MAX: Final = 20
"""Partitions that are described at a time."""


class Target(NamedTuple):
    """What was asked for.

    Attributes:
        partition: None: the topic.
        remark: What else it might have been.
        alternative: What it may have been if it does not exist any more.
    """

    topic: str
    partition: int | None
    remark: str | None = None
    alternative: Target | None = None

    def __str__(self) -> str:
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"


async def resolve(reader: ClusterReader, text: str) -> Target:
    """A topic, or a partition of one as ``TOPIC-PARTITION``.

    Names of topics may end in a number, too: a topic of exactly that name is meant first.
    """
    topic, dash, number = text.rpartition("-")
    is_partition = bool(dash) and number.isascii() and number.isdigit() and len(number) < 10
    names = [text, topic] if is_partition else [text]
    legal = [name for name in names if topic_name_problem(name) is None]
    nodes = await reader.get_data([paths.topic(name) for name in legal])
    existing = [name for name, node in zip(legal, nodes, strict=True) if node is not None]
    if text in existing:
        remark = None
        if topic in existing:
            remark = (
                f"Topic {text!r} is meant, not partition {int(number)} of topic {topic!r}: for "
                f"that one say {topic} --partition {int(number)}."
            )
        return Target(text, None, remark)
    if is_partition and topic in existing:
        return Target(topic, int(number))
    return Target(text, None, alternative=Target(topic, int(number)) if is_partition else None)


async def read_topic(
    reader: ClusterReader, target: Target, *, changed: Collection[int], problems: list[str]
) -> Report | None:
    """The topic and some of its partitions, those with problems first; None if there is none.

    Args:
        changed: Partitions that are known to have changed: they come next.
    """
    if topic_name_problem(target.topic) is not None:
        return None
    (node,) = await reader.get_data([paths.topic(target.topic)])
    if node is None:
        return None
    assignments: Mapping[int, ReplicaAssignment] | None = None
    unreadable: Collection[str] = ()
    try:
        znode = decode_topic(target.topic, node.data)
        unreadable = znode.problems.keys()
        assignments = dict(sorted(znode.assignments.items()))
        path = paths.topic(target.topic)
        problems += [f"{path}: partition {p}: {why}" for p, why in znode.problems.items()]
    except MalformedZNodeError as error:
        problems.append(str(error))
    count = None if assignments is None else len(assignments) + len(unreadable)
    if assignments is None:
        assignments = {}
    elif not (target.partition in (None, *assignments) or str(target.partition) in unreadable):
        return None
    chosen = [p for p in assignments if target.partition in (None, p)]
    (marker,) = await reader.get_data([paths.delete_topic(target.topic)])
    config = await _configuration(reader, target.topic, problems)
    states = await _states(reader, target.topic, {p: assignments[p] for p in chosen}, problems)
    described = await _chosen(reader, target.topic, states, changed, problems)
    return {
        "name": target.topic,
        "partition": target.partition,
        "partitionCount": count,
        "isMarkedForDeletion": marker is not None,
        "minInsyncReplicas": _number(config.get(MIN_INSYNC_REPLICAS)),
        "allowsUncleanElection": _boolean(config.get(UNCLEAN_ELECTION)),
        **described,
        "unknown": described["unknown"] + _count_asked(target, unreadable),
    }


def _count_asked(target: Target, unreadable: Collection[str]) -> int:
    """How many of the partitions that cannot be read were asked for."""
    if target.partition is None:
        return len(unreadable)
    return int(str(target.partition) in unreadable)


async def _configuration(reader: ClusterReader, topic: str, problems: list[str]) -> dict[str, str]:
    """The topic's own configuration over the cluster-wide dynamic one. What brokers have in their
    files is not known to ZooKeeper."""
    merged: dict[str, str] = {}
    sources = [paths.broker_config(None), paths.topic_config(topic)]
    for path, node in zip(sources, await reader.get_data(sources), strict=True):
        try:
            merged |= {} if node is None else decode_entity_config(path, node.data)
        except MalformedZNodeError as error:
            problems.append(str(error))
    return merged


async def _states(
    reader: ClusterReader,
    topic: str,
    assignments: Mapping[int, ReplicaAssignment],
    problems: list[str],
) -> list[Report]:
    """All partitions, with their leadership."""
    nodes = await reader.get_data(
        [paths.partition_state(TopicPartition(topic, p)) for p in assignments]
    )
    return [
        _partition(topic, p, assignment, None if node is None else DatedZNode(node, 0, 0), problems)
        for (p, assignment), node in zip(assignments.items(), nodes, strict=True)
    ]


async def _live_brokers(reader: ClusterReader) -> frozenset[int]:
    """Ids of the registered brokers."""
    children = await reader.children(paths.BROKER_IDS)
    ids = [broker_id for c in children or () if (broker_id := paths.broker_id_of(c)) is not None]
    nodes = await reader.get_data([paths.broker_id(broker_id) for broker_id in ids])
    return frozenset(
        broker_id
        for broker_id, node in zip(ids, nodes, strict=True)
        if node is not None and not is_controller_registration(node)
    )


async def _chosen(
    reader: ClusterReader,
    topic: str,
    partitions: Sequence[Report],
    changed: Collection[int],
    problems: list[str],
) -> Report:
    """Counts, and the partitions that are described, as they are now, with times."""
    live = await _live_brokers(reader)
    changed = frozenset(changed)
    groups: dict[int, list[Report]] = {group: [] for group in _GROUPS}
    for partition in partitions:
        groups[_group(partition, live, changed)].append(partition)
    shown = list(chain.from_iterable(groups.values()))[:PARTITIONS_MAX]
    nodes = await reader.get_dated(
        [paths.partition_state(TopicPartition(topic, p["partition"])) for p in shown]
    )
    dated = [
        _partition(topic, p["partition"], p["assignment"], node, problems)
        for p, node in zip(shown, nodes, strict=True)
    ]
    for partition in dated:
        del partition["assignment"]
    return {
        "offline": len(groups[_OFFLINE]),
        "underReplicated": len(groups[_UNDER_REPLICATED]),
        "unknown": len(groups[_UNKNOWN]),
        "partitions": dated,
        "omitted": len(partitions) - len(dated),
    }


def _group(partition: Report, live: Container[int | None], changed: Container[int]) -> int:
    if partition["isClosed"]:
        return _UNKNOWN
    if partition["leader"] not in live:
        return _OFFLINE
    if len(partition["isr"]) < len(partition["replicas"]):
        return _UNDER_REPLICATED
    return _CHANGED if partition["partition"] in changed else _CALM


def _partition(
    topic: str,
    partition: int,
    assignment: ReplicaAssignment,
    dated: DatedZNode | None,
    problems: list[str],
) -> Report:
    is_closed = dated is not None and isinstance(dated.node, UnreadableZNode)
    times = None if is_closed else dated
    report: Report = {
        "partition": partition,
        "assignment": assignment,
        "replicas": list(assignment.replicas),
        "addingReplicas": list(assignment.adding_replicas),
        "removingReplicas": list(assignment.removing_replicas),
        "hasState": dated is not None,
        "isClosed": is_closed,
        "leader": None,
        "leaderEpoch": None,
        "isr": [],
        "controllerEpoch": None,
        "partitionEpoch": None,
        "createdMs": None if times is None else times.created_ms,
        "changedMs": None if times is None else times.modified_ms,
    }
    if dated is None:
        return report
    try:
        state = decode_partition_state(
            paths.partition_state(TopicPartition(topic, partition)), dated.node
        )
    except MalformedZNodeError as error:
        if str(error) not in problems:
            problems.append(str(error))
        return report
    return report | {
        "leader": None if state.leader == NO_LEADER else state.leader,
        "leaderEpoch": state.leader_epoch,
        "isr": list(state.isr),
        "controllerEpoch": state.controller_epoch,
        "partitionEpoch": state.partition_epoch,
    }


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _boolean(text: str | None) -> bool | None:
    return None if text is None else text.strip().lower() == "true"
