"""Whether unclean leader election is allowed: for a topic, and by default."""

from __future__ import annotations

from collections.abc import Sequence

from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.context import ControllerContext
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config
from regent.zk_data.operations import ZNode
from regent.zk_data.permitted_reads import read_permitted

UNCLEAN_LEADER_ELECTION_ENABLE = "unclean.leader.election.enable"


async def unclean_election_flags(
    context: ControllerContext, topics: Sequence[str], log: StructuredLog
) -> dict[str, bool | None]:
    """Whether each topic allows unclean leader election; None if its configuration is malformed.

    The cluster-wide default is read, too. The notification of its change may wait behind the event
    that a broker has gone; an election by the former value would lose records.
    """
    default_path = paths.broker_config(None)
    read = [default_path, *map(paths.topic_config, topics)]
    default_node, *nodes = await read_permitted(read)
    default = _default_in(default_node, default_path, context.cluster, log)
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
    context: ControllerContext, static_default: bool, log: StructuredLog
) -> None:
    """Read the dynamic cluster-wide default; without one that of the settings holds."""
    path = paths.broker_config(None)
    (node,) = await read_permitted([path])
    context.cluster.static_unclean_leader_election_default = static_default
    context.cluster.unclean_leader_election_default = _default_in(node, path, context.cluster, log)


def _default_in(node: ZNode | None, path: str, cluster: ClusterState, log: StructuredLog) -> bool:
    """The default by the node of dynamic defaults, if that says any, else by the settings."""
    static_default = cluster.static_unclean_leader_election_default
    if node is None:
        return static_default
    try:
        own = decode_entity_config(path, node.data).get(UNCLEAN_LEADER_ELECTION_ENABLE)
    except MalformedZNodeError as error:
        log.error("Malformed broker configuration", path=error.path, reason=error.reason)
        return static_default
    return static_default if own is None else is_true(own)


def is_true(value: str) -> bool:
    """How Kafka reads a boolean configuration value."""
    return value.strip().lower() == "true"
