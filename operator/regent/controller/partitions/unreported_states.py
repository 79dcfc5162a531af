"""Partitions whose state a take-over had from a copy that turned out to be wrong.

Brokers were sent what the copy had. Its leader epoch is below the present one, so leaders and
followers have ignored it; their metadata has not. And a partition may be led by a broker that was
dead when the term began: nobody has been elected for it, as another one seemed to lead.
"""

from __future__ import annotations

from collections.abc import Sequence

from regent.controller.active_controller import ActiveController
from regent.controller.effects import PublishView
from regent.controller.partitions.isr_changes import read_and_announce
from regent.controller.state.causes import CauseKind
from regent.controller.state.states import PartitionState
from regent.model.partition import TopicPartition
from regent.zk_data.permitted_reads import parts_that_may_be_closed


async def process_unreported_states(
    active: ActiveController, partitions: Sequence[TopicPartition]
) -> None:
    """Read the states, announce them, and elect where the leader is not there."""
    context = active.context
    for some in parts_that_may_be_closed(partitions):
        known = await read_and_announce(active, some, cause=CauseKind.STATE_UNREPORTED)
        leaderless = [
            tp
            for tp in known
            if not context.is_replica_online(context.cluster.leadership[tp].leader, tp)
            and not context.is_topic_queued_for_deletion(tp.topic)
        ]
        if leaderless:
            with context.trail.because(CauseKind.STATE_UNREPORTED):
                await active.partitions.handle_state_changes(leaderless, PartitionState.OFFLINE)
                await active.partitions.trigger_online_for(leaderless)
        await PublishView(frozenset(tp.topic for tp in known))
