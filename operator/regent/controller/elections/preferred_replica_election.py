"""Preferred elections that tools ask for through ``/admin/preferred_replica_election``.

Source: ``KafkaController.processReplicaLeaderElection`` with ``ZkTriggered``.
"""

from __future__ import annotations

from collections import Counter

from regent.admin.commands import ElectionType
from regent.controller.active_controller import ActiveController
from regent.controller.effects import Enqueue
from regent.controller.elections.leader_election import elect_leaders
from regent.controller.events import ReplicaLeaderElection
from regent.controller.state.causes import CauseKind
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.errors import MalformedZNodeError
from regent.model.log import StructuredLog, examples
from regent.model.partition import TopicPartition
from regent.protocol.error_codes import ELECTION_NOT_NEEDED, NONE, error_name
from regent.zk_data import paths
from regent.zk_data.effects import Write
from regent.zk_data.operations import Delete, Written, ZkError, ZNode
from regent.zk_data.permitted_reads import UnreadableZNode, exists_permitted, read_permitted
from regent.zk_data.preferred_replica_election import decode_preferred_replica_election


async def process_replica_leader_election(active: ActiveController) -> None:
    """Elect the preferred leaders that are asked for, then remove the request, whatever came of it.

    The watch that is left reports the removal, too, and so leads to the next look: a request that
    is made right after the removal is not overlooked. A request that was replaced meanwhile stays
    for that look, too. After a crash in between the next controller does the same again, and finds
    no election needed.
    """
    path = paths.PREFERRED_REPLICA_ELECTION
    if not await exists_permitted(path, active.log):
        return
    (node,) = await read_permitted([path])
    if node is None:
        return
    await _elect(active, _decode(node, active.log))
    (result,) = await Write(
        [Delete(path, node.version, missing_ok=True)], guard=epoch_guard(active.context)
    )
    if not isinstance(result, Written) and result is not ZkError.BAD_VERSION:
        active.log.error("Preferred replica election not removed", path=path, answer=result.value)
    elif isinstance(node, UnreadableZNode):
        await Enqueue(ReplicaLeaderElection())  # there was no watch on it


def _decode(node: ZNode, log: StructuredLog) -> tuple[TopicPartition, ...]:
    try:
        return decode_preferred_replica_election(paths.PREFERRED_REPLICA_ELECTION, node.data)
    except MalformedZNodeError as error:
        log.error(
            "Malformed preferred replica election removed", path=error.path, reason=error.reason
        )
        return ()


async def _elect(active: ActiveController, partitions: tuple[TopicPartition, ...]) -> None:
    with active.context.trail.because(CauseKind.ELECTION_REQUESTED):
        results = await elect_leaders(active, partitions, ElectionType.PREFERRED)
    failed = {
        tp: result
        for tp, result in results.items()
        if result.error_code not in (NONE, ELECTION_NOT_NEEDED)
    }
    active.log.info(
        "Preferred replica election",
        requested=len(results),
        outcomes=dict(Counter(error_name(result.error_code) for result in results.values())),
        failed=examples(f"{tp}: {result.message}" for tp, result in failed.items()),
    )
