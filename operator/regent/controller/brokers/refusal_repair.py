"""Sends again what brokers have refused, with growing waits and a bounded number of times.

Upstream logs a refusal and forgets it: the broker differs from ZooKeeper until something else
changes the partition. What is sent again, and how, depends on what the broker may have done:

- An error of a *single partition*: the broker processes requests, and failed at this one, perhaps
  after it had taken the new leader epoch over. It ignores an epoch that it knows. So the partition
  gets a new leader epoch, which all of its replicas are sent.
- An error of the *whole request*: the broker may have done all of it, a part, or nothing. A new
  leader epoch would be written for every partition of the request while nobody says that the broker
  obeys by now, and a leader that does not learn of a written state cannot change its ISR any more
  (below inter.broker.protocol.version 2.7 it writes on condition of the version that it knows). So
  the same is sent again, to that broker alone, until it accepts. Only then each partition gets a
  new leader epoch, since the broker may take the one that it was sent twice for known. A request
  that was not authorized was not begun: there the acceptance is enough.
- *UpdateMetadata* has no epochs of partitions: all of it is sent again.

Not repaired is what no repetition heals (:data:`PERMANENT_ERRORS`), what was stopped meanwhile, as
on a broker that shuts down, and KAFKA_STORAGE_ERROR, which is no refusal: the replica is offline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.effects import ArmTimer, CurrentTime
from regent.controller.events import RefusalRepairDue
from regent.controller.reassignment.new_epochs import announce
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.controller.state.refusal_repairs import METADATA, Form, RetryPolicy, Subject
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.model.log import examples
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import LeaderAndIsrResponse, UpdateMetadataResponse
from regent.protocol.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    INCONSISTENT_TOPIC_ID,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    error_name,
)

PERMANENT_ERRORS: Final = frozenset(
    map(error_name, (INCONSISTENT_TOPIC_ID, INVALID_REQUEST, UNSUPPORTED_VERSION))
)
"""Errors that say something about the request or the replica that a repetition does not change. A
replica of another topic id is a stray one: see ``topics/stray_replicas.py``."""

_TIMER: Final = "refusal repair"


async def take_leader_and_isr_answer(
    active: ActiveController, response: LeaderAndIsrResponse
) -> None:
    """Plan the repair of what is refused, end that of what is accepted.

    To be called when the refusals of the answer are in the context.
    """
    context, broker_id = active.context, response.broker_id
    refused = context.refusals.on_broker(broker_id)
    forms: dict[Subject, Form] = {}
    if response.error_code:
        unsure = response.error_code != CLUSTER_AUTHORIZATION_FAILED
        forms = {
            tp: Form(is_new=is_new, is_unsure=unsure)
            for tp, is_new in response.partitions.items()
            if _may_be_repaired(refused.get(tp))
        }
    elif refused:
        forms = {
            tp: Form(is_new=response.partitions[tp], needs_epoch=True)
            for tp in response.partition_errors
            if tp in response.partitions and _may_be_repaired(refused.get(tp))
        }
    await _plan(active, broker_id, forms)
    if response.error_code or not context.refusal_repairs.on_broker(broker_id):
        return
    errors = response.partition_errors
    accepted = (tp for tp in response.partitions if tp not in refused and tp not in errors)
    followed_up = context.refusal_repairs.accepted(broker_id, accepted)
    await _give_new_epochs(active, {broker_id: followed_up})


async def take_update_metadata_answer(
    active: ActiveController, response: UpdateMetadataResponse
) -> None:
    """The same for an UpdateMetadata."""
    broker_id = response.broker_id
    if not response.error_code:
        active.context.refusal_repairs.accepted(broker_id, [METADATA])
    elif _may_be_repaired(error_name(response.error_code)):
        await _plan(active, broker_id, {METADATA: Form()})


async def process_refusal_repair_due(active: ActiveController) -> None:
    """Send again what is due."""
    context = active.context
    repairs = context.refusal_repairs
    due = repairs.take_due(
        await CurrentTime(), is_refused=lambda broker, what: _is_refused(context, broker, what)
    )
    with_epoch: dict[int, dict[TopicPartition, Form]] = {}
    for broker_id, forms in due.items():
        repeated: dict[TopicPartition, bool] = {}
        for what, form in forms.items():
            if what is not METADATA and _is_to_run(context, broker_id, what):
                if form.needs_epoch:
                    with_epoch.setdefault(broker_id, {})[what] = form
                elif what in context.cluster.leadership:
                    repeated[what] = form.is_new
        active.log.info(
            "Refused requests repeated",
            broker=broker_id,
            same_epoch=len(repeated),
            new_epoch=len(with_epoch.get(broker_id, ())),
            metadata=METADATA in forms,
        )
        batch = ControllerBrokerRequestBatch(context)
        batch.repeat_leader_and_isr(broker_id, repeated)
        if METADATA in forms:
            batch.add_update_metadata(context.cluster.leadership, broker_ids=[broker_id])
        await batch.send()
    await _give_new_epochs(active, with_epoch)
    await _arm(active)


def _may_be_repaired(error: str | None) -> bool:
    """Whether a repetition may help against an error; None: nothing is refused."""
    return error is not None and error not in PERMANENT_ERRORS


def _is_to_run(context: ControllerContext, broker_id: int, tp: TopicPartition) -> bool:
    """Not what was stopped: on a broker that shuts down it would be in the ISR again at the end."""
    return context.replica_state(broker_id, tp) in (ReplicaState.NEW, ReplicaState.ONLINE)


def _is_refused(context: ControllerContext, broker_id: int, what: Subject) -> bool:
    if what is METADATA:
        return broker_id in context.refusals.metadata
    return what in context.refusals.on_broker(broker_id)


async def _plan(active: ActiveController, broker_id: int, forms: Mapping[Subject, Form]) -> None:
    if not forms:
        return
    config = active.config
    given_up = active.context.refusal_repairs.refused(
        broker_id,
        forms,
        now_ms=await CurrentTime(),
        policy=RetryPolicy(config.refusal_repair_backoff_ms, config.refusal_repair_attempts),
    )
    if given_up:
        active.log.error(
            "Refused requests not repeated any more: restart the broker when its cause is mended",
            broker=broker_id,
            attempts=config.refusal_repair_attempts,
            count=len(given_up),
            examples=examples("UpdateMetadata" if w is METADATA else str(w) for w in given_up),
        )
    await _arm(active)


async def _arm(active: ActiveController) -> None:
    due_in_ms = active.context.refusal_repairs.next_due_in_ms(await CurrentTime())
    if due_in_ms is not None:
        await ArmTimer(_TIMER, due_in_ms, RefusalRepairDue())


async def _give_new_epochs(
    active: ActiveController, refused: Mapping[int, Mapping[TopicPartition, Form]]
) -> None:
    """New leader epochs for partitions that are led, whichever replica has refused them."""
    context = active.context
    partitions = dict.fromkeys(
        tp
        for broker_id, forms in refused.items()
        for tp in forms
        if context.partition_state(tp) is PartitionState.ONLINE
        and _is_to_run(context, broker_id, tp)
        and not context.is_topic_queued_for_deletion(tp.topic)
    )
    if not partitions:
        return
    new_on = {
        broker_id: [tp for tp, form in forms.items() if form.is_new and tp in partitions]
        for broker_id, forms in refused.items()
    }
    brokers = [context.cluster.brokers[b] for b in refused if b in context.cluster.brokers]
    with context.trail.because(CauseKind.REQUEST_REFUSED, brokers=brokers):
        await announce(active, list(partitions), new_on=new_on)
