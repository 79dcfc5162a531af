"""A broker that was shutting down lives on: its shutdown was given up.

A broker process does not change its mind after SIGTERM, but a request may have been made in its
place, by a drain that was cancelled for instance. Such a broker must not stay excluded for ever.
And time alone does not tell: one that has asked for the last time writes its logs to disk before
its session ends, which may take minutes, and serves nobody meanwhile. To give it leaders then would
be an outage.

What tells the two apart is whether it answers. Between two requests of a broker there are at most
35 s by default: 30 s without an answer (controller.socket.timeout.ms) and 5 s of waiting
(controlled.shutdown.retry.backoff.ms). After the last one the broker stops to process requests at
once, in all versions. So :data:`GIVEN_UP_AFTER_MS` after the last request the broker is sent an
UpdateMetadata; if it ever answers that, it lives on. It is a broker as any other again, and asking
once more has it shut down again. Until then it stays excluded, however long its end may take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import broker_notes
from regent.controller.brokers.offline_replicas import without_started_deletions
from regent.controller.effects import ArmTimer, PublishView
from regent.controller.events import ControlledShutdownOverdue
from regent.controller.reassignment.new_epochs import announce
from regent.controller.reassignment.reassignments import resume_for_targets
from regent.controller.state.causes import CauseKind
from regent.controller.state.states import ReplicaState
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.model.cluster import Broker
from regent.protocol.control_requests import UpdateMetadataResponse
from regent.zk_data.broker_notes import SHUTTING_DOWN

GIVEN_UP_AFTER_MS: Final = 60_000


async def expect_the_end(active: ActiveController, brokers: Sequence[Broker]) -> None:
    """Brokers have just asked to be shut down: look after them if they are still there later."""
    for broker in brokers:
        event = ControlledShutdownOverdue(active.context.term.epoch, broker.broker_id, broker.epoch)
        await ArmTimer(f"shutdown of broker {broker.broker_id}", GIVEN_UP_AFTER_MS, event)


async def process_controlled_shutdown_overdue(
    active: ActiveController, event: ControlledShutdownOverdue
) -> None:
    """Send a broker that should have stopped something to answer."""
    context, broker_id = active.context, event.broker_id
    broker = context.cluster.brokers.get(broker_id)
    if (
        broker is None
        or broker.epoch != event.broker_epoch
        or broker_id not in context.shutting_down_broker_ids
        or event.controller_epoch != context.term.epoch
    ):
        return
    active.log.info("Broker is still shutting down", broker=broker_id)
    context.unconfirmed_shutdowns[broker_id] = None
    batch = ControllerBrokerRequestBatch(context)
    batch.add_update_metadata(broker_ids=(broker_id,))
    await batch.send()


async def take_answer(active: ActiveController, response: UpdateMetadataResponse) -> None:
    """A broker answers an UpdateMetadata: it processes requests."""
    broker_id = response.broker_id
    if broker_id in active.context.unconfirmed_shutdowns:
        broker = active.context.cluster.brokers[broker_id]
        with active.context.trail.because(CauseKind.SHUTDOWN_GIVEN_UP, brokers=[broker]):
            await _take_back(active, broker_id)


async def _take_back(active: ActiveController, broker_id: int) -> None:
    """Have a broker follow its partitions again.

    Its replicas were stopped under the epochs that they have, and brokers ignore a LeaderAndIsr
    with an epoch that they know: so the epochs rise. The note goes last: a successor that does not
    find it knows no reason to raise them.
    """
    context = active.context
    active.log.warning("Broker has given up shutting down", broker=broker_id)
    context.clear_shutting_down(broker_id)
    hosted = without_started_deletions(active, context.replica_states_on(broker_id))
    leadership = context.cluster.leadership
    states = context.replica_states_on(broker_id)
    offline = dict.fromkeys(tp for tp in hosted if states[tp] is ReplicaState.OFFLINE)
    # One that was stopped is in its ISR still if that could not be written.
    stopped = [
        tp
        for tp in hosted
        if tp in leadership and (tp in offline or broker_id not in leadership[tp].isr)
    ]
    context.set_replica_states(broker_id, offline, ReplicaState.ONLINE)
    batch = ControllerBrokerRequestBatch(context)
    batch.add_update_metadata(tp for tp in hosted if tp not in stopped)
    await batch.send()
    await announce(active, stopped)
    await active.partitions.trigger_online_for(hosted)
    await resume_for_targets(active, [broker_id], hosted)
    await broker_notes.forget(context, SHUTTING_DOWN, [broker_id])
    await PublishView(frozenset())
