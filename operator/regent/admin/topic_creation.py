"""Creating topics by command, as Kafka's ``AdminZkClient`` does, many in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from regent.admin.commands import Accepted, CreateTopic, Outcome, Reason, Rejected
from regent.admin.former_segments import former_segments_refuse
from regent.admin.replica_assignment import PlacementError
from regent.admin.topic_admin import TopicAdmin
from regent.admin.topic_placement import place_new_topic, placement_refused
from regent.admin.topic_refusals import (
    answer_lost,
    config_refused,
    not_written,
    refused_by_zookeeper,
    too_large,
)
from regent.model.errors import UnexpectedZooKeeperError, ZooKeeperUnavailableError
from regent.model.partition import ReplicaAssignment
from regent.model.topic import MAX_PARTITIONS, TOPIC_IDS_SINCE, metric_name, new_topic_name_problem
from regent.zk_data import paths
from regent.zk_data.config import encode_entity_config
from regent.zk_data.effects import Multi, ReadData
from regent.zk_data.operations import Create, Operation, SetData, WriteResult, ZkError, ZNode
from regent.zk_data.topics import TopicZNode, encode_topic
from regent.zk_data.transactions import (
    all_written,
    raise_if_moved,
    transaction_limit,
    transaction_size,
)

TOPICS_PER_TRANSACTION = 50
"""If one conflicts, all of a transaction are written again."""


class _NewTopic(NamedTuple):
    """A topic that passed all checks."""

    znode: TopicZNode
    config: Mapping[str, str]


async def create_topics(admin: TopicAdmin, commands: Sequence[CreateTopic]) -> list[Outcome]:
    outcomes: dict[int, Outcome] = {}
    accepted: dict[str, tuple[int, _NewTopic]] = {}
    taken: dict[str, str] = {}
    for index, command in enumerate(commands):
        if _was_created_before(admin, command):
            outcomes[index] = Accepted()
            continue
        problem = _creation_problem(admin, command, taken)
        if problem is None:
            problem = await former_segments_refuse(admin, command)
        if problem is not None:
            outcomes[index] = problem
            continue
        try:
            placement = place_new_topic(admin, command)
        except PlacementError as error:
            outcomes[index] = placement_refused(command.topic, error)
            continue
        topic_id = None
        if admin.inter_broker_protocol >= TOPIC_IDS_SINCE:
            topic_id = command.topic_id or admin.chance.topic_id()
        assignments = {p: ReplicaAssignment(replicas) for p, replicas in placement.items()}
        new = _NewTopic(TopicZNode(topic_id, assignments), dict(command.config))
        refused = too_large(admin, command.topic, _creation(command.topic, new, None))
        if refused is not None:
            outcomes[index] = refused
            continue
        taken[metric_name(command.topic)] = command.topic
        if command.validate_only:
            outcomes[index] = Accepted()
        else:
            accepted[command.topic] = (index, new)
    for chunk in _transactions(admin, {topic: new for topic, (_, new) in accepted.items()}):
        written = await _write_topics(admin, chunk)
        outcomes.update({accepted[topic][0]: outcome for topic, outcome in written.items()})
    return [outcomes[index] for index in range(len(commands))]


def _was_created_before(admin: TopicAdmin, command: CreateTopic) -> bool:
    """Whether the topic is there with the id chosen for it, and stays."""
    return (
        command.topic_id is not None
        and admin.cluster.topic_ids.get(command.topic) == command.topic_id
        and command.topic not in admin.deleting
    )


def _transactions(
    admin: TopicAdmin, topics: Mapping[str, _NewTopic]
) -> Iterator[dict[str, _NewTopic]]:
    """Topics that are written together: as many as ZooKeeper accepts at a time."""
    limit = transaction_limit(admin.jute_max_buffer)
    chunk: dict[str, _NewTopic] = {}
    total = 0
    for topic, new in topics.items():
        size = transaction_size(_creation(topic, new, None))
        if chunk and (len(chunk) == TOPICS_PER_TRANSACTION or total + size > limit):
            yield chunk
            chunk, total = {}, 0
        chunk[topic] = new
        total += size
    if chunk:
        yield chunk


def _creation_problem(
    admin: TopicAdmin, command: CreateTopic, taken: Mapping[str, str]
) -> Rejected | None:
    """Why a topic cannot be created, as far as that does not depend on where replicas go.

    Args:
        taken: Topics that other commands create now, by their metric names.
    """
    topic = command.topic
    problem = new_topic_name_problem(topic)
    if problem is not None:
        return Rejected(Reason.INVALID_TOPIC_NAME, problem, "topic")
    if topic in admin.deleting:
        return Rejected(
            Reason.TOPIC_MARKED_FOR_DELETION,
            f"topic {topic!r} is being deleted; it can be created once that is done",
            "topic",
        )
    name = metric_name(topic)
    twins = [
        *admin.cluster.topics_with_metric_name(name),
        *filter(None, [taken.get(name)]),
    ]
    if topic in twins:
        return _exists_already(topic)
    for twin in twins:
        return Rejected(
            Reason.TOPIC_NAME_COLLISION,
            f"topic {topic!r} and the existing {twin!r} differ only in '.' and '_', which "
            "metric names do not distinguish; choose another name",
            "topic",
        )
    if not 1 <= command.partitions <= MAX_PARTITIONS:
        return Rejected(
            Reason.INVALID_PARTITIONS,
            f"{command.partitions} partitions for topic {topic!r}: give a number from 1 to "
            f"{MAX_PARTITIONS}",
            "partitions",
        )
    return config_refused(topic, command.config, admin.broker_facts.all())


async def _write_topics(admin: TopicAdmin, topics: Mapping[str, _NewTopic]) -> dict[str, Outcome]:
    """Topics in one transaction; if one conflicts, each alone."""
    try:
        operations = await _transaction(admin, topics)
        try:
            results = await Multi(operations)
        except ZooKeeperUnavailableError:
            return await _outcomes_found(topics)
    except UnexpectedZooKeeperError as error:
        if len(topics) == 1:
            return dict.fromkeys(topics, refused_by_zookeeper(error))
    else:
        if all_written(results):
            return dict.fromkeys(topics, Accepted())
        raise_if_moved(results)
        if len(topics) == 1:
            return {topic: _creation_outcome(topic, operations, results) for topic in topics}
    outcomes: dict[str, Outcome] = {}
    for topic, new in topics.items():
        outcomes |= await _write_topics(admin, {topic: new})
    return outcomes


async def _outcomes_found(topics: Mapping[str, _NewTopic]) -> dict[str, Outcome]:
    """The answer to a transaction was lost with the connection: what has become of its topics?"""
    nodes = await ReadData([paths.topic(topic) for topic in topics])
    outcomes: dict[str, Outcome] = {}
    for (topic, new), node in zip(topics.items(), nodes, strict=True):
        if node is None:
            outcomes[topic] = answer_lost(topic)
        elif node.data == encode_topic(new.znode):
            outcomes[topic] = Accepted()
        else:
            outcomes[topic] = _exists_already(topic)
    return outcomes


def _exists_already(topic: str) -> Rejected:
    return Rejected(Reason.TOPIC_ALREADY_EXISTS, f"topic {topic!r} exists already", "topic")


async def _transaction(admin: TopicAdmin, topics: Mapping[str, _NewTopic]) -> list[Operation]:
    """The operations that create topics, behind the guard."""
    existing = await ReadData([paths.topic_config(topic) for topic in topics])
    operations: list[Operation] = [admin.guard]
    for (topic, new), config_node in zip(topics.items(), existing, strict=True):
        operations += _creation(topic, new, config_node)
    return operations


def _creation(topic: str, new: _NewTopic, config_node: ZNode | None) -> list[Operation]:
    """The operations that create a topic.

    The configuration comes first, as in Kafka: the topic node is what everybody watches.
    """
    path, content = paths.topic_config(topic), encode_entity_config(new.config)
    config: Operation = (
        Create(path, content)
        if config_node is None
        else SetData(path, content, config_node.version)
    )
    return [config, Create(paths.topic(topic), encode_topic(new.znode))]


def _creation_outcome(
    topic: str, operations: Sequence[Operation], results: Sequence[WriteResult]
) -> Outcome:
    if results[-1] is ZkError.NODE_EXISTS:
        return _exists_already(topic)
    return not_written(topic, operations, results)
