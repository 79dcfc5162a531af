"""Plans with loads: what they keep, how good they are, and that their bounds are bounds."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from regent.cli import main
from regent_rebalance.errors import InfeasibleGoalsError, InvalidInputError, PackageMissingError
from regent_rebalance.files import load_plan, load_snapshot, save_plan, save_snapshot
from regent_rebalance.goals import (
    ALL_GOALS,
    DISK_CAPACITY,
    DISK_DISTRIBUTION,
    LEADER_DISTRIBUTION,
    NETWORK_IN_DISTRIBUTION,
    NETWORK_OUT_CAPACITY,
    NETWORK_OUT_DISTRIBUTION,
    RACK,
    REPLICA_DISTRIBUTION,
    TOPIC_DISTRIBUTION,
    Goals,
    topic_limits,
    usage_limits,
)
from regent_rebalance.json_files import encode_plan, encode_snapshot
from regent_rebalance.planner import make_plan
from regent_rebalance.problem import Problem, problem_of
from regent_rebalance.quantities import quantities_of
from regent_rebalance.ragged import Ints
from regent_rebalance.snapshot import Brokers, Rows, Snapshot, snapshot_of
from regent_rebalance.what_if import WhatIf
from regent_rebalance.what_if import assume as assume_
from tests.unit.planner.clusters import cluster, executed, legal_sets, patient
from tests.unit.planner.weighted_clusters import loaded, planned


def broken(snapshot: Snapshot, goals: Goals, original: Snapshot) -> set[str]:
    """Goals that a cluster does not meet, counted in another way than the planner counts.

    The limits are those of the snapshot that was planned for.
    """
    problem = problem_of(original, goals)
    found = set()
    rows = list(itertools.pairwise(snapshot.offsets.tolist()))
    for quantity in quantities_of(original, goals, problem):
        loads = [0] * problem.brokers
        for p, (begin, end) in enumerate(rows):
            hosts = snapshot.replicas[begin:end].tolist()
            if quantity.led:
                hosts = [hosts[max(0, int(snapshot.leader[p]))]]
            for broker in hosts:
                loads[broker] += int(quantity.each[p])
        for b, load in enumerate(loads):
            if quantity.goal and not quantity.least[b] <= load <= quantity.most[b]:
                found.add(quantity.goal)
            if quantity.capacity_goal and load > quantity.capacity[b]:
                found.add(quantity.capacity_goal)
    if goals.has(TOPIC_DISTRIBUTION) and any(
        uneven_topic(snapshot, goals, problem, t) for t in range(len(snapshot.topics))
    ):
        found.add(TOPIC_DISTRIBUTION)
    return found


def uneven_topic(snapshot: Snapshot, goals: Goals, problem: Problem, topic: int) -> bool:
    """Whether a topic that is not pinned is outside its limits on a broker."""
    hosts = [
        broker
        for p, (begin, end) in enumerate(itertools.pairwise(snapshot.offsets.tolist()))
        if snapshot.topic[p] == topic
        for broker in snapshot.replicas[begin:end].tolist()
    ]
    counts = np.bincount(hosts, minlength=problem.brokers)
    least, most = topic_limits(len(hosts), int(problem.keeps.sum()), goals.topic_balance)
    outside = (counts[problem.keeps] > most).any() or (counts[problem.takes] < least).any()
    return snapshot.topics[topic] not in goals.pinned and bool(outside)


@patient
@given(st.data())
def test_plan_is_legal_true_to_its_summary_final_and_repeatable(data: st.DataObject) -> None:
    snapshot, goals, plan = planned(data)
    after, problem = executed(snapshot, plan), problem_of(snapshot, goals)
    missed = {goal.name for goal in plan.summary.goals if not goal.met}
    assert missed - {RACK} == broken(after, goals, snapshot)
    moves = 0
    for row, p in enumerate(problem.movable.tolist()):
        now = tuple(sorted(after.replicas[after.offsets[p] : after.offsets[p + 1]].tolist()))
        legal = {tuple(sorted(chosen)): new for new, chosen in legal_sets(problem, row)}
        assert now in legal
        moves += legal[now]
    assert moves == plan.summary.moves
    assert not set(plan.changes.topic) & set(goals.pinned)
    assert encode_plan(make_plan(snapshot, goals)) == encode_plan(plan)
    if plan.summary.goals_met:
        again = make_plan(after, goals)
        assert (len(again.changes), again.summary.goals_met) == (0, True)


def of_topics(snapshot: Snapshot, problem: Problem, lists: list[tuple[int, ...]]) -> Ints:
    """Replicas of each topic on each broker that may keep replicas."""
    count = np.zeros((len(snapshot.topics), problem.brokers), dtype=np.int64)
    for p, brokers in enumerate(lists):
        count[snapshot.topic[p], list(brokers)] += 1
    return np.asarray(count[:, problem.keeps])


def allowed_of_topics(
    snapshot: Snapshot, goals: Goals, problem: Problem, lists: list[tuple[int, ...]]
) -> Ints:
    """As many as a topic's limit allows on a broker, or as these lists have on the fullest one."""
    most: Ints = of_topics(snapshot, problem, lists).max(axis=1, initial=0)
    for topic in range(len(most)):
        total = sum(len(lists[p]) for p in np.flatnonzero(snapshot.topic == topic))
        limit = topic_limits(total, int(problem.keeps.sum()), goals.topic_balance)[1]
        most[topic] = max(most[topic], limit if goals.has(TOPIC_DISTRIBUTION) else total)
    return most[:, None]


