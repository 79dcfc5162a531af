"""What a snapshot does not know is said in the results of the goals that need it, or refused."""

from __future__ import annotations

import dataclasses

import pytest

from regent_rebalance.describe import described
from regent_rebalance.errors import InvalidInputError
from regent_rebalance.goals import (
    DISK_CAPACITY,
    DISK_DISTRIBUTION,
    NETWORK_IN_CAPACITY,
    NETWORK_IN_DISTRIBUTION,
    NETWORK_OUT_CAPACITY,
    RACK,
    Goals,
)
from regent_rebalance.html_report import render_report
from regent_rebalance.json_files import decode_plan, encode_plan
from regent_rebalance.planner import make_plan
from regent_rebalance.ragged import ints
from regent_rebalance.schedule import Limits
from regent_rebalance.snapshot import UNKNOWN, Snapshot
from regent_rebalance.text import render_plan
from tests.unit.planner.clusters import cluster


def three_brokers(
    *, disk: list[int] | None = None, sizes: list[int] | None = None, rates: list[int] | None = None
) -> Snapshot:
    """Three partitions with two replicas each; all capacities and sizes are known by default."""
    snapshot = cluster(
        ["a", "b", "c"], [[1, 2], [2, 3], [3, 1]], sizes=[10, 10, 10] if sizes is None else sizes
    )
    room = ints([1_000, 1_000, 1_000] if disk is None else disk)
    brokers = dataclasses.replace(
        snapshot.brokers, disk_bytes=room, network_in=room, network_out=room
    )
    known = ints([5, 5, 5] if rates is None else rates)
    return dataclasses.replace(snapshot, brokers=brokers, bytes_in=known, bytes_out=known)


def unknown_of(snapshot: Snapshot, goals: Goals) -> dict[str, str]:
    return {goal.name: goal.unknown for goal in make_plan(snapshot, goals).summary.goals}


@pytest.mark.parametrize(
    ("goal", "way_out"),
    [
        (DISK_CAPACITY, "add diskBytes, exclude or drain them, or drop the goal"),
        (NETWORK_IN_CAPACITY, "add networkInBytes, exclude or drain them, or drop the goal"),
        (NETWORK_OUT_CAPACITY, "add networkOutBytes, drain them, or drop the goal"),
    ],
)
def test_a_capacity_goal_is_refused_where_a_broker_has_no_known_capacity(
    goal: str, way_out: str
) -> None:
    snapshot = three_brokers(disk=[1_000, UNKNOWN, 1_000])
    with pytest.raises(InvalidInputError) as refused:
        make_plan(snapshot, Goals(names=(goal,)))
    assert str(refused.value) == (
        f"{goal}: the snapshot has no capacity of brokers 2, and a plan could fill them: {way_out}"
    )


def test_a_broker_that_gets_nothing_new_needs_no_known_capacity() -> None:
    snapshot = three_brokers(disk=[1_000, UNKNOWN, 1_000])
    excluded = Goals(names=(DISK_CAPACITY,), excluded=(2,))
    assert unknown_of(snapshot, excluded) == {
        DISK_CAPACITY: "brokers 2 have no known capacity, are not checked, and get nothing new"
    }
    drained = Goals(names=(DISK_CAPACITY,), drained=(2,))
    assert unknown_of(snapshot, drained) == {DISK_CAPACITY: ""}


def test_brokers_that_count_as_equally_large_are_named() -> None:
    snapshot = three_brokers(disk=[1_000, UNKNOWN, 3_000])
    assert unknown_of(snapshot, Goals(names=(RACK, DISK_DISTRIBUTION))) == {
        RACK: "",
        DISK_DISTRIBUTION: "brokers 2 have no known capacity: all count as equally large",
    }
    nobody = three_brokers(disk=[UNKNOWN] * 3)
    assert unknown_of(nobody, Goals(names=(DISK_DISTRIBUTION,)))[DISK_DISTRIBUTION] == (
        "brokers 1, 2, 3 have no known capacity: all count as equally large"
    )


def test_partitions_that_count_as_nothing_are_named() -> None:
    snapshot = three_brokers(sizes=[10, UNKNOWN, 0], rates=[UNKNOWN, UNKNOWN, 5])
    names = (DISK_DISTRIBUTION, DISK_CAPACITY, NETWORK_IN_DISTRIBUTION)
    first, second = snapshot.name(0), snapshot.name(1)
    of_sizes = f"1 of 3 partitions have no known size and count as 0: {second}"
    assert unknown_of(snapshot, Goals(names=names)) == {
        DISK_DISTRIBUTION: of_sizes,
        DISK_CAPACITY: of_sizes,
        NETWORK_IN_DISTRIBUTION: (
            f"2 of 3 partitions have no known rate and count as 0: {first}, {second}"
        ),
    }


def test_a_follower_whose_size_is_unknown_is_as_large_as_the_leader() -> None:
    snapshot = three_brokers()
    sizes = snapshot.sizes.copy()
    sizes[1] = UNKNOWN
    known = dataclasses.replace(snapshot, sizes=sizes)
    assert unknown_of(known, Goals(names=(DISK_DISTRIBUTION,))) == {DISK_DISTRIBUTION: ""}


def test_what_is_unknown_is_in_files_and_on_screens() -> None:
    snapshot, goals = three_brokers(sizes=[10, UNKNOWN, 10]), Goals(names=(DISK_CAPACITY,))
    plan = described(snapshot, goals, make_plan(snapshot, goals), Limits(rate=1))
    (goal,) = plan.summary.goals
    assert goal.met
    assert decode_plan(encode_plan(plan), source="plan.json").summary.goals == (goal,)
    assert f"      {goal.unknown}\n" in render_plan(plan)
    assert goal.unknown in render_report(plan)
