"""Brokers come, go and change their registrations: BrokerChange, BrokerModifications."""

from __future__ import annotations

from collections.abc import Sequence

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import (
    broker_notes,
    own_registration,
    unassigned_replicas,
    unserved_listeners,
)
from regent.controller.brokers.offline_replicas import (
    on_replicas_become_offline,
    without_started_deletions,
)
from regent.controller.effects import PublishView, ReaddressChannels, UpdateChannels
from regent.controller.reassignment.reassignments import resume_for_targets
from regent.controller.state.causes import CauseKind
from regent.controller.state.states import ReplicaState
from regent.controller.term import cluster_loading
from regent.controller.term.unusable_settings import refuse_id_of_a_registered_broker
from regent.controller.topics import stray_replicas
from regent.controller.transitions import election
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.election import ElectionStrategy
from regent.model.cluster import Broker
from regent.zk_data import paths
from regent.zk_data.broker_notes import SHUTTING_DOWN
from regent.zk_data.permitted_reads import read_permitted


async def process_broker_change(active: ActiveController) -> None:
    """Compare the registrations with the context. A broker with another epoch has bounced, even if
    no child list ever missed it (KAFKA-7235)."""
    context = active.context
    known = context.cluster.brokers
    current = await cluster_loading.read_brokers(active.log, known=known)
    refuse_id_of_a_registered_broker(context.term.controller_id, current)
    cluster_loading.refuse_unsupported(current.values(), active.config)
    new = [b for i, b in current.items() if i not in known]
    bounced = [b for i, b in current.items() if i in known and b.epoch > known[i].epoch]
    dead = [i for i in known if i not in current]
    if not (new or bounced or dead):
        await own_registration.settle(active)  # it may be what has vanished
        return
    active.log.info(
        "Brokers changed",
        new=[b.broker_id for b in new],
        bounced=[b.broker_id for b in bounced],
        dead=dead,
        live=list(current),
    )
    bounced_ids = [b.broker_id for b in bounced]
    stopped = [b for b in (*dead, *bounced_ids) if b in context.shutting_down_broker_ids]
    await UpdateChannels(
        context.term.epoch,
        opened=[*new, *bounced],
        closed=[*dead, *bounced_ids],
        epoch_zk_version=context.term.epoch_zk_version,
    )
    # Who is dead is not to be elected by what the others lead to. Who has bounced is there.
    context.remove_live_brokers(dead)
    if new:
        with context.trail.because(CauseKind.BROKER_STARTED, brokers=new):
            context.add_live_brokers(new)
            await on_broker_startup(active, new)
    if bounced:
        with context.trail.because(CauseKind.BROKER_BOUNCED, brokers=bounced):
            context.remove_live_brokers(bounced_ids)
            # What they alone have in sync they lead again: nothing is lost for a life that is over.
            await on_broker_failure(active, bounced_ids, election.OFFLINE_CLEANLY)
            context.add_live_brokers(bounced)
            await on_broker_startup(active, bounced)
    if dead:
        with context.trail.because(CauseKind.BROKER_FAILED, brokers=[known[i] for i in dead]):
            await on_broker_failure(active, dead)
    if stopped:
        await broker_notes.forget(context, SHUTTING_DOWN, stopped)
    unserved_listeners.report(active)
    await own_registration.settle(active)
    await PublishView(frozenset())


async def on_broker_startup(active: ActiveController, brokers: Sequence[Broker]) -> None:
    """Send a returned broker everything, bring its replicas online, elect where it can help."""
    context = active.context
    started = [b.broker_id for b in brokers]
    for broker_id in started:
        context.set_replicas_on_offline_dirs(broker_id, ())
    existing = [b for b in context.cluster.brokers if b not in started]
    batch = ControllerBrokerRequestBatch(context)
    batch.add_update_metadata(broker_ids=existing)
    await batch.send()
    # Its process may have outlived its session, and know what was deleted meanwhile.
    batch.add_former_partitions(started, context.cluster.former_partitions)
    await batch.send()
    batch.add_update_metadata(context.cluster.leadership, broker_ids=started)
    await batch.send()
    replicas = {broker_id: list(context.replica_states_on(broker_id)) for broker_id in started}
    await stray_replicas.delete_on_started(active, started)
    await active.replicas.handle_state_changes(
        {b: without_started_deletions(active, tps) for b, tps in replicas.items()},
        ReplicaState.ONLINE,
    )
    hosted = [tp for partitions in replicas.values() for tp in partitions]
    await active.partitions.trigger_online_for(hosted)
    await resume_for_targets(active, started, hosted)
    await active.deletions.resume_for(dict.fromkeys(tp.topic for tp in hosted))
    await unassigned_replicas.schedule_soon(active)


async def on_broker_failure(
    active: ActiveController,
    broker_ids: Sequence[int],
    strategy: ElectionStrategy = election.OFFLINE,
) -> None:
    """Elect new leaders where the brokers led, shrink the ISRs they were in."""
    context = active.context
    for broker_id in broker_ids:
        context.set_replicas_on_offline_dirs(broker_id, ())
    await on_replicas_become_offline(
        active, {b: list(context.replica_states_on(b)) for b in broker_ids}, strategy
    )


async def process_broker_modifications(active: ActiveController, broker_id: int) -> None:
    """A registration was rewritten: announce changed endpoints and features."""
    context = active.context
    (node,) = await read_permitted([paths.broker_id(broker_id)], watch=True)
    known = context.cluster.brokers.get(broker_id)
    if node is None:
        return  # the list of brokers has changed as well, and its watch reports it
    if known is None:
        await process_broker_change(active)  # its registration was malformed, and is corrected
        return
    broker = cluster_loading.decode_registration(broker_id, node, active.log, known=known)
    if broker is None or broker.epoch != known.epoch:
        return  # another life of it: the list of brokers has changed as well
    if broker == known:
        return
    active.log.info("Broker changed its registration", broker=broker_id)
    cluster_loading.refuse_unsupported([broker], active.config)
    context.add_live_brokers([broker])
    await ReaddressChannels([broker])
    batch = ControllerBrokerRequestBatch(context)
    batch.add_update_metadata()
    await batch.send()
    unserved_listeners.report(active)
    await own_registration.settle(active)
    await PublishView(frozenset())
