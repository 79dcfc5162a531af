"""What every plan keeps, whatever the cluster and the goals are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regent_rebalance.describe import described
from regent_rebalance.errors import InfeasibleGoalsError, InvalidInputError
from regent_rebalance.goals import (
    DISK_DISTRIBUTION,
    LEADER_DISTRIBUTION,
    RACK,
    REPLICA_CAPACITY,
    REPLICA_DISTRIBUTION,
    Goals,
    balance_limits,
)
from regent_rebalance.json_files import encode_plan
from regent_rebalance.plan import Plan
from regent_rebalance.planner import make_plan
from regent_rebalance.schedule import Limits
from regent_rebalance.snapshot import Snapshot
from tests.unit.planner.clusters import cluster, clusters, executed, goals_for, patient


def planned(data: st.DataObject) -> tuple[Snapshot, Goals, Plan]:
    snapshot = data.draw(clusters())
    goals = data.draw(goals_for(snapshot))
    try:
        return snapshot, goals, make_plan(snapshot, goals)
    except InfeasibleGoalsError:
        assume(False)
        raise


def lists(snapshot: Snapshot) -> list[list[int]]:
    ids = snapshot.brokers.ids[snapshot.replicas].tolist()
    return [ids[a:b] for a, b in itertools.pairwise(snapshot.offsets.tolist())]


@patient
@given(st.data())
def test_plan_is_true_to_its_summary_final_and_repeatable(data: st.DataObject) -> None:
    snapshot, goals, plan = planned(data)
    before, after = plan.changes.lists()
    assert plan.summary.moves == sum(
        len(set(b) - set(a)) for a, b in zip(before, after, strict=True)
    )
    result = executed(snapshot, plan)
    assert plan.summary.leader_changes == (snapshot.leaders() != result.leaders()).sum()
    assert plan.summary.leader_changes >= plan.summary.leader_changes_bound
    assert plan.summary.gap >= 0
    assert plan.summary.bytes >= plan.summary.bounds.bytes
    assert encode_plan(make_plan(snapshot, goals)) == encode_plan(plan)
    again = make_plan(result, goals)
    assert again.summary.moves == again.summary.leader_changes == len(again.changes) == 0
    assert [g.met for g in again.summary.goals] == [g.met for g in plan.summary.goals]


@patient
@given(st.data())
def test_no_plan_breaks_what_is_hard(data: st.DataObject) -> None:
    snapshot, goals, plan = planned(data)
    after = lists(executed(snapshot, plan))
    brokers = snapshot.brokers
    living = {int(b) for b in brokers.ids[brokers.alive]} - set(goals.drained)
    racks = dict(zip(brokers.ids.tolist(), brokers.racks.tolist(), strict=True))
    in_rack = np.bincount([racks[b] for b in living], minlength=len(brokers.rack_names))
    for p, (old, new) in enumerate(zip(lists(snapshot), after, strict=True)):
        topic = snapshot.topics[snapshot.topic[p]]
        if topic in goals.pinned:
            assert old == new
            continue
        assert len(set(new)) == len(new) == goals.replication_factor.get(topic, len(old))
        assert set(new) <= living
        assert not (set(new) - set(old)) & set(goals.excluded)
        kept = np.bincount([racks[b] for b in old if b in living], minlength=len(in_rack))
        limit = next(n for n in range(1, 9) if np.minimum(in_rack, n).sum() >= len(new))
        used = np.bincount([racks[b] for b in new], minlength=len(in_rack))
        if kept.sum() <= len(new):
            assert (used > 0).sum() >= (kept > 0).sum(), "no rack is lost"
        assert (used <= (limit if goals.has(RACK) else np.maximum(limit, kept))).all()
    if goals.has(REPLICA_CAPACITY) and goals.max_replicas is not None:
        counts = np.bincount([b for replicas in after for b in replicas])
        assert counts.max(initial=0) <= goals.max_replicas


def test_partitions_with_the_fewest_bytes_move() -> None:
    snapshot = cluster(["a", "b"], [[1], [1], [1], [1]], sizes=[9, 1, 8, 2])
    plan = make_plan(snapshot, Goals(names=(REPLICA_DISTRIBUTION,), replica_balance=1.0))
    assert (plan.summary.moves, plan.summary.bytes, plan.summary.bounds.bytes) == (2, 3, 3)


def test_a_replica_takes_the_place_of_the_one_that_it_replaces() -> None:
    snapshot = cluster(["a", "b", "c", "c"], [[1, 3, 2]])
    plan = make_plan(snapshot, Goals(names=(RACK,), drained=(3,)))
    assert plan.changes.lists() == ([[1, 3, 2]], [[1, 4, 2]])


def test_a_list_that_changes_begins_with_its_leader() -> None:
    snapshot = cluster(["a", "b", "c", "c"], [[1, 3, 2]], leaders=[2])
    plan = make_plan(snapshot, Goals(names=(RACK,), drained=(3,)))
    assert plan.changes.lists()[1] == [[2, 4, 1]]
    assert plan.summary.leader_changes == 0


def test_a_preferred_leader_that_is_to_lead_again_is_a_change_of_no_replica() -> None:
    snapshot = cluster(["a", "b"], [[1, 2], [2, 1]], leaders=[2, 2])
    goals = Goals(names=(LEADER_DISTRIBUTION,), leader_balance=1.0, pinned=("t1",))
    plan = make_plan(snapshot, goals)
    assert plan.changes.lists() == ([[1, 2]], [[1, 2]])
    assert (plan.summary.moves, plan.summary.leader_changes) == (0, 1)


@pytest.mark.parametrize("partitions", [80, 160], ids=["integer program", "search"])
@pytest.mark.parametrize("last", [REPLICA_DISTRIBUTION, DISK_DISTRIBUTION])
def test_no_rack_is_lost_where_there_are_more_replicas_than_racks(
    last: str, partitions: int
) -> None:
    """Two of four in each of two racks is what limits of racks allow, too."""
    names: list[str | None] = [*"aaabbbcccc", "a"]  # the last one is new
    of_racks = [(1 + p % 3, 4 + p // 3 % 3, 7 + p // 9 % 4) for p in range(partitions)]
    replicas = [
        [*three, next(b for b in (*range(1 + p % 10, 11), *range(1, 11)) if b not in three)]
        for p, three in enumerate(of_racks)
    ]
    snapshot = cluster(names, replicas, sizes=[10 + p % 7 for p in range(partitions)])
    plan = make_plan(snapshot, Goals(names=(RACK, last)))
    assert plan.summary.moves > partitions / 4
    assert all(goal.met for goal in plan.summary.goals)
    for after in lists(executed(snapshot, plan)):
        assert {names[broker - 1] for broker in after} == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("goals", "reason"),
    [
        (
            Goals(replication_factor={"t0": 4}),
            "replication factor 4 of t0-0 needs 4 brokers, 3 may",
        ),
        (Goals(drained=(1, 2, 3)), "no broker is left"),
        (Goals(max_replicas=1), "ReplicaCapacityGoal: 1 replicas have no room: broker"),
        (Goals(drained=(1,), excluded=(3,)), "t0-0: 1 of 2 replicas find no broker in a rack"),
    ],
)
def test_hard_goals_that_cannot_be_met_are_named(goals: Goals, reason: str) -> None:
    snapshot = cluster(["a", "b", "b"], [[1, 2], [1, 3]])
    with pytest.raises(InfeasibleGoalsError, match=reason):
        make_plan(snapshot, goals)


def test_a_soft_goal_that_cannot_be_met_is_named_with_broker_and_number() -> None:
    snapshot = cluster(["a", "b", "b"], [[1, 2]] * 6)
    plan = make_plan(snapshot, Goals(names=(RACK, REPLICA_DISTRIBUTION)))
    unmet = [goal for goal in plan.summary.goals if not goal.met]
    assert [goal.name for goal in unmet] == [REPLICA_DISTRIBUTION]
    assert "broker 1 (rack a) has 6 replicas, 1 above its limit of 5" in unmet[0].reason
    assert plan.summary.gap == 0


def test_a_pinned_topic_that_shares_racks_is_named() -> None:
    snapshot = cluster(["a", "b", "b"], [[2, 3], [1, 2]])
    plan = make_plan(snapshot, Goals(names=(RACK,), pinned=("t0",)))
    assert [goal.reason for goal in plan.summary.goals] == [
        "t0-0 share racks and are pinned: unpin their topics"
    ]


@pytest.mark.parametrize(
    ("goals", "message"),
    [
        (Goals(drained=(-1,)), "drained brokers: no broker can have the id -1"),
        (Goals(excluded=(-1,)), "excluded brokers: no broker can have the id -1"),
        (Goals(pinned=("t*",)), "pinned topics: no topic can have the name 't\\*'"),
        (Goals(replication_factor={"x": 2}), "replication factors: the snapshot has no topic 'x'"),
        (Goals(pinned=("t0",), drained=(1,)), "topic t0 is pinned, and its partition 0 has a"),
    ],
)
def test_goals_that_do_not_fit_the_snapshot_are_refused(goals: Goals, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make_plan(cluster(["a", "b"], [[1, 2]]), goals)


@pytest.mark.parametrize(
    ("goals", "note"),
    [
        (Goals(drained=(9,)), "drained brokers: the snapshot has no broker 9, so this needs no"),
        (Goals(excluded=(9,)), "excluded brokers: the snapshot has no broker 9, so this needs no"),
        (Goals(pinned=("x",)), "pinned topics: the snapshot has no topic x, so this needs no move"),
    ],
)
def test_goals_about_absent_brokers_and_topics_are_met_and_noted(goals: Goals, note: str) -> None:
    snapshot = cluster(["a", "b", "b"], [[1, 2], [1, 2], [3, 1]])
    plan = make_plan(snapshot, goals)
    assert plan.hash == make_plan(snapshot, Goals()).hash
    details = described(snapshot, goals, plan, Limits()).details
    assert details is not None
    assert [each[: len(note)] for each in details.notes] == [note]


def test_drained_broker_that_is_dead_and_empty_joins_one_that_hosts_replicas() -> None:
    snapshot = cluster(["a", "b", "b"], [[1, 2], [1, 2]], alive=[True, False, True])
    plan = make_plan(snapshot, Goals(drained=(2, 9)))
    assert [set(replicas) for replicas in plan.changes.lists()[1]] == [{1, 3}, {1, 3}]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"names": ("NoGoal",)}, "goal 'NoGoal' is unknown"),
        ({"replica_balance": 0.5}, "replica balance 0.5 is no threshold"),
        ({"leader_balance": float("nan")}, "leader balance nan is no threshold"),
        ({"max_replicas": 0}, "max replicas 0: at least 1"),
        ({"replication_factor": {"t": 0}}, "replication factor 0 of t: at least 1"),
        ({"replication_factor": {"t": 2}, "pinned": ("t",)}, "topic t is pinned"),
    ],
)
def test_goals_that_cannot_be_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Goals(**wrong)  # type: ignore[arg-type]


def test_limits_are_cruise_controls() -> None:
    assert balance_limits(50_081, 40, 1.10) == (1139, 1365)
    assert balance_limits(0, 0, 1.10) == (0, 0)
    assert balance_limits(10, 4, 3.0) == (0, 7)


def test_a_rack_that_is_too_small_for_a_goal_is_named_with_the_brokers_to_add() -> None:
    snapshot = cluster(["a", "b", "b", "b"], [[1, 2]] * 4 + [[1, 3]] * 4 + [[1, 4]] * 4)
    goals = Goals(names=(RACK, REPLICA_DISTRIBUTION))
    (reason,) = [g.reason for g in make_plan(snapshot, goals).summary.goals if not g.met]
    assert "broker 1 (rack a) has 12 replicas, 5 above its limit of 7" in reason
    assert "rack a needs at least 1 more brokers" in reason


def test_no_broker_is_to_be_added_where_a_pinned_topic_is_the_reason() -> None:
    snapshot = cluster(["a", "a", "b"], [[1], [1], [1], [1], [2], [3], [3]])
    goals = Goals(names=(REPLICA_DISTRIBUTION,), replica_balance=1.0, pinned=("t0",))
    (reason,) = [g.reason for g in make_plan(snapshot, goals).summary.goals if not g.met]
    assert "broker 1 (rack a) has 4 replicas" in reason
    assert "more brokers" not in reason
