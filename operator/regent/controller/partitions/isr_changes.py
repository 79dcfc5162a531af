"""ISR changes that leaders make in ZooKeeper (inter.broker.protocol.version below 2.7).

The notifications are honoured at any version: brokers of a rolling upgrade still write them.
"""

from __future__ import annotations

from collections.abc import Iterable

from regent.controller.active_controller import ActiveController
from regent.controller.brokers.partition_release import release_again
from regent.controller.effects import PublishView
from regent.controller.reassignment.reassignments import complete_where_in_sync
from regent.controller.state.causes import CauseKind
from regent.controller.term.cluster_loading import refresh_leadership
from regent.controller.topics.stray_replicas import take_isr_changes
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.controller.znodes.notifications import read_notifications
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.effects import ReadChildren, Write
from regent.zk_data.notifications import decode_isr_change_notification
from regent.zk_data.operations import Delete
from regent.zk_data.permitted_reads import parts_that_may_be_closed


async def process_isr_change_notification(active: ActiveController) -> None:
    """Read what leaders have changed and announce it to all brokers."""
    context = active.context
    (children,) = await ReadChildren([paths.ISR_CHANGE_NOTIFICATION], watch=True)
    nodes = [paths.isr_change_notification(child) for child in children or ()]
    if not nodes:
        return
    changed: dict[TopicPartition, None] = {}
    for partitions in await read_notifications(active.log, nodes, decode_isr_change_notification):
        changed.update(dict.fromkeys(partitions))
    known = await read_and_announce(active, changed)
    await Write([Delete(path, missing_ok=True) for path in nodes], guard=epoch_guard(context))
    await PublishView(frozenset(tp.topic for tp in known))


async def read_again(active: ActiveController) -> None:
    """Read the states that could not be read when they had changed. However many that are by now,
    each reading finds no more of them closed than it may."""
    for unread in parts_that_may_be_closed(list(active.context.unread_states)):
        known = await read_and_announce(active, unread)
        await PublishView(frozenset(tp.topic for tp in known))


async def read_and_announce(
    active: ActiveController,
    changed: Iterable[TopicPartition],
    *,
    cause: CauseKind = CauseKind.ISR_CHANGE,
) -> list[TopicPartition]:
    """Read states that others have written, and do what follows. Returns those that are known."""
    context = active.context
    with context.trail.because(cause):
        known = await refresh_leadership(context, changed, active.log, have_changed=True)
    if known:
        batch = ControllerBrokerRequestBatch(context)
        batch.add_update_metadata(known)
        await batch.send()
    await release_again(active, known)
    await complete_where_in_sync(active, known)
    await take_isr_changes(active, known)
    return known
