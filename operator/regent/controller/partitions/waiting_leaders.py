"""Leaders whose ISR change was refused in a way that has them wait for a higher leader epoch.

A leader that is refused as out of date keeps the ISR that it asked for as pending, and asks for
nothing more: it expects the LeaderAndIsr of whoever has changed the partition since. Its producers
with ``acks=all`` wait for the members of both ISRs. If it is the leader, and in the leader epoch
that it knows, then no such LeaderAndIsr is on its way, and none would ever be sent. So the leader
epoch is raised, with the leader and the ISR as they are (KAFKA-14154, where nobody does).

A leader that knows higher epochs than ZooKeeper (``senders_ahead.py``) needs a leader epoch above
its own, and a partition epoch that is not below. A partition epoch is the version of the state's
znode, which each write raises by one. So the state is written as it is until that is reached.

So does a leader that writes ISRs itself, where the version of its state has begun again
(:mod:`regent.controller.transitions.partition_epochs`). It asks nobody.

Source: ``Partition.handleAlterIsrResponse`` (2.7 to 3.1), ``Partition.handleAlterPartitionError``,
``Partition.makeLeader``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import IsrChange
from regent.controller.effects import PublishView
from regent.controller.log import LEADERS_WAIT
from regent.controller.reassignment.new_epochs import raise_epochs
from regent.controller.state.causes import CauseKind, ChangeKind
from regent.controller.term.cluster_loading import refresh_leadership
from regent.controller.transitions.partition_epochs import WRITES_MAX, reach_partition_epochs
from regent.controller.transitions.partition_state_znodes import known_states
from regent.model.log import examples
from regent.model.partition import KnownEpochs, LeaderAndIsr, TopicPartition
from regent.protocol.error_codes import INVALID_UPDATE_VERSION, UNKNOWN_SERVER_ERROR

_WAIT_AFTER = frozenset({INVALID_UPDATE_VERSION, UNKNOWN_SERVER_ERROR})
"""After the second one, which stands for a write that failed, only leaders before Kafka 3.1 wait:
they send the change again before they forget that it is under way, so it is not accepted."""

_LEADER_EPOCHS_END: Final = 2**30
"""Half of the leader epochs that there are. A broker that asks with a higher one is in error, and
the epochs of its partition would be used up with it."""


def can_be_raised_above(known: KnownEpochs, state: LeaderAndIsr) -> bool:
    """Whether a partition's epochs may be raised until a leader that knows these takes them."""
    return (
        known.leader_epoch <= state.leader_epoch or known.leader_epoch < _LEADER_EPOCHS_END
    ) and known.partition_epoch - state.partition_epoch <= WRITES_MAX


def is_left_waiting(
    error_code: int, change: IsrChange, *, sender: int, current: LeaderAndIsr
) -> bool:
    """Whether a refused leader would wait for epochs that nobody has a reason to write."""
    known = change.known_epochs
    return (
        error_code in _WAIT_AFTER
        and sender == current.leader
        and _ignores(known, current)
        and can_be_raised_above(known, current)
    )


def _ignores(known: KnownEpochs, state: LeaderAndIsr) -> bool:
    """Whether a leader that knows these epochs takes no LeaderAndIsr with this state."""
    return state.leader_epoch <= known.leader_epoch or state.partition_epoch < known.partition_epoch


async def raise_leader_epochs(
    active: ActiveController, waiting: Mapping[TopicPartition, KnownEpochs]
) -> frozenset[TopicPartition]:
    """Raise the leader epochs of partitions, and inform the brokers.

    To be called before their leaders are answered: a successor would not know that they wait. What
    fails is tried again with the next watch check, since no watch reports that a znode can be
    written again. Until then nothing is done for a leader that asks again with the same epochs.

    Args:
        waiting: The epochs that the leaders know.

    Returns:
        Those where that took place.
    """
    context = active.context
    leadership = context.cluster.leadership
    epochs = {
        tp: known
        for tp, known in waiting.items()
        if tp in leadership
        and _ignores(known, leadership[tp])
        and context.waiting_leaders.get(tp) != known
    }
    if not epochs:
        return frozenset()
    with context.trail.because(CauseKind.ISR_CHANGE):
        failures = await _reach_partition_epochs(active, epochs)
        above = {tp: known.leader_epoch for tp, known in epochs.items() if tp not in failures}
        failures |= await raise_epochs(active, dict.fromkeys(above, ()), above=above)
    context.waiting_leaders.update({tp: epochs[tp] for tp in failures})
    raised = [tp for tp in epochs if tp not in failures]
    if raised:
        active.log.info(
            "Leader epochs raised: leaders may not go on without",
            partitions=len(raised),
            examples=examples(map(str, raised)),
        )
    if failures:
        active.log.error(
            LEADERS_WAIT,
            partitions=len(failures),
            examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
        )
    await PublishView(frozenset(tp.topic for tp in epochs))
    return frozenset(raised)


async def _reach_partition_epochs(
    active: ActiveController, epochs: Mapping[TopicPartition, KnownEpochs]
) -> dict[TopicPartition, str]:
    """Write states as they are until the next write gives them the partition epochs that leaders
    know.

    Returns:
        Partitions where that did not take place, with reasons.
    """
    context = active.context
    wanted = {tp: known.partition_epoch - 1 for tp, known in epochs.items()}
    reached = await reach_partition_epochs(context, known_states(context, epochs), wanted)
    failures = reached.failures | dict.fromkeys(
        reached.conflicts, "its state has changed meanwhile"
    )
    context.cluster.set_leadership(reached.written, ChangeKind.WRITTEN)
    await refresh_leadership(context, failures, active.log)
    return failures


async def repeat(active: ActiveController) -> None:
    """Try again what has failed."""
    waiting = dict(active.context.waiting_leaders)
    active.context.waiting_leaders.clear()
    await raise_leader_epochs(active, waiting)
