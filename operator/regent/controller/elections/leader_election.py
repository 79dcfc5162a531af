"""Elections on request: for partitions that somebody names, with an outcome for each.

Source: ``KafkaController.processReplicaLeaderElection``, KIP-183, KIP-460.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from regent.admin.commands import Accepted, ElectionType, ElectLeaders, PartitionResult
from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState
from regent.controller.transitions import election
from regent.controller.transitions.election import ElectionStrategy
from regent.model.partition import TopicPartition
from regent.protocol.error_codes import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    INVALID_TOPIC_EXCEPTION,
    NONE,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)

ELECTED: Final = PartitionResult(NONE)

_STRATEGIES: Final[dict[ElectionType, ElectionStrategy]] = {
    ElectionType.PREFERRED: election.PREFERRED,
    ElectionType.UNCLEAN: election.OFFLINE_ALLOW_UNCLEAN,
}
_NOT_AVAILABLE: Final = {
    ElectionType.PREFERRED: PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


async def process_elect_leaders(active: ActiveController, command: ElectLeaders) -> Accepted:
    """Carry the command out. What fails is in the result of each partition."""
    with active.context.trail.because(CauseKind.ELECTION_REQUESTED):
        return await _elect_as_requested(active, command)


async def _elect_as_requested(active: ActiveController, command: ElectLeaders) -> Accepted:
    partitions = command.partitions
    if partitions is not None:
        return Accepted(await elect_leaders(active, partitions, command.election_type))
    results = await elect_leaders(
        active, _changeable(active.context, command.election_type), command.election_type
    )
    return Accepted(
        {tp: result for tp, result in results.items() if result.error_code != ELECTION_NOT_NEEDED}
    )


def _changeable(
    context: ControllerContext, election_type: ElectionType
) -> Collection[TopicPartition]:
    """The partitions among which those are that an election could change."""
    candidates = dict.fromkeys(context.partitions_without_leader)
    if election_type is ElectionType.PREFERRED:
        for broker_id in context.balance.imbalanced_brokers:
            candidates.update(dict.fromkeys(context.balance.led_by_others(broker_id)))
    return [tp for tp in candidates if not context.is_topic_queued_for_deletion(tp.topic)]


async def elect_leaders(
    active: ActiveController, partitions: Iterable[TopicPartition], election_type: ElectionType
) -> dict[TopicPartition, PartitionResult]:
    """Elect leaders where that changes anything, all in one transition.

    A partition that cannot be elected does not disturb the others. One that never had a leader has
    no state to elect from: it is not electable (upstream fails at it, and a failover that finds it
    listed in ``/admin/preferred_replica_election`` never succeeds).

    Returns:
        The result of each partition, in the order in which they are named.
    """
    context = active.context
    results = {tp: _refusal(context, tp, election_type) for tp in partitions}
    electable = [tp for tp, refusal in results.items() if refusal is None]
    failures = await active.partitions.handle_state_changes(
        electable, PartitionState.ONLINE, _STRATEGIES[election_type]
    )
    not_available = _NOT_AVAILABLE[election_type]
    for tp in electable:
        reason = failures.get(tp)
        results[tp] = ELECTED if reason is None else PartitionResult(not_available, str(reason))
    changed = frozenset(tp.topic for tp in electable if tp not in failures)
    if changed:
        await PublishView(changed)
    return {tp: result for tp, result in results.items() if result is not None}


def _refusal(
    context: ControllerContext, tp: TopicPartition, election_type: ElectionType
) -> PartitionResult | None:
    """Why no election is held for a partition, None if there is no reason."""
    assignment = context.cluster.assignment(tp)
    if assignment is None:
        return PartitionResult(UNKNOWN_TOPIC_OR_PARTITION, f"partition {tp} does not exist")
    if context.is_topic_queued_for_deletion(tp.topic):
        return PartitionResult(INVALID_TOPIC_EXCEPTION, f"topic {tp.topic!r} is being deleted")
    replicas, state = assignment.replicas, context.partition_state(tp)
    if state is PartitionState.NEW:
        return PartitionResult(
            _NOT_AVAILABLE[election_type],
            f"{tp} never had a leader: none of its replicas {list(replicas)} has been live",
        )
    current = context.cluster.leadership.get(tp)
    leader = current.leader if current and state is PartitionState.ONLINE else None
    if election_type is ElectionType.UNCLEAN:
        if leader is not None and context.is_replica_online(leader, tp, include_shutting_down=True):
            return PartitionResult(ELECTION_NOT_NEEDED, f"{tp} has the live leader {leader}")
        return None
    preferred = replicas[0] if replicas else None
    if leader is not None and leader == preferred:
        return PartitionResult(
            ELECTION_NOT_NEEDED, f"{tp} is led by its preferred replica {leader}"
        )
    if preferred is None or not context.is_replica_online(preferred, tp):
        return PartitionResult(
            PREFERRED_LEADER_NOT_AVAILABLE, f"the preferred replica {preferred} of {tp} is offline"
        )
    return None