@patient
@given(st.data())
def test_no_bound_exceeds_the_best_plan(data: st.DataObject) -> None:
    """Of all placements that are outside no limit by more than the plan is."""
    snapshot, goals, plan = planned(data, brokers=4, partitions=4)
    problem = problem_of(snapshot, goals)
    borne = [q for q in quantities_of(snapshot, goals, problem) if not q.led]
    after = executed(snapshot, plan)
    amounts = np.array([q.each for q in borne]).T

    def loads(lists: list[tuple[int, ...]]) -> Ints:
        total = np.zeros((problem.brokers, len(borne)), dtype=np.int64)
        for p, brokers in enumerate(lists):
            for broker in brokers:
                total[broker] += amounts[p]
        return total

    ends = after.offsets.tolist()
    placed = [tuple(after.replicas[a:b].tolist()) for a, b in itertools.pairwise(ends)]
    reached, most_of_topics = loads(placed), allowed_of_topics(snapshot, goals, problem, placed)
    least = np.minimum(np.array([q.least for q in borne]).T, reached)
    most = np.array([np.minimum(q.most, q.capacity) for q in borne]).T
    most = np.maximum(most, reached)
    lists = [tuple(snapshot.replicas[a:b].tolist())
             for a, b in itertools.pairwise(snapshot.offsets.tolist())]  # fmt: skip
    costs = []
    for choice in itertools.product(*(legal_sets(problem, r) for r in range(problem.partitions))):
        for row, (_, brokers) in enumerate(choice):
            lists[problem.movable[row]] = brokers
        total = loads(lists)
        if (
            (total >= least).all()
            and (total <= most).all()
            and (of_topics(snapshot, problem, lists) <= most_of_topics).all()
        ):
            new = [n for n, _ in choice]
            costs.append(
                (sum(new), sum(n * int(s) for n, s in zip(new, problem.size, strict=True)))
            )
    assert costs
    bounds = plan.summary.bounds
    assert bounds.moves <= min(moves for moves, _ in costs) <= plan.summary.moves
    assert bounds.bytes <= min(copied for _, copied in costs) <= plan.summary.bytes
    if plan.summary.objective is not None:
        assert plan.summary.objective.bound <= plan.summary.objective.cost + 1e-6


