"""Brokers report failed log directories: LogDirEventNotification."""

from __future__ import annotations

from collections.abc import Iterable

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.offline_replicas import without_started_deletions
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import ReplicaState
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.controller.znodes.notifications import read_notifications
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import ReadChildren, Write
from regent.zk_data.notifications import decode_log_dir_event
from regent.zk_data.operations import Delete


async def process_log_dir_event_notification(active: ActiveController) -> None:
    """Brokers lost log directories: ask them which replicas that concerns, by a LeaderAndIsr."""
    context = active.context
    parent = paths.LOG_DIR_EVENT_NOTIFICATION
    (children,) = await ReadChildren([parent], watch=True)
    nodes = [f"{parent}/{child}" for child in children or ()]
    affected = dict.fromkeys(await read_notifications(active.log, nodes, decode_log_dir_event))
    replicas = {
        broker_id: without_started_deletions(active, _expected_online(context, broker_id))
        for broker_id in affected
        if broker_id in context.cluster.brokers
    }
    await active.replicas.handle_state_changes(replicas, ReplicaState.ONLINE)
    await Write([Delete(path, missing_ok=True) for path in nodes], guard=epoch_guard(context))


def _expected_online(context: ControllerContext, broker_id: int) -> Iterable[TopicPartition]:
    """Replicas on a broker, but not what one that is shutting down has left: it stays stopped."""
    states = context.replica_states_on(broker_id)
    if broker_id not in context.shutting_down_broker_ids:
        return states
    return [tp for tp, state in states.items() if state is not ReplicaState.OFFLINE]
