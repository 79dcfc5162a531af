"""``/admin/reassign_partitions``: where Kafka's tools up to 2.8 ask for reassignments.

The node lists what is wanted, and each partition leaves it when it is there, or cannot get there:
``kafka-reassign-partitions --verify`` takes what is listed for in progress. The node is deleted
with its last partition; a tool can create it then.
"""

from __future__ import annotations

from collections.abc import Callable

from regent.controller.active_controller import ActiveController
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import Write
from regent.zk_data.operations import Delete, SetData, ZkError, ZNode
from regent.zk_data.permitted_reads import exists_permitted, read_permitted
from regent.zk_data.reassign_partitions import (
    ReassignPartitionsZNode,
    decode_reassign_partitions,
    encode_reassign_partitions,
)

_PATH = paths.REASSIGN_PARTITIONS


async def read_request(active: ActiveController) -> ReassignPartitionsZNode | None:
    """What is asked for, None if nothing is, or nothing that can be read.

    Leaves a watch that reports the node's creation, change and deletion.
    """
    if not await exists_permitted(_PATH, active.log):
        return None
    (node,) = await read_permitted([_PATH])
    request = None if node is None else _decode(active, node)
    if request is not None and request.problems:
        active.log.error(
            "Malformed reassignments skipped", path=_PATH, reasons=list(request.problems)
        )
    return request


async def drop_requests(
    active: ActiveController, is_obsolete: Callable[[TopicPartition, tuple[int, ...]], bool]
) -> None:
    """Remove partitions from the node, and malformed entries with them; an empty node goes.

    Args:
        is_obsolete: Whether a partition is to go, by the replica list that the node wants for it.
    """
    while True:
        (node,) = await read_permitted([_PATH])
        request = None if node is None else _decode(active, node)
        if node is None or request is None:
            return
        kept = {tp: r for tp, r in request.targets.items() if not is_obsolete(tp, r)}
        if kept and len(kept) == len(request.targets) and not request.problems:
            return
        change = (
            SetData(_PATH, encode_reassign_partitions(kept), node.version)
            if kept
            else Delete(_PATH, node.version, missing_ok=True)
        )
        (result,) = await Write([change], guard=epoch_guard(active.context))
        if result is not ZkError.BAD_VERSION:
            if isinstance(result, ZkError) and result is not ZkError.NO_NODE:
                active.log.error("Reassignments not removed", path=_PATH, answer=result.value)
            return


def _decode(active: ActiveController, node: ZNode) -> ReassignPartitionsZNode | None:
    try:
        return decode_reassign_partitions(node.data)
    except MalformedZNodeError as error:
        active.log.error(
            "Malformed reassignment skipped",
            path=error.path,
            reason=error.reason,
            remedy="delete the znode: tools do not begin another reassignment while it exists",
        )
        return None
