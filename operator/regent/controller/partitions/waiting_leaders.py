"""Leaders whose ISR change was refused in a way that has them wait for a higher leader epoch.

A leader that is refused as out of date keeps the ISR that it asked for as pending, and asks for
nothing more: it expects the LeaderAndIsr of whoever has changed the partition since. Its producers
with ``acks=all`` wait for the members of both ISRs. If it is the leader, and in the leader epoch
that it knows, then no such LeaderAndIsr is on its way, and none would ever be sent. So the leader
epoch is raised, with the leader and the ISR as they are (KAFKA-14154, where nobody does).

Source: ``Partition.handleAlterIsrResponse`` (2.7 to 3.1), ``Partition.handleAlterPartitionError``.
"""

from __future__ import annotations

from collections.abc import Mapping

from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import IsrChange
from regent.controller.effects import PublishView
from regent.controller.log import examples
from regent.controller.reassignment.new_epochs import raise_epochs
from regent.controller.state.causes import CauseKind
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.error_codes import INVALID_UPDATE_VERSION, UNKNOWN_SERVER_ERROR

_WAIT_AFTER = frozenset({INVALID_UPDATE_VERSION, UNKNOWN_SERVER_ERROR})
"""After the second one, which stands for a write that failed, only leaders before Kafka 3.1 wait:
they send the change again before they forget that it is under way, so it is not accepted."""


def is_left_waiting(
    error_code: int, change: IsrChange, *, sender: int, current: LeaderAndIsr
) -> bool:
    """Whether a refused leader would wait for a leader epoch that nobody has a reason to write."""
    return (
        error_code in _WAIT_AFTER
        and sender == current.leader
        and change.leader_epoch == current.leader_epoch
    )


async def raise_leader_epochs(
    active: ActiveController, waiting: Mapping[TopicPartition, int]
) -> frozenset[TopicPartition]:
    """Raise the leader epochs of partitions, and inform the brokers.

    To be called before their leaders are answered: a successor would not know that they wait. What
    fails is tried again with the next watch check, since no watch reports that a znode can be
    written again.

    Args:
        waiting: The leader epochs that the leaders know.

    Returns:
        Those where that took place.
    """
    context = active.context
    leadership = context.cluster.leadership
    epochs = {
        tp: leader_epoch
        for tp, leader_epoch in waiting.items()
        if tp in leadership and leadership[tp].leader_epoch == leader_epoch
    }
    if not epochs:
        return frozenset()
    with context.trail.because(CauseKind.ISR_CHANGE):
        failures = await raise_epochs(active, dict.fromkeys(epochs, ()))
    context.waiting_leaders.update({tp: epochs[tp] for tp in failures})
    raised = [tp for tp in epochs if tp not in failures]
    if raised:
        active.log.info(
            "Leader epochs raised: leaders wait after a refused ISR change",
            partitions=len(raised),
            examples=examples(map(str, raised)),
        )
    if failures:
        active.log.error(
            "Leaders wait: their leader epochs cannot be raised",
            partitions=len(failures),
            examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
        )
    await PublishView(frozenset(tp.topic for tp in epochs))
    return frozenset(raised)


async def repeat(active: ActiveController) -> None:
    """Try again what has failed."""
    waiting = dict(active.context.waiting_leaders)
    active.context.waiting_leaders.clear()
    await raise_leader_epochs(active, waiting)