def uneven(partitions: int, *, seed: int = 1) -> Snapshot:
    """Nine brokers in three racks; those with low numbers have more, and loads differ much."""
    generator = np.random.default_rng(seed)
    weight = np.arange(9, 0, -1) / 45
    lists = [
        (1 + generator.choice(9, size=3, replace=False, p=weight)).tolist()
        for _ in range(partitions)
    ]
    sizes = generator.pareto(2.5, partitions) * 1000 + 1
    snapshot = cluster(list("abcabcabc"), lists, sizes=sizes.astype(int).tolist())
    return loaded(
        snapshot,
        bytes_in=(generator.exponential(1000, partitions)).astype(int).tolist(),
        bytes_out=(generator.exponential(3000, partitions)).astype(int).tolist(),
        disk=[10_000_000] * 9,
        network=[10_000_000] * 9,
    )


def test_a_replica_that_moves_relieves_one_broker_in_the_bound() -> None:
    """Broker 3 lacks replicas and broker 4 lacks bytes: what one gets the other does not."""
    held = [(1, 400, 100), (2, 400, 100), (3, 200, 200), (4, 400, 50), (1, 40, 400), (2, 40, 400)]
    snapshot = cluster(
        ["a"] * 4,
        [[broker] for broker, count, _ in held for _ in range(count)],
        sizes=[size for _, count, size in held for _ in range(count)],
    )
    plan = make_plan(snapshot, Goals(names=(REPLICA_DISTRIBUTION, DISK_DISTRIBUTION)))
    assert plan.summary.goals_met
    bounds = plan.summary.bounds
    assert bounds.fractional < bounds.dual <= plan.summary.moves


def test_goals_of_an_uneven_cluster_are_met_near_the_bound_with_few_moves_or_few_bytes() -> None:
    moves, copied = (
        make_plan(uneven(600), Goals(names=ALL_GOALS, bytes_share=share)).summary
        for share in (0.0, 1.0)
    )
    for summary in (moves, copied):
        assert [goal.name for goal in summary.goals if not goal.met] == []
        assert summary.method == "search"
        assert 0 <= summary.gap < 0.06
    assert copied.bytes < moves.bytes
    assert copied.moves > moves.moves


def test_replicas_are_exchanged_where_counts_let_none_move_alone() -> None:
    """Each broker has to keep its two replicas, so a large one must pass a small one."""
    snapshot = cluster(["a", "a"], [[1], [1], [2], [2]], sizes=[10, 8, 4, 2])
    goals = Goals(
        names=(REPLICA_DISTRIBUTION, DISK_DISTRIBUTION), replica_balance=1.0, resource_balance=1.0
    )
    plan = make_plan(snapshot, goals)
    assert plan.summary.goals_met
    assert (plan.summary.moves, plan.summary.after[2].deviation) == (2, 0)


def test_a_limit_out_of_reach_is_named_and_drags_nothing_else_along() -> None:
    """Rack c has one broker, which must hold a replica of every partition."""
    generator = np.random.default_rng(3)
    lists = [[int(1 + generator.integers(0, 3)), int(4 + generator.integers(0, 3)), 7]
             for _ in range(300)]  # fmt: skip
    snapshot = cluster(list("aaabbbc"), lists, sizes=generator.integers(1, 100, 300).tolist())
    plan = make_plan(snapshot, Goals(names=(RACK, DISK_DISTRIBUTION), resource_balance=1.2))
    (reason,) = [goal.reason for goal in plan.summary.goals if not goal.met]
    assert "broker 7 (rack c) has" in reason
    assert "above its limit of" in reason
    assert plan.summary.moves < 60


def test_capacities_that_all_brokers_together_lack_are_refused() -> None:
    snapshot = loaded(cluster(["a", "b"], [[1, 2]] * 4, sizes=[100] * 4), disk=[450, 450])
    with pytest.raises(InfeasibleGoalsError, match="DiskCapacityGoal: partitions need 800 in all"):
        make_plan(snapshot, Goals(names=(DISK_CAPACITY,)))


