"""ISR changes that leaders have asked for are announced after the answers, several together.

A leader that has asked waits, and with it all further ISR changes of its broker. Nobody waits for
the announcement: brokers show the ISR to clients, and do nothing else with it. (Below
inter.broker.protocol.version 2.7 leaders announce their changes every 2.5 s.) So the announcement,
an UpdateMetadata to every broker, is put off for a moment, and says what has changed meanwhile.

What has been changed and not announced is known to this process only. That is enough: a successor
announces everything, and so does this one if it is elected again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.effects import ArmTimer, PublishView
from regent.controller.events import IsrAnnouncementDue
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.model.partition import TopicPartition

AFTER_MS: Final = 20
"""Short for whoever looks. At a thousand changes a second it saves nine of ten announcements."""

TIMER: Final = "ISR changes to be announced"


async def announce_soon(context: ControllerContext, partitions: Iterable[TopicPartition]) -> None:
    """Announce the states that partitions have then."""
    unannounced = context.unannounced_isr_changes
    is_first = not unannounced
    unannounced.update(dict.fromkeys(partitions))
    if unannounced and is_first:
        await ArmTimer(TIMER, AFTER_MS, IsrAnnouncementDue())


async def process_isr_announcement_due(active: ActiveController) -> None:
    """Announce what has changed. A topic that is gone was announced as such."""
    context = active.context
    partitions = [tp for tp in context.unannounced_isr_changes if tp in context.cluster.leadership]
    context.unannounced_isr_changes.clear()
    if not partitions:
        return
    batch = ControllerBrokerRequestBatch(context)
    batch.add_update_metadata(partitions)
    await batch.send()
    await PublishView(frozenset(tp.topic for tp in partitions))
