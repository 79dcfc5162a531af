"""Batches of a plan: limits of brokers, order, predicted time, and room on disks."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent_rebalance.batches import schedule_of
from regent_rebalance.errors import InfeasibleGoalsError, InvalidInputError
from regent_rebalance.goals import RACK, REPLICA_DISTRIBUTION, Goals
from regent_rebalance.moves import NOBODY, URGENCIES, Moves, disk_used, moves_of
from regent_rebalance.plan import Plan
from regent_rebalance.planner import make_plan
from regent_rebalance.schedule import Limits, Schedule
from regent_rebalance.snapshot import Brokers, Rows, Snapshot, snapshot_of
from tests.unit.planner.clusters import cluster, clusters, goals_for, patient

Lane = tuple[str, int]
"""A direction, and a broker."""


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    some_bytes = draw(st.one_of(st.none(), st.integers(1, 300)))
    return Limits(copies=draw(st.integers(1, 4)), bytes=some_bytes, rate=10)


def planned(data: st.DataObject) -> tuple[Snapshot, Plan, Moves]:
    """A plan for a random cluster; if the goals drawn for it cannot be met, for fewer goals."""
    snapshot = data.draw(clusters(partitions=14))
    goals = data.draw(goals_for(snapshot))
    try:
        plan = make_plan(snapshot, goals)
    except InfeasibleGoalsError:
        goals = Goals(names=(REPLICA_DISTRIBUTION,), replica_balance=1.0)
        if not snapshot.brokers.alive.all():
            snapshot = cluster(["a", "b", "c"], [[1, 2]] * 9, sizes=list(range(9)))
        plan = make_plan(snapshot, goals)
    return snapshot, plan, moves_of(snapshot, goals, plan.changes)


def lanes(moves: Moves, change: int) -> list[tuple[str, int, int, int]]:
    """What a change does to brokers: direction, broker, copies, bytes."""
    begin, end = moves.target_offsets[change : change + 2]
    size, copies = int(moves.size[change]), int(end - begin)
    found = [("in", int(broker), 1, size) for broker in moves.targets[begin:end]]
    if moves.source[change] != NOBODY and copies:
        found.append(("out", int(moves.source[change]), copies, copies * size))
    return found


@patient
@given(st.data(), limits())
def test_schedule_of_a_plan_is_complete_within_limits_and_repeatable(
    data: st.DataObject, limit: Limits
) -> None:
    snapshot, plan, moves = planned(data)
    schedule = schedule_of(snapshot, moves, limit)
    counts = Counter(schedule.batch.tolist())
    assert len(schedule.batch) == len(plan.changes)
    assert sorted(counts) == list(range(len(schedule.batches)))
    assert [batch.partitions for batch in schedule.batches] == [counts[i] for i in sorted(counts)]
    assert sum(batch.copies for batch in schedule.batches) == plan.summary.moves
    assert sum(batch.bytes for batch in schedule.batches) == plan.summary.bytes
    assert schedule.least_batches <= len(schedule.batches)
    assert schedule.least_seconds <= schedule.seconds
    totals: Counter[Lane] = Counter()
    for number, batch in enumerate(schedule.batches):
        of_lane, urgent = work_of(moves, schedule, number)
        for work in of_lane.values():
            if len(work) > 1:  # a single change passes whatever it needs
                assert sum(copies for copies, _ in work) <= limit.copies
                assert limit.bytes is None or sum(size for _, size in work) <= limit.bytes
        loads = {lane: sum(size for _, size in work) for lane, work in of_lane.items()}
        assert batch.load == max(loads.values(), default=0)
        # Less urgent changes do not lengthen a batch of more urgent ones.
        assert batch.load == max(urgent.values(), default=0)
        totals.update(loads)
    assert schedule.least_seconds == max(totals.values(), default=0) / 10
    again, compiled = (
        schedule_of(snapshot, moves, limit),
        schedule_of(snapshot, moves, limit, few=0),
    )
    assert again.batch.tolist() == compiled.batch.tolist() == schedule.batch.tolist()
    assert again.batches == schedule.batches


def work_of(
    moves: Moves, schedule: Schedule, number: int
) -> tuple[dict[Lane, list[tuple[int, int]]], Counter[Lane]]:
    """Return copies and bytes of each change of a batch, and the bytes of its most urgent ones."""
    of_lane: dict[Lane, list[tuple[int, int]]] = {}
    urgent = Counter[Lane]()
    for change in np.flatnonzero(schedule.batch == number).tolist():
        for direction, broker, copies, size in lanes(moves, change):
            of_lane.setdefault((direction, broker), []).append((copies, size))
            if URGENCIES[moves.urgency[change]] == schedule.batches[number].urgency:
                urgent[direction, broker] += size
    return of_lane, urgent


def with_disks(partitions: list[list[int]], sizes: list[int], disks: list[int]) -> Snapshot:
    """Brokers 1, 2, ... each in its rack; partitions of topic t."""
    count = len(disks)
    return snapshot_of(
        Brokers.of(list(range(1, count + 1)), [f"r{b}" for b in range(count)], disk_bytes=disks),
        Rows(
            topic=["t"] * len(partitions),
            partition=list(range(len(partitions))),
            lengths=[len(p) for p in partitions],
            replicas=list(itertools.chain.from_iterable(partitions)),
            leader=[p[0] for p in partitions],
            sizes=[size for size, p in zip(sizes, partitions, strict=True) for _ in p],
        ),
    )


def scheduled(snapshot: Snapshot, goals: Goals, limit: Limits | None = None) -> Schedule:
    plan = make_plan(snapshot, goals)
    return schedule_of(
        snapshot, moves_of(snapshot, goals, plan.changes), limit or Limits(copies=1, rate=1)
    )


def test_offline_replicas_come_before_shared_racks_and_these_before_balance() -> None:
    snapshot = cluster(
        ["a", "b", "b", "c", "c"],
        [[1], [1], [1], [1], [1], [1], [2, 3], [4, 5]],
        alive=[True, True, True, True, False],
        sizes=[50, 50, 50, 50, 50, 50, 7, 3],
    )
    schedule = scheduled(snapshot, Goals(names=(RACK, REPLICA_DISTRIBUTION)))
    kinds = [batch.urgency for batch in schedule.batches]
    assert kinds[:2] == ["offline", "rack"]
    assert set(kinds[2:]) == {"other"}


def test_full_disks_are_relieved_before_balance() -> None:
    snapshot = with_disks([[1], [1], [1], [2], [2], [2], [2]], [30, 30, 35, 1, 1, 1, 1], [100] * 4)
    schedule = scheduled(snapshot, Goals(names=(REPLICA_DISTRIBUTION,), replica_balance=1.0))
    assert schedule.batches[0].urgency == "disk"
    assert {batch.urgency for batch in schedule.batches} == {"disk", "other"}


@patient
@given(st.data(), limits(), st.integers(0, 40))
def test_disks_never_overflow_unless_a_note_says_so(
    data: st.DataObject, limit: Limits, spare: int
) -> None:
    drawn, plan, moves = planned(data)
    brokers = drawn.brokers
    before = disk_used(drawn)
    final = before + moves.received(len(brokers))
    np.subtract.at(final, moves.gone, moves.gone_bytes)
    capacity = np.maximum(before, final) + spare
    snapshot = snapshot_of(
        Brokers.of(
            brokers.ids.tolist(),
            [brokers.rack_names[k] for k in brokers.racks],
            alive=brokers.alive.tolist(),
            disk_bytes=capacity.tolist(),
        ),
        Rows(
            topic=[drawn.topics[t] for t in drawn.topic],
            partition=drawn.partition,
            lengths=drawn.replication,
            replicas=brokers.ids[drawn.replicas],
            leader=np.where(drawn.leader < 0, -1, brokers.ids[drawn.leaders()]),
            sizes=drawn.sizes,
        ),
    )
    schedule = schedule_of(snapshot, moves, limit)
    used = before.copy()
    overflows = False
    for number in range(len(schedule.batches)):
        for change in np.flatnonzero(schedule.batch == number).tolist():
            begin, end = moves.target_offsets[change : change + 2]
            used[moves.targets[begin:end]] += moves.size[change]
        overflows |= bool((used > capacity).any())
        for change in np.flatnonzero(schedule.batch == number).tolist():
            begin, end = moves.gone_offsets[change : change + 2]
            np.subtract.at(used, moves.gone[begin:end], moves.gone_bytes[begin:end])
    assert overflows == any("have no room" in note for note in schedule.notes)
    assert used.tolist() == final.tolist()
    assert len(plan.changes) == len(schedule.batch)


def test_a_replica_waits_until_the_disk_of_its_new_broker_has_room() -> None:
    # Broker 1 gives one of its large replicas to broker 2, which first gives one to broker 3.
    snapshot = with_disks([[1], [2], [3]], [60, 60, 1], [100, 100, 100])
    plan = make_plan(snapshot, Goals(names=(RACK,), drained=()))
    assert len(plan.changes) == 0
    moves = Moves(
        partition=np.array([0, 1]),
        size=np.array([60, 60]),
        source=np.array([0, 1]),
        target_offsets=np.array([0, 1, 2]),
        targets=np.array([1, 2]),
        gone_offsets=np.array([0, 1, 2]),
        gone=np.array([0, 1]),
        gone_bytes=np.array([60, 60]),
        urgency=np.array([0, 3]),
    )
    schedule = schedule_of(snapshot, moves, Limits())
    assert schedule.batch.tolist() == [1, 0]
    assert schedule.notes == ()
    assert schedule.short_of_room == (2,)


def test_replicas_that_find_room_on_no_disk_come_last_and_are_named() -> None:
    snapshot = with_disks([[1], [1], [1], [1]], [60, 60, 60, 60], [300, 50])
    schedule = scheduled(snapshot, Goals(names=(REPLICA_DISTRIBUTION,), replica_balance=1.0))
    (note,) = schedule.notes
    assert "the disks of their new brokers have no room: broker 2 lacks 70 bytes in batch" in note


def test_a_partition_without_a_living_replica_is_named() -> None:
    snapshot = cluster(["a", "b"], [[1]], alive=[False, True], sizes=[5])
    (note,) = scheduled(snapshot, Goals(names=(RACK,))).notes
    assert note.startswith("t0-0: no replica lives")


def test_removals_come_first_and_changes_of_leaders_alone_last() -> None:
    snapshot = cluster(
        ["a", "b", "c"], [[1, 2, 3], [1, 2, 3], [1, 2], [1, 2]], sizes=[9, 9, 40, 40]
    )
    goals = Goals(replica_balance=1.0, leader_balance=1.0, replication_factor={"t0": 1})
    plan = make_plan(snapshot, goals)
    moves = moves_of(snapshot, goals, plan.changes)
    schedule = schedule_of(snapshot, moves, Limits(copies=1, rate=1))
    removes = (np.diff(moves.gone_offsets) > 0) & (moves.copies == 0)
    assert removes.any()
    assert set(schedule.batch[removes].tolist()) == {0}
    leads = (np.diff(moves.gone_offsets) == 0) & (moves.copies == 0)
    assert set(schedule.batch[leads].tolist()) <= {len(schedule.batches) - 1}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"copies": 0}, "copies in a batch: 0"),
        ({"bytes": 0}, "bytes in a batch: 0"),
        ({"rate": -1}, "throttle: -1"),
    ],
)
def test_limits_that_cannot_be_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Limits(**wrong)


def test_a_plan_for_another_cluster_is_refused() -> None:
    goals = Goals()
    plan = make_plan(cluster(["a", "b", "c"], [[1, 2]] * 4), goals)
    with pytest.raises(InvalidInputError, match="has other replicas than the plan starts from"):
        moves_of(cluster(["a", "b", "c"], [[1, 3]] * 4), goals, plan.changes)
    with pytest.raises(InvalidInputError, match="has no partition t0-1"):
        moves_of(cluster(["a", "b", "c"], [[1, 2]]), goals, plan.changes)