def test_a_capacity_that_no_plan_was_found_for_is_refused_with_its_broker() -> None:
    snapshot = loaded(cluster(["a", "b"], [[1]], sizes=[90]), disk=[100, 100])
    with pytest.raises(InfeasibleGoalsError, match="broker 1"):
        make_plan(snapshot, Goals(names=(DISK_CAPACITY,)))


def test_a_broker_above_its_capacity_is_relieved() -> None:
    snapshot = loaded(
        cluster(["a", "b", "c"], [[1], [1], [1], [2]], sizes=[100] * 4), disk=[200, 400, 400]
    )
    plan = make_plan(snapshot, Goals(names=(DISK_CAPACITY,)))
    assert (plan.summary.goals_met, plan.summary.moves, plan.summary.gap) == (True, 2, 0)


def test_goals_need_what_they_weigh() -> None:
    snapshot = cluster(["a", "b"], [[1, 2]] * 4)
    with pytest.raises(InvalidInputError, match="has no rate of any partition: add bytesIn"):
        make_plan(snapshot, Goals(names=(NETWORK_IN_DISTRIBUTION,)))
    with pytest.raises(
        InvalidInputError, match="has no capacity of brokers 1, 2, and a plan could fill"
    ):
        make_plan(loaded(snapshot, bytes_out=[1] * 4), Goals(names=(NETWORK_OUT_CAPACITY,)))
    with pytest.raises(InvalidInputError, match="has no size of any replica: add sizes"):
        make_plan(loaded(snapshot, disk=[100, 100]), Goals(names=(DISK_CAPACITY,)))


@pytest.mark.parametrize(
    ("goals", "moves"),
    [
        (Goals(names=(TOPIC_DISTRIBUTION,), topic_balance=1.0), 6),
        (Goals(names=(RACK,), bytes_share=1.0), 16),
        (Goals(names=(), bytes_share=0.5), 0),
    ],
)
def test_goals_that_weigh_no_load_of_brokers_have_plans(goals: Goals, moves: int) -> None:
    """The one of topics counts replicas, and racks limit partitions."""
    snapshot = cluster(["a", "a", "b"], [[1, 2]] * 16, sizes=[100] * 16)
    plan = make_plan(snapshot, goals)
    assert (plan.summary.goals_met, plan.summary.moves) == (True, moves)
    assert len(make_plan(executed(snapshot, plan), goals).changes) == 0


def test_leaders_are_chosen_by_what_they_send() -> None:
    snapshot = loaded(cluster(["a", "b"], [[1, 2]] * 4), bytes_out=[30, 10, 10, 10])
    goals = Goals(names=(NETWORK_OUT_DISTRIBUTION,), resource_balance=1.0)
    summary = make_plan(snapshot, goals).summary
    assert (summary.goals_met, summary.moves) == (True, 0)
    assert [spread.most for spread in (summary.before[-1], summary.after[-1])] == [60, 30]


def test_exact_leaders_follow_a_search_for_other_loads() -> None:
    snapshot = cluster(["a", "b"], [[1, 2]] * 4, sizes=[1, 2, 3, 4])
    goals = Goals(names=(LEADER_DISTRIBUTION, DISK_DISTRIBUTION), leader_balance=1.0)
    summary = make_plan(snapshot, goals).summary
    assert (summary.goals_met, summary.leader_changes) == (True, 2)


