"""Whether unclean leader election is allowed: for a topic, and by default."""

from __future__ import annotations

from collections.abc import Sequence

from regent.controller.log import ControllerLog
from regent.controller.state.context import ControllerContext
from regent.controller.znodes.permitted_reads import read_permitted
from regent.model.errors import MalformedZNodeError
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config

UNCLEAN_LEADER_ELECTION_ENABLE = "unclean.leader.election.enable"


async def unclean_election_flags(
    context: ControllerContext, topics: Sequence[str], log: ControllerLog
) -> dict[str, bool | None]:
    """Whether each topic allows unclean leader election; None if its configuration is malformed."""
    nodes = await read_permitted([paths.topic_config(topic) for topic in topics])
    default = context.cluster.unclean_leader_election_default
    flags: dict[str, bool | None] = {}
    for topic, node in zip(topics, nodes, strict=True):
        if node is None:
            flags[topic] = default
            continue
        try:
            config = decode_entity_config(paths.topic_config(topic), node.data)
        except MalformedZNodeError as error:
            log.error("Malformed topic configuration", path=error.path, reason=error.reason)
            flags[topic] = None
            continue
        own = config.get(UNCLEAN_LEADER_ELECTION_ENABLE)
        flags[topic] = default if own is None else is_true(own)
    return flags


async def load_unclean_election_default(
    context: ControllerContext, static_default: bool, log: ControllerLog
) -> None:
    """Read the dynamic cluster-wide default; without one that of the settings holds."""
    path = paths.broker_config(None)
    (node,) = await read_permitted([path])
    context.cluster.unclean_leader_election_default = static_default
    if node is None:
        return
    try:
        own = decode_entity_config(path, node.data).get(UNCLEAN_LEADER_ELECTION_ENABLE)
    except MalformedZNodeError as error:
        log.error("Malformed broker configuration", path=error.path, reason=error.reason)
        return
    if own is not None:
        context.cluster.unclean_leader_election_default = is_true(own)


def is_true(value: str) -> bool:
    """How Kafka reads a boolean configuration value."""
    return value.strip().lower() == "true"
