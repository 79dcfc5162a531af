"""Commands of custom resources: create, grow, configure and delete topics.

A command is checked first and refused with a reason, then written as Kafka's ``AdminZkClient``
writes: the same znodes in the same order. What follows (partition states, requests to brokers)
follows from the watches on those nodes, as it does for Kafka's own tools. Commands of one kind that
arrive together are read and written together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from regent.controller import config_changes
from regent.controller.active_controller import ActiveController
from regent.controller.cluster_loading import TOPIC_IDS_SINCE
from regent.controller.commands import (
    Accepted,
    AlterTopicConfig,
    Command,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    Outcome,
    Reason,
    Rejected,
)
from regent.controller.effects import Multi, ReadData, Write
from regent.controller.partition_state_znodes import epoch_guard
from regent.controller.replica_assignment import (
    BrokerRack,
    Pattern,
    Placement,
    PlacementError,
    arrange,
    assign_replicas,
    continue_assignment,
)
from regent.model.errors import ControllerMovedError, MalformedZNodeError
from regent.model.partition import ReplicaAssignment
from regent.model.topic import names_collide, topic_name_problem
from regent.model.topic_config import config_conflicts, config_problem
from regent.zk_data import paths
from regent.zk_data.config import (
    ConfigEntity,
    decode_entity_config,
    encode_config_change,
    encode_entity_config,
)
from regent.zk_data.operations import (
    Create,
    Operation,
    SetData,
    WriteResult,
    Written,
    ZkError,
    ZNode,
)
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic

MAX_PARTITIONS = 10_000
"""More partitions in one command than any topic has: a slip of the pen, not a wish."""

TOPICS_PER_TRANSACTION = 50

_REFUSED_FIELDS = {
    "partitions": Reason.INVALID_PARTITIONS,
    "replication_factor": Reason.INVALID_REPLICATION_FACTOR,
}


async def process_commands(
    active: ActiveController, commands: Sequence[Command]
) -> tuple[Outcome, ...]:
    """Carry commands out in order; neighbours of the same kind go together."""
    outcomes: list[Outcome] = []
    position = 0
    while position < len(commands):
        kind = type(commands[position])
        end = position + 1
        while end < len(commands) and type(commands[end]) is kind:
            end += 1
        outcomes += await _process_run(active, commands[position:end])
        position = end
    return tuple(outcomes)


def not_controller(commands: Sequence[Command]) -> tuple[Outcome, ...]:
    """The answer of a process that is not, or no longer, the controller."""
    return tuple(
        Rejected(
            Reason.NOT_CONTROLLER,
            "this process is not the Kafka controller at the moment; the command is tried again",
        )
        for _ in commands
    )


def failed(commands: Sequence[Command], error: Exception) -> tuple[Outcome, ...]:
    """The answer after a defect of ours."""
    message = f"the controller failed at these commands, its log says where: {error!r}"
    return tuple(Rejected(Reason.INTERNAL_ERROR, message) for _ in commands)


async def _process_run(active: ActiveController, commands: Sequence[Command]) -> list[Outcome]:
    match commands[0]:
        case CreateTopic():
            return await _create_topics(active, [c for c in commands if isinstance(c, CreateTopic)])
        case DeleteTopic():
            return await _delete_topics(active, [c for c in commands if isinstance(c, DeleteTopic)])
        case CreatePartitions():
            return [
                await _create_partitions(active, c)
                for c in commands
                if isinstance(c, CreatePartitions)
            ]
        case AlterTopicConfig():
            return [
                await _alter_topic_config(active, c)
                for c in commands
                if isinstance(c, AlterTopicConfig)
            ]
        case DescribeTopicConfigs():
            return [
                await _describe_topic_configs(active, c)
                for c in commands
                if isinstance(c, DescribeTopicConfigs)
            ]


# Create


class _NewTopic(NamedTuple):
    """A topic that passed all checks."""

    znode: TopicZNode
    config: Mapping[str, str]


async def _create_topics(
    active: ActiveController, commands: Sequence[CreateTopic]
) -> list[Outcome]:
    outcomes: dict[int, Outcome] = {}
    accepted: dict[str, tuple[int, _NewTopic]] = {}
    names = dict.fromkeys(active.context.topics)
    for index, command in enumerate(commands):
        problem = _creation_problem(active, command, names)
        if problem is not None:
            outcomes[index] = problem
            continue
        try:
            placement = _placement(active, command)
        except PlacementError as error:
            outcomes[index] = _placement_refused(command.topic, error)
            continue
        names[command.topic] = None
        topic_id = (
            active.chance.topic_id()
            if active.context.inter_broker_protocol >= TOPIC_IDS_SINCE
            else None
        )
        assignments = {p: ReplicaAssignment(replicas) for p, replicas in placement.items()}
        accepted[command.topic] = (
            index,
            _NewTopic(TopicZNode(topic_id, assignments), dict(command.config)),
        )
    topics = list(accepted)
    for begin in range(0, len(topics), TOPICS_PER_TRANSACTION):
        chunk = {t: accepted[t][1] for t in topics[begin : begin + TOPICS_PER_TRANSACTION]}
        written = await _write_topics(active, chunk)
        outcomes.update({accepted[topic][0]: outcome for topic, outcome in written.items()})
    return [outcomes[index] for index in range(len(commands))]


def _creation_problem(
    active: ActiveController, command: CreateTopic, names: Mapping[str, None]
) -> Rejected | None:
    """Why a topic cannot be created, as far as that does not depend on where replicas go."""
    topic = command.topic
    problem = topic_name_problem(topic)
    if problem is not None:
        return Rejected(Reason.INVALID_TOPIC_NAME, problem, "topic")
    if active.context.is_topic_queued_for_deletion(topic):
        return Rejected(
            Reason.TOPIC_MARKED_FOR_DELETION,
            f"topic {topic!r} is being deleted; it can be created once that is done",
            "topic",
        )
    if topic in names:
        return Rejected(Reason.TOPIC_ALREADY_EXISTS, f"topic {topic!r} exists already", "topic")
    if "." in topic or "_" in topic:
        twin = next((name for name in names if names_collide(name, topic)), None)
        if twin is not None:
            return Rejected(
                Reason.TOPIC_NAME_COLLISION,
                f"topic {topic!r} and the existing {twin!r} differ only in '.' and '_', which "
                "metric names do not tell apart; choose another name",
                "topic",
            )
    if not 1 <= command.partitions <= MAX_PARTITIONS:
        return Rejected(
            Reason.INVALID_PARTITIONS,
            f"{command.partitions} partitions for topic {topic!r}: give a number from 1 to "
            f"{MAX_PARTITIONS}",
            "partitions",
        )
    return _config_refused(topic, command.config)


def _placement(active: ActiveController, command: CreateTopic) -> Placement:
    if command.assignment is not None:
        return _given_assignment(active, command.assignment, range(command.partitions))
    factor = command.replication_factor
    if factor is None:
        factor = active.config.default_replication_factor
    brokers = _broker_racks(active)
    if not brokers:
        raise PlacementError("no broker is live; start the brokers")
    start = active.chance.below(len(brokers))
    return assign_replicas(
        brokers,
        partitions=command.partitions,
        replication_factor=factor,
        pattern=Pattern(start, active.chance.below(max(1, len(arrange(brokers)) - 1))),
    )


def _given_assignment(
    active: ActiveController, assignment: Mapping[int, tuple[int, ...]], expected: range
) -> Placement:
    if sorted(assignment) != list(expected):
        raise PlacementError(
            f"the assignment names partitions {sorted(assignment)}, needed are "
            f"{expected.start} to {expected.stop - 1}",
            "assignment",
        )
    live = active.context.live_broker_ids
    sizes = {len(replicas) for replicas in assignment.values()}
    for partition, replicas in assignment.items():
        if not replicas or len(set(replicas)) != len(replicas):
            raise PlacementError(
                f"partition {partition} is assigned to {list(replicas)}: give at least one broker, "
                "each once",
                "assignment",
            )
        unknown = [r for r in replicas if r not in live]
        if unknown:
            raise PlacementError(
                f"partition {partition} is assigned to brokers {unknown} that are not live; "
                f"live are {list(live)}",
                "assignment",
            )
    if len(sizes) > 1:
        raise PlacementError(
            "partitions are assigned to different numbers of replicas; give each the same number",
            "assignment",
        )
    return {partition: tuple(replicas) for partition, replicas in sorted(assignment.items())}


def _placement_refused(topic: str, error: PlacementError) -> Rejected:
    reason = _REFUSED_FIELDS.get(error.field, Reason.INVALID_REPLICA_ASSIGNMENT)
    return Rejected(reason, f"topic {topic!r}: {error}", error.field)


def _broker_racks(active: ActiveController) -> list[BrokerRack]:
    brokers = active.context.live_or_shutting_down_brokers
    return [BrokerRack(b, brokers[b].rack) for b in active.context.live_broker_ids]


async def _write_topics(
    active: ActiveController, topics: Mapping[str, _NewTopic]
) -> dict[str, Outcome]:
    """Configuration and assignment of topics in one transaction; if one is in the way, each alone.

    The configuration comes first, as in Kafka: the topic node is what everybody watches.
    """
    existing = await ReadData([paths.topic_config(topic) for topic in topics])
    operations = {
        topic: _creation(topic, new, config_node)
        for (topic, new), config_node in zip(topics.items(), existing, strict=True)
    }
    guard = epoch_guard(active.context)
    results = await Multi([guard, *(op for ops in operations.values() for op in ops)])
    if _all_written(results):
        return dict.fromkeys(topics, Accepted())
    outcomes: dict[str, Outcome] = {}
    for topic, ops in operations.items():
        results = await Multi([guard, *ops])
        outcomes[topic] = _creation_outcome(topic, results)
    return outcomes


def _creation(topic: str, new: _NewTopic, config_node: ZNode | None) -> list[Operation]:
    content = encode_entity_config(new.config)
    path = paths.topic_config(topic)
    config: Operation = (
        Create(path, content)
        if config_node is None
        else SetData(path, content, config_node.version)
    )
    return [config, Create(paths.topic(topic), encode_topic(new.znode))]


def _all_written(results: Sequence[WriteResult]) -> bool:
    return all(isinstance(result, Written) for result in results)


def _raise_if_moved(results: Sequence[WriteResult]) -> None:
    """The first operation of every transaction here is the fence."""
    if results[0] in (ZkError.BAD_VERSION, ZkError.NO_NODE):
        raise ControllerMovedError("the epoch check of a transaction failed")


def _creation_outcome(topic: str, results: Sequence[WriteResult]) -> Outcome:
    if _all_written(results):
        return Accepted()
    _raise_if_moved(results)
    if results[-1] is ZkError.NODE_EXISTS:
        return Rejected(Reason.TOPIC_ALREADY_EXISTS, f"topic {topic!r} exists already", "topic")
    return _concurrent_change(topic)


def _concurrent_change(topic: str) -> Rejected:
    return Rejected(
        Reason.CONCURRENT_CHANGE,
        f"topic {topic!r} was changed by someone else at the same moment; the command is tried "
        "again",
    )


# Grow


async def _create_partitions(active: ActiveController, command: CreatePartitions) -> Outcome:
    topic = command.topic
    refused = _not_usable(active, topic)
    if refused is not None:
        return refused
    if any(a.is_being_reassigned for a in active.context.partitions_of(topic).values()):
        return Rejected(
            Reason.REASSIGNMENT_IN_PROGRESS,
            f"topic {topic!r} is being reassigned; it can grow once that is done",
        )
    (node,) = await ReadData([paths.topic(topic)])
    if node is None:
        return _unknown(topic)
    try:
        znode = decode_topic(topic, node.data)
    except MalformedZNodeError as error:
        return Rejected(Reason.INTERNAL_ERROR, f"topic {topic!r} cannot be read: {error}")
    if znode.problems:
        return Rejected(
            Reason.INTERNAL_ERROR,
            f"topic {topic!r} has malformed partitions {sorted(znode.problems)} in "
            f"{paths.topic(topic)}; mend that node first",
        )
    count = len(znode.assignments)
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
        return _placement_refused(topic, error)
    assignments = znode.assignments | {p: ReplicaAssignment(r) for p, r in added.items()}
    content = encode_topic(TopicZNode(znode.topic_id, assignments))
    results = await Write(
        [SetData(paths.topic(topic), content, node.version)], guard=epoch_guard(active.context)
    )
    return Accepted() if _all_written(results) else _concurrent_change(topic)


def _growth(active: ActiveController, command: CreatePartitions, znode: TopicZNode) -> Placement:
    existing = {p: a.replicas for p, a in znode.assignments.items()}
    first_new = max(existing) + 1
    new = range(first_new, first_new + command.total - len(existing))
    if command.assignment is not None:
        return _given_assignment(active, command.assignment, new)
    return continue_assignment(_broker_racks(active), existing, partitions=len(new))


def _not_usable(active: ActiveController, topic: str) -> Rejected | None:
    if not active.context.has_topic(topic):
        return _unknown(topic)
    if active.context.is_topic_queued_for_deletion(topic):
        return Rejected(
            Reason.TOPIC_MARKED_FOR_DELETION, f"topic {topic!r} is being deleted", "topic"
        )
    return None


def _unknown(topic: str) -> Rejected:
    return Rejected(Reason.UNKNOWN_TOPIC, f"topic {topic!r} does not exist", "topic")


# Configure


def _config_refused(topic: str, config: Mapping[str, str]) -> Rejected | None:
    for key, value in config.items():
        problem = config_problem(key, value)
        if problem is not None:
            return Rejected(
                Reason.INVALID_CONFIG, f"topic {topic!r}: {problem}", f'config["{key}"]'
            )
    for key, problem in config_conflicts(config):
        return Rejected(Reason.INVALID_CONFIG, f"topic {topic!r}: {problem}", f'config["{key}"]')
    return None


async def _alter_topic_config(active: ActiveController, command: AlterTopicConfig) -> Outcome:
    """Change keys and notify, in one transaction (Kafka writes twice: a crash between loses the
    notification, and with it the change on every running broker)."""
    topic = command.topic
    refused = _not_usable(active, topic) or _config_refused(topic, command.set)
    if refused is not None:
        return refused
    path = paths.topic_config(topic)
    (node,) = await ReadData([path])
    try:
        before = {} if node is None else decode_entity_config(path, node.data)
    except MalformedZNodeError as error:
        return Rejected(
            Reason.INTERNAL_ERROR, f"the configuration of topic {topic!r} cannot be read: {error}"
        )
    after = {k: v for k, v in before.items() if k not in command.remove} | dict(command.set)
    if after == before:
        return Accepted()
    # Values that somebody else has set are not ours to judge, only how ours go with them.
    legal = {k: v for k, v in after.items() if config_problem(k, v) is None}
    for key, problem in config_conflicts(legal):
        return Rejected(Reason.INVALID_CONFIG, f"topic {topic!r}: {problem}", f'config["{key}"]')
    content = encode_entity_config(after)
    change = encode_config_change(ConfigEntity("topics", topic).entity_path)
    results = await Multi(
        [
            epoch_guard(active.context),
            Create(path, content) if node is None else SetData(path, content, node.version),
            Create(paths.config_change_prefix(), change, sequential=True),
        ]
    )
    if not _all_written(results):
        _raise_if_moved(results)
        return _concurrent_change(topic)
    await config_changes.elect_where_unclean_is_allowed(active, [topic])
    return Accepted()


async def _describe_topic_configs(
    active: ActiveController, command: DescribeTopicConfigs
) -> Outcome:
    known = [topic for topic in command.topics if active.context.has_topic(topic)]
    nodes = await ReadData([paths.topic_config(topic) for topic in known])
    configs: dict[str, dict[str, str]] = {}
    for topic, node in zip(known, nodes, strict=True):
        try:
            configs[topic] = (
                {} if node is None else decode_entity_config(paths.topic_config(topic), node.data)
            )
        except MalformedZNodeError as error:
            active.log.error("Malformed topic config", path=error.path, reason=error.reason)
    return Accepted(configs)


# Delete


async def _delete_topics(
    active: ActiveController, commands: Sequence[DeleteTopic]
) -> list[Outcome]:
    """Leave the markers that Kafka's tools leave; marking a marked topic again is fine."""
    if not active.config.delete_topic_enable:
        return [
            Rejected(
                Reason.TOPIC_DELETION_DISABLED,
                f"topic {command.topic!r} cannot be deleted: topic deletion is disabled "
                "(delete.topic.enable); enable it or let the topic be",
            )
            for command in commands
        ]
    known = [c.topic for c in commands if active.context.has_topic(c.topic)]
    results = await Write(
        [Create(paths.delete_topic(topic), exist_ok=True) for topic in known],
        guard=epoch_guard(active.context),
    )
    outcomes = {
        topic: Accepted() if isinstance(result, Written) else _concurrent_change(topic)
        for topic, result in zip(known, results, strict=True)
    }
    return [outcomes.get(c.topic) or _unknown(c.topic) for c in commands]
