"""Reading and changing the configuration of topics by command."""

from __future__ import annotations

from regent.admin.commands import (
    Accepted,
    AlterTopicConfig,
    DescribeTopicConfigs,
    Outcome,
    Reason,
    Rejected,
)
from regent.admin.topic_admin import TopicAdmin
from regent.admin.topic_refusals import (
    answer_lost,
    not_usable,
    not_written,
    problem_refused,
    too_large,
)
from regent.model.errors import (
    MalformedZNodeError,
    UnexpectedZooKeeperError,
    ZooKeeperUnavailableError,
)
from regent.model.topic_config import new_problems
from regent.zk_data import paths
from regent.zk_data.config import (
    ConfigEntity,
    decode_entity_config,
    encode_config_change,
    encode_entity_config,
)
from regent.zk_data.effects import Multi, ReadData
from regent.zk_data.operations import Create, Operation, SetData
from regent.zk_data.permitted_reads import NO_AUTH, UnreadableZNode, read_permitted
from regent.zk_data.throttles import THROTTLED_REPLICAS
from regent.zk_data.transactions import all_written, raise_if_moved


async def alter_topic_config(admin: TopicAdmin, command: AlterTopicConfig) -> Outcome:
    """Change keys and notify, in one transaction (Kafka writes twice: a crash between loses the
    notification, and with it the change on every running broker).

    The notification reaches us as well: elections that the change allows follow from it.
    """
    topic = command.topic
    refused = not_usable(admin, topic) or _throttled_replicas_refused(admin, command)
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
    brokers = admin.broker_facts.all()
    refused = problem_refused(topic, new_problems(before, after, brokers, changed=command.set))
    if refused is not None:
        return refused
    content = encode_entity_config(after)
    change = encode_config_change(ConfigEntity("topics", topic).entity_path)
    operations: list[Operation] = [
        admin.guard,
        Create(path, content) if node is None else SetData(path, content, node.version),
        Create(paths.config_change_prefix(), change, sequential=True),
    ]
    refused = too_large(admin, topic, operations, field="config")
    if refused is not None:
        return refused
    try:
        results = await Multi(operations)
    except ZooKeeperUnavailableError:
        (now,) = await ReadData([path])
        return Accepted() if now is not None and now.data == content else answer_lost(topic)
    if not all_written(results):
        raise_if_moved(results)
        return not_written(topic, operations, results)
    return Accepted()


def _throttled_replicas_refused(admin: TopicAdmin, command: AlterTopicConfig) -> Rejected | None:
    """The refusal of another list of throttled replicas while a throttled move of the topic owns
    the list: the command was planned before the move began."""
    if command.topic not in admin.throttled:
        return None
    for key in THROTTLED_REPLICAS:
        if key in command.set or key in command.remove:
            return Rejected(
                Reason.REASSIGNMENT_IN_PROGRESS,
                f"a throttled move of topic {command.topic!r} owns {key} until the move has ended",
                f'config["{key}"]',
            )
    return None


async def describe_topic_configs(admin: TopicAdmin, command: DescribeTopicConfigs) -> Outcome:
    """Read the configurations of topics. One that may not be read, or does not decode, is left out.

    Raises:
        UnexpectedZooKeeperError: None of them may be read.
    """
    known = [topic for topic in command.topics if admin.cluster.has_topic(topic)]
    config_paths = list(map(paths.topic_config, known))
    nodes = await read_permitted(config_paths)
    if known and all(isinstance(node, UnreadableZNode) for node in nodes):
        raise UnexpectedZooKeeperError(NO_AUTH, config_paths[0])
    configs: dict[str, dict[str, str]] = {}
    for topic, node in zip(known, nodes, strict=True):
        try:
            configs[topic] = (
                {} if node is None else decode_entity_config(paths.topic_config(topic), node.data)
            )
        except MalformedZNodeError as error:
            admin.log.error("Malformed topic config", path=error.path, reason=error.reason)
    return Accepted(configs)
