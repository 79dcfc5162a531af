"""Whether a leader's change of an ISR is accepted: decided here, without effects.

The order of the rules is that of ``KafkaController.processAlterPartition``, which its tests fix: an
error about epochs wins over one about the contents. How the leader goes on depends on the error:
``INELIGIBLE_REPLICA`` brings it back to the stored ISR; after most others it keeps its pending ISR
until a LeaderAndIsr with a higher leader epoch.

A leader that names topics (Kafka 2.7 to 3.2) has no error for a member that cannot be in sync: up
to 3.0 it would keep its pending ISR after any of them. So a member that is stopping is granted to
it, as by the controllers of those releases: the ISR loses it as soon as it is gone. One that is
down is refused as if the leader were out of date, which it becomes: see ``waiting_leaders.py``. So
is whatever else cannot be: Kafka 3.1 sends a change that it takes for refused by mistake again at
once, and for ever.

One rule differs: whether the leader may be in its ISR is not asked. A leader on a broker that is
stopping leads on because nobody else is in sync. A broker's controller of Kafka 3.0 or newer lets
nobody join it, so the partition has no leader once the broker has stopped.

A broker's controller trusts the sender in three points. Here, as in KRaft's
``ReplicationControlManager``, they are refused, with ``INVALID_REQUEST`` where topics are named by
id: a sender that is not the leader, an ISR without its leader, an ISR with others than the
partition's replicas.
"""

from __future__ import annotations

import uuid

from regent.controller.broker_requests import UNKNOWN_BROKER_EPOCH, IsrChange
from regent.controller.state.context import ControllerContext
from regent.model.partition import LeaderAndIsr, LeaderRecoveryState, TopicPartition
from regent.protocol.error_codes import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NOT_CONTROLLER,
)


def decide(
    change: IsrChange,
    *,
    tp: TopicPartition,
    sender: int,
    current: LeaderAndIsr,
    context: ControllerContext,
) -> LeaderAndIsr | int:
    """The state that the change leads to, or Kafka's error code.

    Args:
        tp: The partition that the change is about.
        sender: The broker that asks.
        current: The partition's state.

    Returns:
        ``current`` itself if there is nothing to write: the change was made before, and its answer
        was lost.
    """
    if change.partition_epoch > current.partition_epoch or (
        change.leader_epoch > current.leader_epoch
    ):
        return NOT_CONTROLLER  # as it seems: see senders_ahead.py
    if change.leader_epoch < current.leader_epoch:
        return FENCED_LEADER_EPOCH
    by_id = isinstance(change.topic, uuid.UUID)
    if sender != current.leader:
        return INVALID_REQUEST if by_id else INVALID_UPDATE_VERSION
    if (change.isr, change.leader_recovery_state) == (current.isr, current.leader_recovery_state):
        return current
    if change.partition_epoch < current.partition_epoch:
        return INVALID_UPDATE_VERSION
    if not _is_sound(change, current, replicas=context.cluster.replicas(tp)):
        return INVALID_REQUEST if by_id else INVALID_UPDATE_VERSION
    followers = (broker_id for broker_id in change.isr if broker_id != sender)
    is_eligible = _is_eligible if by_id else _is_live
    if not all(is_eligible(broker_id, change, context) for broker_id in followers):
        return INELIGIBLE_REPLICA if by_id else INVALID_UPDATE_VERSION
    return LeaderAndIsr(
        current.leader,
        current.leader_epoch,
        change.isr,
        context.term.epoch,
        current.partition_epoch,
        change.leader_recovery_state,
    )


def _is_sound(change: IsrChange, current: LeaderAndIsr, *, replicas: tuple[int, ...]) -> bool:
    """Whether the wanted state can be one of the partition at all."""
    try:
        wanted = LeaderRecoveryState(change.leader_recovery_state)
    except ValueError:
        return False
    if wanted is LeaderRecoveryState.RECOVERING and (
        len(change.isr) > 1 or current.leader_recovery_state == LeaderRecoveryState.RECOVERED
    ):
        return False
    members = frozenset(change.isr)
    return (
        len(members) == len(change.isr) and current.leader in members and members <= set(replicas)
    )


def _is_live(broker_id: int, _: IsrChange, context: ControllerContext) -> bool:
    return context.is_broker_online(broker_id, include_shutting_down=True)


def _is_eligible(broker_id: int, change: IsrChange, context: ControllerContext) -> bool:
    """Whether a broker may be in the ISR: alive, not stopping (KAFKA-14140), in the life that the
    leader knows.

    A replica on a failed disk cannot catch up; the controller takes it out itself.
    """
    if not context.is_broker_online(broker_id):
        return False
    known = change.broker_epochs.get(broker_id, UNKNOWN_BROKER_EPOCH)
    return known in (UNKNOWN_BROKER_EPOCH, context.cluster.brokers[broker_id].epoch)
