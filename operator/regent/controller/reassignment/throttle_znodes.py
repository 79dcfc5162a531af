"""A configuration and the note about what of it is Regent's, changed in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from regent.controller.active_controller import ActiveController
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import UnexpectedZooKeeperError
from regent.zk_data import paths
from regent.zk_data.config import (
    ConfigEntity,
    decode_entity_config,
    encode_config_change,
    encode_entity_config,
)
from regent.zk_data.effects import Multi, Write
from regent.zk_data.operations import Create, Delete, Operation, SetData, ZkError, ZNode
from regent.zk_data.permitted_reads import UnreadableZNode, may_not_be_read, read_permitted
from regent.zk_data.throttles import PARENTS
from regent.zk_data.transactions import (
    all_written,
    raise_if_moved,
    transaction_limit,
    transaction_size,
)


class ConfiguredNodes(NamedTuple):
    """A configuration and the note about it; None: the node does not exist."""

    config_path: str
    config: ZNode | None
    note_path: str
    note: ZNode | None


async def read(both: Sequence[tuple[str, str]]) -> list[ConfiguredNodes]:
    """Configurations and notes by their paths."""
    flat = [path for pair in both for path in pair]
    nodes = await read_permitted(flat)
    return [
        ConfiguredNodes(config_path, config, note_path, note)
        for (config_path, note_path), config, note in zip(
            both, nodes[::2], nodes[1::2], strict=True
        )
    ]


def config_of(nodes: ConfiguredNodes) -> dict[str, str]:
    """The configuration.

    Raises:
        MalformedZNodeError: It does not decode, or it or the note may not be read.
    """
    if isinstance(nodes.note, UnreadableZNode):
        raise may_not_be_read(nodes.note_path)
    return (
        {} if nodes.config is None else decode_entity_config(nodes.config_path, nodes.config.data)
    )


def changes_of(
    entity: ConfigEntity,
    nodes: ConfiguredNodes,
    *,
    note: bytes | None,
    config: Mapping[str, str],
    values: Mapping[str, str | None],
) -> list[Operation]:
    """What makes the note and the configuration say this; nothing if they do.

    Args:
        entity: Whose configuration it is; brokers are notified of its change.
        note: Content of the note; None: there is to be none.
        config: The configuration as it is.
        values: What some keys are to be; None: not set.
    """
    operations: list[Operation] = []
    if note is None:
        if nodes.note is not None:
            operations.append(Delete(nodes.note_path, nodes.note.version))
    elif nodes.note is None:
        operations.append(Create(nodes.note_path, note))
    elif nodes.note.data != note:
        operations.append(SetData(nodes.note_path, note, nodes.note.version))
    kept = {key: value for key, value in config.items() if key not in values}
    after = kept | {key: value for key, value in values.items() if value is not None}
    if after != config:
        content = encode_entity_config(after)
        operations.append(
            Create(nodes.config_path, content)
            if nodes.config is None
            else SetData(nodes.config_path, content, nodes.config.version)
        )
        change = encode_config_change(entity.entity_path)
        operations.append(Create(paths.config_change_prefix(), change, sequential=True))
    return operations


async def write(active: ActiveController, operations: Sequence[Operation]) -> str | None:
    """One transaction. Returns why it did not take place."""
    if not operations:
        return None
    guarded = [epoch_guard(active.context), *operations]
    size, limit = transaction_size(guarded), transaction_limit(active.config.jute_max_buffer)
    if size > limit:
        return f"its lists of throttled replicas take {size:,} bytes, ZooKeeper accepts {limit:,}"
    try:
        results = await Multi(guarded)
    except UnexpectedZooKeeperError as error:  # a right is missing, a quota is used up
        return str(error)
    if all_written(results):
        return None
    raise_if_moved(results)
    (operation, answer) = next(
        (operation, result)
        for operation, result in zip(guarded, results, strict=True)
        if isinstance(result, ZkError) and result is not ZkError.ROLLED_BACK
    )
    if answer is ZkError.NO_NODE and isinstance(operation, Create):
        guard = epoch_guard(active.context)
        for parent in PARENTS:
            await Write([Create(parent, exist_ok=True)], guard=guard)
    return f"ZooKeeper answered {answer.value} for {operation.path}"