def test_a_missing_numba_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("weighted", "priorities", "search", "kernel", "passes", "prices", "jit"):
        monkeypatch.delitem(sys.modules, f"regent_rebalance.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    snapshot = cluster(["a", "b"], [[1, 2]] * 4, sizes=[1] * 4)
    with pytest.raises(PackageMissingError, match=r"needs the package numba: pip install"):
        make_plan(snapshot, Goals(names=(DISK_DISTRIBUTION,)))
    assert make_plan(snapshot, Goals()).summary.goals_met


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_loads_and_objectives_survive_files(tmp_path: Path, suffix: str) -> None:
    snapshot = uneven(12)
    file = tmp_path / f"snapshot.{suffix}"
    save_snapshot(snapshot, file)
    loaded_again = load_snapshot(file)
    assert encode_snapshot(loaded_again) == encode_snapshot(snapshot)
    assert loaded_again.bytes_out.tolist() == snapshot.bytes_out.tolist()
    assert loaded_again.brokers.network_in.tolist() == [10_000_000] * 9
    plan = make_plan(snapshot, Goals(names=ALL_GOALS, bytes_share=0.5))
    assert plan.summary.objective is not None
    save_plan(plan, tmp_path / f"plan.{suffix}")
    assert load_plan(tmp_path / f"plan.{suffix}").summary == plan.summary


def test_the_command_line_knows_loads(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    save_snapshot(uneven(12), file)
    options = [f"--goal={name}" for name in ALL_GOALS]
    result = CliRunner().invoke(main, ["plan", str(file), *options, "--bytes-share=1"])
    assert result.exit_code == 4, result.output  # so few partitions do not meet all goals
    assert "cost " in result.output
    assert "NetworkOutboundUsageDistributionGoal" in result.output
    wrong = CliRunner().invoke(main, ["plan", str(file), "--capacity-threshold=2"])
    assert (wrong.exit_code, "capacity threshold 2.0: give a number" in wrong.output) == (1, True)


def test_an_added_broker_is_as_wide_as_the_narrowest() -> None:
    snapshot, _ = assume_(uneven(10), WhatIf(added={20: "a"}))
    assert snapshot.brokers.network_out[-1] == snapshot.brokers.disk_bytes[-1] == 10_000_000


def test_limits_are_cruise_controls() -> None:
    assert usage_limits(1000, [100, 300], 1.10) == ([227, 682], [273, 818])
    assert topic_limits(30, 10, 3.0) == (0, 9)
    assert topic_limits(3, 10, 3.0) == (0, 3)
    assert topic_limits(1000, 10, 3.0) == (60, 140)


def test_loads_that_hardly_differ_leave_a_step_of_prices_without_a_length() -> None:
    """A pebibyte a partition, but for a few bytes: the system that a step solves has next to no
    solution. Warnings of numpy are errors in tests."""
    lists = [
        [4, 3], [3, 1, 5, 2], [1, 4, 5], [1, 4, 3, 2], [1, 4, 3], [3, 1, 5, 2],
        [3, 1, 5, 4], [2, 3, 4, 5], [2, 3], [2, 4, 3, 1], [1, 2, 4], [2],
    ]  # fmt: skip
    snapshot = snapshot_of(
        Brokers.of([1, 2, 3, 4, 5], ["c", "a", "a", "c", "a"]),
        Rows(
            topic=[f"t{p // 4}" for p in range(12)],
            partition=[p % 4 for p in range(12)],
            lengths=[len(replicas) for replicas in lists],
            replicas=[broker for replicas in lists for broker in replicas],
            leader=[4, 5, 4, 3, 3, 1, 4, 3, 2, 3, 2, 2],
            sizes=[2**50 + more
                   for more, replicas in zip([1, 0, 1, -4, 0, 1, -4, 1, 4, -2, -2, 2], lists,
                                             strict=True)
                   for _ in replicas],
            bytes_in=2**50 + np.array([-2, -5, -4, 3, -1, -2, 4, -3, -5, -3, -5, 1]),
            bytes_out=2**50 + np.array([0, -4, 0, 0, -4, -1, 5, 3, 2, -1, -1, -5]),
        ),
    )  # fmt: skip
    names = tuple(name for name in ALL_GOALS if not name.endswith("CapacityGoal"))
    goals = Goals(names=names, leader_balance=1.5, topic_balance=1.0, excluded=(5,))
    summary = make_plan(snapshot, goals).summary
    assert summary.bounds.moves <= summary.moves
