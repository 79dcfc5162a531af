"""What a new term looks at all partitions for, and no broker waits for.

The gauge ``PreferredReplicaImbalanceCount`` needs a look at every partition, after which it costs
what changes. Right after a failover that look would delay the requests that brokers wait for. So
it begins later, and is done in parts: events of brokers are processed between them.
Until it is done the gauge has no value. The tables of replica states are made after it, before
somebody needs one (:mod:`regent.controller.state.replica_states`).
"""

from __future__ import annotations

from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.effects import ArmTimer, Enqueue
from regent.controller.events import LeaderBalanceUncounted
from regent.controller.giving_way import after_announcement_ms

TIMER: Final = "leader balance count"

PARTITIONS_AT_A_TIME: Final = 50_000
"""Some 10 ms."""


async def schedule(active: ActiveController) -> None:
    """Have the balance counted. A resignation ends it."""
    delay_ms = after_announcement_ms(active.context.cluster.partition_count)
    await ArmTimer(TIMER, delay_ms, LeaderBalanceUncounted())


async def process_leader_balance_uncounted(active: ActiveController) -> None:
    """Judge the next partitions, then tabulate the next replicas."""
    context = active.context
    if context.balance.count_some(PARTITIONS_AT_A_TIME) or context.tabulate_replica_states(
        PARTITIONS_AT_A_TIME
    ):
        await Enqueue(LeaderBalanceUncounted())
