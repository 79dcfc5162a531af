"""``python -m regent_rebalance.compile_ahead``: compile what Numba compiles for weighted plans.

Who builds an image runs it there, with `NUMBA_CACHE_DIR` as in the image: otherwise the first plan
of each new container takes half a minute of processor time or more.
"""

from __future__ import annotations

from typing import Final

from regent_rebalance.batches import schedule_of
from regent_rebalance.goals import (
    ALL_GOALS,
    NETWORK_IN_CAPACITY,
    NETWORK_IN_DISTRIBUTION,
    REPLICA_DISTRIBUTION,
    Goals,
)
from regent_rebalance.moves import moves_of
from regent_rebalance.planner import make_plan
from regent_rebalance.schedule import Limits
from regent_rebalance.snapshot import Brokers, Rows, Snapshot, snapshot_of

_OF_RATES: Final = (NETWORK_IN_CAPACITY, NETWORK_IN_DISTRIBUTION)
_BROKERS: Final = 6
_PARTITIONS: Final = 24
_ROOM: Final = 100_000


def compile_ahead() -> None:
    """Make plans that use every compiled function.

    Raises:
        PackageMissingError: Numba is missing.
    """
    snapshot = _lopsided()
    goals = Goals(ALL_GOALS, max_replicas=_PARTITIONS, drained=(_BROKERS,))
    plan = make_plan(snapshot, goals)
    schedule_of(snapshot, moves_of(snapshot, goals, plan.changes), Limits(), few=0)
    # bounds are compiled for the number of quantities that each replica brings
    for left_out in (_OF_RATES, (*_OF_RATES, REPLICA_DISTRIBUTION)):
        make_plan(snapshot, Goals(tuple(name for name in ALL_GOALS if name not in left_out)))
    # no plan comes so close: what is out of reach is found by a second search
    make_plan(snapshot, Goals(ALL_GOALS, resource_balance=1.0, bytes_share=0.5))


def _lopsided() -> Snapshot:
    """A cluster whose first brokers have all replicas, most of them in one rack."""
    partitions = range(_PARTITIONS)
    return snapshot_of(
        Brokers.of(
            list(range(1, _BROKERS + 1)),
            ["a", "a", "b", "b", "c", "c"],
            disk_bytes=[_ROOM] * _BROKERS,
            network_in=[_ROOM] * _BROKERS,
            network_out=[_ROOM] * _BROKERS,
        ),
        Rows(
            topic=[f"t{p % 2}" for p in partitions],
            partition=[p // 2 for p in partitions],
            lengths=[2] * _PARTITIONS,
            replicas=[broker for p in partitions for broker in ((1, 2), (2, 3), (1, 3))[p % 3]],
            leader=[(1, 2, 1)[p % 3] for p in partitions],
            sizes=[100 + 37 * p for p in partitions for _ in range(2)],
            bytes_in=[10 + p for p in partitions],
            bytes_out=[20 + 3 * p for p in partitions],
        ),
    )


if __name__ == "__main__":
    compile_ahead()
