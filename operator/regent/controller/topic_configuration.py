"""Reading and changing the configuration of topics by command."""

from __future__ import annotations

from regent.controller import config_changes
from regent.controller.active_controller import ActiveController
from regent.controller.commands import (
    Accepted,
    AlterTopicConfig,
    DescribeTopicConfigs,
    Outcome,
    Reason,
    Rejected,
)
from regent.controller.effects import Multi, ReadData
from regent.controller.partition_state_znodes import epoch_guard
from regent.controller.topic_refusals import (
    all_written,
    concurrent_change,
    config_refused,
    not_usable,
    raise_if_moved,
)
from regent.model.errors import MalformedZNodeError
from regent.model.topic_config import config_conflicts, config_problem
from regent.zk_data import paths
from regent.zk_data.config import (
    ConfigEntity,
    decode_entity_config,
    encode_config_change,
    encode_entity_config,
)
from regent.zk_data.operations import Create, SetData


async def alter_topic_config(active: ActiveController, command: AlterTopicConfig) -> Outcome:
    """Change keys and notify, in one transaction (Kafka writes twice: a crash between loses the
    notification, and with it the change on every running broker)."""
    topic = command.topic
    refused = not_usable(active, topic) or config_refused(topic, command.set)
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
    if not all_written(results):
        raise_if_moved(results)
        return concurrent_change(topic)
    await config_changes.elect_where_unclean_is_allowed(active, [topic])
    return Accepted()


async def describe_topic_configs(
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
