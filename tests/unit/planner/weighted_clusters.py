"""Small random clusters with loads, goals that need them, and plans."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from regent_rebalance.errors import InfeasibleGoalsError
from regent_rebalance.goals import ALL_GOALS, DISK_DISTRIBUTION, Goals
from regent_rebalance.plan import Plan
from regent_rebalance.planner import make_plan
from regent_rebalance.ragged import Ints
from regent_rebalance.snapshot import Snapshot
from tests.unit.planner.clusters import clusters, goals_for

WEIGHTED = tuple(name for name in ALL_GOALS if name != "ReplicaCapacityGoal")


def loaded(
    snapshot: Snapshot,
    *,
    bytes_in: list[int] | None = None,
    bytes_out: list[int] | None = None,
    disk: list[int] | None = None,
    network: list[int] | None = None,
) -> Snapshot:
    """The snapshot with rates of its partitions and capacities of its brokers."""

    def numbers(values: list[int] | None, old: Ints) -> Ints:
        return old if values is None else np.array(values, dtype=np.int64)

    brokers = dataclasses.replace(
        snapshot.brokers,
        disk_bytes=numbers(disk, snapshot.brokers.disk_bytes),
        network_in=numbers(network, snapshot.brokers.network_in),
        network_out=numbers(network, snapshot.brokers.network_out),
    )
    return dataclasses.replace(
        snapshot,
        brokers=brokers,
        bytes_in=numbers(bytes_in, snapshot.bytes_in),
        bytes_out=numbers(bytes_out, snapshot.bytes_out),
    )


@st.composite
def loaded_clusters(draw: st.DrawFn, *, brokers: int = 6, partitions: int = 10) -> Snapshot:
    """Some brokers and partitions with loads."""
    snapshot = draw(clusters(brokers=brokers, partitions=partitions))

    def rates() -> list[int]:
        count = snapshot.partitions
        return draw(st.lists(st.integers(1, 50), min_size=count, max_size=count))

    count = len(snapshot.brokers)
    room = draw(st.lists(st.sampled_from([400, 800]), min_size=count, max_size=count))
    return loaded(snapshot, bytes_in=rates(), bytes_out=rates(), disk=room, network=room)


@st.composite
def weighted_goals(
    draw: st.DrawFn, snapshot: Snapshot, bytes_shares: Sequence[float] = (0.0, 0.5, 1.0)
) -> Goals:
    """Goals of which one at least needs loads."""
    names = draw(st.lists(st.sampled_from(WEIGHTED), unique=True))
    return dataclasses.replace(
        draw(goals_for(snapshot)),
        names=tuple(name for name in WEIGHTED if name in {*names, DISK_DISTRIBUTION}),
        resource_balance=draw(st.sampled_from([1.0, 1.1, 1.5])),
        topic_balance=draw(st.sampled_from([1.0, 3.0])),
        capacity_threshold=draw(st.sampled_from([0.8, 1.0])),
        bytes_share=draw(st.sampled_from(bytes_shares)),
    )


def planned(
    data: st.DataObject, *, bytes_shares: Sequence[float] = (0.0, 0.5, 1.0), **sizes: int
) -> tuple[Snapshot, Goals, Plan]:
    snapshot = data.draw(loaded_clusters(**sizes))
    goals = data.draw(weighted_goals(snapshot, bytes_shares))
    try:
        return snapshot, goals, make_plan(snapshot, goals)
    except InfeasibleGoalsError:
        assume(False)
        raise
