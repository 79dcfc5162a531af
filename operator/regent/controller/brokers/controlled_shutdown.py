"""Brokers ask to be shut down: ControlledShutdown, before they stop.

A broker that gets SIGTERM asks the controller to relieve it of its partitions, up to three times
(controlled.shutdown.max.retries), five seconds apart, and stops when nothing remains or it has
asked for the last time. From the first request on it is *shutting down*: it gets requests as
before, and is no candidate for leaders, ISRs and new replicas any more. That ends with this life of
the broker, or when the shutdown was given up (``abandoned_shutdowns.py``). It is noted in ZooKeeper
first, so it outlives the controller. What the broker need not wait for comes after its answer
(``released_partitions.py``).

Source: ``KafkaController.processControlledShutdown``, KIP-40, KIP-380.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regent.admin.commands import Accepted
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import broker_notes
from regent.controller.brokers.abandoned_shutdowns import expect_the_end
from regent.controller.brokers.broker_changes import process_broker_change
from regent.controller.brokers.partition_release import release_partitions, with_successors
from regent.controller.brokers.released_partitions import expect_partitions_released
from regent.controller.commands import ControlledShutdown, ControlledShutdownResult
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.model.cluster import Broker
from regent.model.log import examples
from regent.model.partition import NO_EPOCH
from regent.protocol.error_codes import BROKER_NOT_AVAILABLE, STALE_BROKER_EPOCH
from regent.zk_data.broker_notes import SHUTTING_DOWN


async def shut_down_brokers(
    active: ActiveController, commands: Sequence[ControlledShutdown]
) -> list[Accepted]:
    """Carry requests out as one set. The result of each is a :class:`ControlledShutdownResult`."""
    context = active.context
    if any(_is_ahead_of_us(context, command) for command in commands):
        await process_broker_change(active)
    refusals = [_refusal(context, command) for command in commands]
    accepted = dict.fromkeys(
        command.broker_id
        for command, refusal in zip(commands, refusals, strict=True)
        if refusal is None
    )
    if accepted:
        brokers = [context.cluster.brokers[broker_id] for broker_id in accepted]
        with context.trail.because(CauseKind.CONTROLLED_SHUTDOWN, brokers=brokers):
            await _shut_down(active, brokers)
        await expect_partitions_released(active, accepted)
    results = {broker_id: _result(active, broker_id) for broker_id in accepted}
    return [
        Accepted(results[command.broker_id] if refusal is None else refusal)
        for command, refusal in zip(commands, refusals, strict=True)
    ]


def _is_ahead_of_us(context: ControllerContext, command: ControlledShutdown) -> bool:
    """Whether a broker has registered, and its watch has yet to report it."""
    known = context.cluster.brokers.get(command.broker_id)
    return known is None or command.broker_epoch > known.epoch


def _refusal(
    context: ControllerContext, command: ControlledShutdown
) -> ControlledShutdownResult | None:
    """Why a request is not carried out. One without an epoch (before Kafka 2.2) is believed."""
    broker_id, epoch = command.broker_id, command.broker_epoch
    known = context.cluster.brokers.get(broker_id)
    if known is None:
        return ControlledShutdownResult(
            BROKER_NOT_AVAILABLE, f"broker {broker_id} is not registered in /brokers/ids"
        )
    if epoch == NO_EPOCH or epoch == known.epoch:
        return None
    if epoch < known.epoch:
        return ControlledShutdownResult(
            STALE_BROKER_EPOCH,
            f"broker {broker_id} has registered again since: its epoch is {known.epoch}, not "
            f"{epoch}",
        )
    return ControlledShutdownResult(
        BROKER_NOT_AVAILABLE,
        f"the registration of broker {broker_id} with epoch {epoch} has not arrived yet, the last "
        f"has {known.epoch}: try again",
    )


async def resume(active: ActiveController) -> None:
    """Brokers that a predecessor was shutting down go on to do so. Topics are not known yet."""
    context = active.context
    for broker_id in await broker_notes.read(context, SHUTTING_DOWN, active.log):
        context.mark_shutting_down(broker_id)
    brokers = [context.cluster.brokers[b] for b in context.shutting_down_broker_ids]
    if brokers:
        active.log.info("Brokers are shutting down", brokers=[b.broker_id for b in brokers])
    await expect_the_end(active, brokers)


async def release_all(active: ActiveController) -> None:
    """Have brokers that are shutting down leave what they have not left, or have been given since:
    a controller that knows nothing of the notes may have led meanwhile."""
    context = active.context
    brokers = [context.cluster.brokers[b] for b in context.shutting_down_broker_ids]
    with context.trail.because(CauseKind.CONTROLLED_SHUTDOWN, brokers=brokers):
        await _release(active, brokers)


async def _shut_down(active: ActiveController, brokers: Sequence[Broker]) -> None:
    context = active.context
    await broker_notes.remember(context, SHUTTING_DOWN, brokers, active.log)
    for broker in brokers:
        context.mark_shutting_down(broker.broker_id)
    await expect_the_end(active, brokers)
    await _release(active, brokers)


async def _release(active: ActiveController, brokers: Iterable[Broker]) -> None:
    states_on = active.context.replica_states_on
    await release_partitions(active, [tp for b in brokers for tp in states_on(b.broker_id)])


def _result(active: ActiveController, broker_id: int) -> ControlledShutdownResult:
    context = active.context
    state_of = context.cluster.leadership.get
    hosted = context.replica_states_on(broker_id)
    led = [tp for tp in hosted if (state := state_of(tp)) is not None and state.leader == broker_id]
    remaining = tuple(with_successors(context, led))
    active.log.info(
        "Broker is shutting down",
        broker=broker_id,
        replicas=len(hosted),
        remaining=len(remaining),
        examples=examples(remaining),
    )
    return ControlledShutdownResult(remaining_partitions=remaining)
