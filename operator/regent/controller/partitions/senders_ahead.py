"""Brokers that ask for an ISR change on a later state of the partition than ours.

Either another controller leads, and has informed them. Then NOT_CONTROLLER is the answer: the
broker sends the whole request again, to the controller of then. Or ZooKeeper has lost that state:
it was restored from a backup, somebody has set the node back, or the replica is of a former topic
of that name. Then NOT_CONTROLLER would hold up all ISR changes of the broker for ever, as a broker
has one request under way, with whatever its partitions ask for. So it is found out which it is.

In the second case the epochs are raised until the leader takes what is stored
(``waiting_leaders.py``). They are not for a broker that takes itself for the leader, and is not the
leader by ZooKeeper: its log may have what the leader's lacks, and it would be cut. It waits until
it is started again.

Upstream answers NOT_CONTROLLER from 3.3 on whatever the case, and before INVALID_UPDATE_VERSION or,
where only the leader epoch is ahead, makes the change. Source: ``processAlterPartition``,
``BrokerToControllerRequestThread.handleResponse``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import IsrChange
from regent.controller.partitions.waiting_leaders import can_be_raised_above
from regent.controller.term.cluster_loading import refresh_leadership
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.log import examples
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data.effects import Write

AHEAD: Final = (
    "Leaders know later states of partitions than ZooKeeper, which has lost them; raising their "
    "leader epochs"
)
LEFT_AHEAD: Final = (
    "Brokers lead partitions by states that ZooKeeper has lost, and follow nobody: restart these "
    "brokers"
)
OF_FORMER_TOPICS: Final = (
    "ISR changes refused that leaders of deleted topics ask for: there are topics of those names "
    "again"
)


class SenderAhead(NamedTuple):
    """A broker, and the change that it has asked for."""

    tp: TopicPartition
    sender: int
    wanted: IsrChange

    def is_ahead_of(self, state: LeaderAndIsr) -> bool:
        """Whether the sender knows a later state than this one."""
        return (
            self.wanted.leader_epoch > state.leader_epoch
            or self.wanted.partition_epoch > state.partition_epoch
        )


async def read_what_is_stored(
    active: ActiveController, ahead: Sequence[SenderAhead]
) -> list[TopicPartition]:
    """Make the context's states of these partitions those of ZooKeeper.

    What a controller before us, or nobody but us, has written is in them: as long as no other is
    elected, the fence holds, and the request was sent before that was asked.

    Returns:
        Partitions whose state is another one than before.

    Raises:
        ControllerMovedError: Another controller was elected: the senders are to ask that one.
    """
    context = active.context
    guard = epoch_guard(context)
    await Write([guard], guard=guard)
    leadership = context.cluster.leadership
    before = {each.tp: leadership[each.tp] for each in ahead}
    await refresh_leadership(context, before, active.log)
    report(active, ahead)
    return [tp for tp, state in before.items() if leadership[tp] != state]


def report(active: ActiveController, senders: Sequence[SenderAhead]) -> None:
    """Say which of these are ahead of what is stored, and what becomes of them."""
    cluster = active.context.cluster
    leadership = cluster.leadership
    mended: list[str] = []
    former: list[str] = []
    others: list[str] = []
    for each in senders:
        (tp, sender, wanted), state = each, leadership[each.tp]
        if not each.is_ahead_of(state):
            continue
        if sender == state.leader and can_be_raised_above(wanted.known_epochs, state):
            mended.append(
                f"{tp}: broker {sender} has leader epoch {wanted.leader_epoch} and partition epoch "
                f"{wanted.partition_epoch}; ZooKeeper has {state.leader_epoch} and "
                f"{state.partition_epoch}"
            )
        elif sender != state.leader and tp in cluster.former_partitions:
            former.append(f"{tp}: broker {sender}")
        else:
            others.append(
                f"{tp}: broker {sender}, at leader epoch {wanted.leader_epoch} and partition epoch "
                f"{wanted.partition_epoch}; ZooKeeper has leader {state.leader} at "
                f"{state.leader_epoch} and {state.partition_epoch}"
            )
    if mended:
        active.log.warning(AHEAD, partitions=len(mended), examples=examples(mended))
    if former:  # requests from before the deletion, which has stopped those leaders
        active.log.info(OF_FORMER_TOPICS, partitions=len(former), examples=examples(former))
    if others:
        active.log.error(LEFT_AHEAD, partitions=len(others), examples=examples(others))
