"""After a disconnection that the session survived: its watches are gone, so read everything again.

Java's ZooKeeper client keeps watches over a reconnection; kazoo drops them. Whatever they would
have reported is found by comparing with the context, as the handlers of the events do anyway.
"""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import broker_changes, log_dir_events
from regent.controller.configs import config_changes
from regent.controller.effects import CurrentTime
from regent.controller.elections import preferred_replica_election
from regent.controller.partitions import isr_changes
from regent.controller.reassignment import reassignment_changes
from regent.controller.topics import topic_changes


async def read_everything_anew(active: ActiveController) -> None:
    """Process every kind of change that may have been missed, and set all watches again."""
    context = active.context
    context.trail.begin_event("SessionReconnected", await CurrentTime())
    await broker_changes.process_broker_change(active)
    for broker_id in list(context.cluster.brokers):
        await broker_changes.process_broker_modifications(active, broker_id)
    await topic_changes.process_topic_change(active)
    await topic_changes.process_partition_modifications(active, list(context.cluster.topics))
    await topic_changes.process_topic_deletion(active)
    await reassignment_changes.process_zk_partition_reassignment(active)
    await reassignment_changes.process_partition_reassignment_isr_change(
        active, list(context.cluster.partitions_being_reassigned)
    )
    await isr_changes.process_isr_change_notification(active)
    await log_dir_events.process_log_dir_event_notification(active)
    await preferred_replica_election.process_replica_leader_election(active)
    await config_changes.process_config_change(active)
