"""Leaders are moved back to their preferred replicas when too many have left them.

After a broker has restarted it leads nothing: the balance of load that the assignment intends comes
back by a check that is repeated for as long as the term lasts.

Source: ``KafkaController.checkAndTriggerAutoLeaderRebalance``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from regent.admin.commands import ElectionType
from regent.controller.active_controller import ActiveController
from regent.controller.config import FIRST_BALANCE_CHECK_MS
from regent.controller.effects import ArmTimer, SilentBrokers
from regent.controller.elections.leader_election import elect_leaders
from regent.controller.events import AutoPreferredReplicaLeaderElection
from regent.controller.state.causes import CauseKind
from regent.controller.state.context import ControllerContext
from regent.model.partition import TopicPartition
from regent.protocol.error_codes import NONE

_TIMER: Final = "leader balance"


async def schedule_first_check(active: ActiveController) -> None:
    """Begin to check the balance, if that is enabled. A resignation ends it."""
    if active.config.auto_leader_rebalance_enable:
        await ArmTimer(_TIMER, FIRST_BALANCE_CHECK_MS, AutoPreferredReplicaLeaderElection())


async def process_auto_preferred_replica_leader_election(active: ActiveController) -> None:
    """Check the balance of leaders, correct it, and arm the timer of the next check.

    The leaders of all brokers move in one transition (upstream: broker by broker).
    """
    percentage = active.config.leader_imbalance_per_broker_percentage
    candidates = movable_leaders(active.context, percentage)
    if candidates:
        candidates = await _with_answering_targets(active.context, candidates)
    if candidates:
        with active.context.trail.because(CauseKind.LEADER_IMBALANCE):
            results = await elect_leaders(active, candidates, ElectionType.PREFERRED)
        active.log.info(
            "Leaders balanced",
            partitions=len(candidates),
            moved=sum(result.error_code == NONE for result in results.values()),
        )
    interval_ms = active.config.leader_imbalance_check_interval_s * 1_000
    await ArmTimer(_TIMER, interval_ms, AutoPreferredReplicaLeaderElection())


async def _with_answering_targets(
    context: ControllerContext, candidates: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """The candidates whose preferred replica would learn that it is to lead: the others would have
    no leader until it does (upstream does not look whether a broker answers)."""
    silent = frozenset(await SilentBrokers())
    return [tp for tp in candidates if context.cluster.replicas(tp)[0] not in silent]


def movable_leaders(context: ControllerContext, percentage: int) -> list[TopicPartition]:
    """Partitions to be led by their preferred replica, on the brokers that are out of balance.

    A broker is if more than ``percentage`` percent of the partitions whose preferred replica it
    hosts are led by others. Only what can succeed is tried: the preferred replica is online and,
    as far as is known, in sync (KAFKA-9866); and only what does no harm: the broker does not refuse
    the partition, which would have no leader then (upstream does not know of that).
    """
    balance = context.balance
    movable: list[TopicPartition] = []
    for broker_id in balance.imbalanced_brokers:
        if not context.is_broker_online(broker_id):
            continue
        led_by_others = balance.led_by_others(broker_id)
        if len(led_by_others) * 100 > percentage * balance.partition_count(broker_id):
            refused = context.refusals.on_broker(broker_id)
            movable += [
                tp
                for tp in led_by_others
                if broker_id in context.cluster.leadership[tp].isr
                and context.is_replica_online(broker_id, tp)
                and tp not in refused
            ]
    return movable
