"""Between two events the context of a controller is consistent in itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regent.controller.events import LeaderAndIsrResponseReceived
from regent.controller.state.context import ControllerContext
from regent.controller.state.leader_balance import has_preferred_leader
from regent.controller.state.states import PartitionState
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import LeaderAndIsrResponse
from tests.simulation.broker import UNKNOWN_SERVER_ERROR
from tests.simulation.checkers.trail import TrailChecker
from tests.simulation.driver import RegentProcess
from tests.simulation.trace import InvariantViolatedError, require

if TYPE_CHECKING:
    from tests.simulation.world import World


class ContextChecker:
    """Looks at a context at the end of every event."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._trails = TrailChecker(world)

    def event_ended(self, process: RegentProcess) -> None:
        """Between two events the context is consistent in itself."""
        active = process.controller.active
        if active is None:
            return
        context = active.context
        cluster, removed_by_hand = context.cluster, self._world.safety.seen.removed_by_hand
        leaderships = cluster.leadership
        offline = imbalanced = 0
        for tp in cluster.all_partitions():
            state, leadership = context.partition_state(tp), leaderships.get(tp)
            assignment = cluster.assignment(tp)
            if leadership is not None and tp.topic not in removed_by_hand:
                replicas = () if assignment is None else assignment.replicas
                if not set(leadership.isr).issubset(replicas):
                    raise InvariantViolatedError(f"{process}: {tp} {leadership}")
            if context.is_topic_queued_for_deletion(tp.topic):
                continue
            if state is PartitionState.OFFLINE:
                offline += 1
            elif state is PartitionState.ONLINE and (
                leadership is None
                or not context.is_replica_online(leadership.leader, tp, include_shutting_down=True)
            ):
                raise InvariantViolatedError(
                    f"{process} holds {tp} to be online under {leadership}"
                )
            if assignment and leadership:
                imbalanced += not has_preferred_leader(assignment, leadership)
        require(
            offline == context.offline_partition_count,
            f"{process} counts {context.offline_partition_count} offline, there are {offline}",
        )
        require(
            imbalanced == context.balance.imbalance_count,
            f"{process} counts {context.balance.imbalance_count} imbalanced, not {imbalanced}",
        )
        self._check_refusals(process, context)
        self._trails.event_ended(process, context)
        self._world.orderly_stops.event_ended(process, context)

    def _check_refusals(self, process: RegentProcess, context: ControllerContext) -> None:
        """A refusal is kept from the answer on, and only of replicas that there are."""
        for topic, partition, broker_id, error in context.refusals.sample(limit=1_000):
            tp = TopicPartition(topic, partition)
            require(
                broker_id in context.cluster.brokers and broker_id in context.cluster.replicas(tp),
                f"{process} keeps a refusal of broker {broker_id}: {tp} {error}",
            )
        event = process.event
        if isinstance(event, LeaderAndIsrResponseReceived):
            # Of several answers of one broker the last counts.
            for answer in {a.broker_id: a for a in event.responses}.values():
                _check_answer_is_kept(process, context, answer)


def _check_answer_is_kept(
    process: RegentProcess, context: ControllerContext, answer: LeaderAndIsrResponse
) -> None:
    broker = context.cluster.brokers.get(answer.broker_id)
    asked_as = (answer.controller_epoch, answer.broker_epoch)
    if broker is None or asked_as != (context.term.epoch, broker.epoch):
        return
    whole = answer.error_code == UNKNOWN_SERVER_ERROR
    for tp in answer.partitions:
        refused = whole or answer.partition_errors.get(tp) == UNKNOWN_SERVER_ERROR
        if refused and answer.broker_id in context.cluster.replicas(tp):
            known = tp in context.refusals.on_broker(answer.broker_id)
            require(known, f"{process} has no refusal of broker {answer.broker_id}: {tp}")
