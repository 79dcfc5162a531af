"""MinTopicLeadersPerBrokerGoal: hard, by leaders alone where that is enough, else by moves."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from regent.cli import main
from regent_rebalance.errors import InfeasibleGoalsError, InvalidInputError
from regent_rebalance.files import load_plan, save_snapshot
from regent_rebalance.goals import (
    DEFAULT_GOALS,
    DISK_DISTRIBUTION,
    MAX_TOPICS_WITH_LEADERS,
    MIN_LEADERS,
    RACK,
    REPLICA_DISTRIBUTION,
    Goals,
)
from regent_rebalance.planner import make_plan
from regent_rebalance.problem import problem_of
from regent_rebalance.snapshot import Snapshot
from tests.unit.planner.clusters import cluster, clusters, executed, goals_for, legal_sets, patient


def wanted(leaders: int, **options: object) -> Goals:
    names = options.pop("names", (*DEFAULT_GOALS, MIN_LEADERS))
    return Goals(names=names, min_leaders={"t0": leaders}, **options)  # type: ignore[arg-type]


def leaders_of(snapshot: Snapshot, topic: str) -> list[int]:
    """Partitions of a topic that each broker leads."""
    of_topic = snapshot.topic == snapshot.topics.index(topic)
    counts = np.bincount(snapshot.leaders()[of_topic], minlength=len(snapshot.brokers))
    return [int(count) for count in counts]


def test_an_exact_plan_that_has_the_leaders_stays_exact() -> None:
    snapshot = cluster(list("abcd"), [[1, 2], [2, 3], [3, 1], [1, 2], [2, 4], [3, 1]])
    plan, counted = (
        make_plan(snapshot, wanted(1, drained=(4,))),
        make_plan(snapshot, Goals(drained=(4,))),
    )
    assert (plan.hash, plan.summary.method) == (counted.hash, counted.summary.method)
    assert (plan.summary.moves, plan.summary.goals_met) == (1, True)


def test_too_few_partitions_are_named() -> None:
    snapshot = cluster(["a", "b", "c"], [[1, 2]] * 4)
    with pytest.raises(
        InfeasibleGoalsError, match=r"topic t0 has 2 partitions, and 3 brokers .* add 1 partitions"
    ):
        make_plan(snapshot, wanted(1))
    fewer = wanted(1, names=(RACK, MIN_LEADERS), excluded=(3,))
    assert make_plan(snapshot, fewer).summary.goals_met


def test_a_pinned_topic_that_lacks_leaders_is_named() -> None:
    snapshot = cluster(["a", "b"], [[1, 2]] * 4)
    with pytest.raises(InfeasibleGoalsError, match="t0 is pinned, and brokers 2 lead fewer than 1"):
        make_plan(snapshot, wanted(1, pinned=("t0",)))


@pytest.mark.parametrize("first", [True, False])
def test_leaders_for_which_no_broker_has_room_are_named(first: bool) -> None:
    """Broker 2 is full of a pinned topic. The exact plan and the search both miss the goal."""
    snapshot = cluster(["a", "a"], [[1], [1], [2], [2]])
    names = (MIN_LEADERS, *DEFAULT_GOALS) if first else (*DEFAULT_GOALS, MIN_LEADERS)
    goals = wanted(1, names=names, max_replicas=2, pinned=("t1",))
    with pytest.raises(InfeasibleGoalsError, match=r"broker 2 .* has 0 leaders of t0, 1 below"):
        make_plan(snapshot, goals)


def test_wishes_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="MinTopicLeadersPerBrokerGoal is not among"):
        Goals(min_leaders={"t0": 1})
    with pytest.raises(InvalidInputError, match="least leaders 0 of t0: at least 1"):
        wanted(0)
    with pytest.raises(InvalidInputError, match="name at most 50"):
        Goals(
            names=(MIN_LEADERS,),
            min_leaders={f"t{n}": 1 for n in range(MAX_TOPICS_WITH_LEADERS + 1)},
        )
    with pytest.raises(InvalidInputError, match="least leaders: the snapshot has no topic 'gone'"):
        make_plan(cluster(["a"], [[1]]), Goals(names=(MIN_LEADERS,), min_leaders={"gone": 1}))


def can_lead(snapshot: Snapshot, goals: Goals) -> bool:
    """Whether every broker finds partitions to lead, each on its own: an exact matching of brokers
    with partitions that racks let them lead. Other limits aside."""
    problem = problem_of(snapshot, goals)
    number = snapshot.topics.index("t0")
    hosts = {
        row: set(itertools.chain.from_iterable(chosen for _, chosen in legal_sets(problem, row)))
        for row, p in enumerate(problem.movable.tolist())
        if snapshot.topic[p] == number
    }
    places = [
        broker
        for broker in np.flatnonzero(problem.takes).tolist()
        for _ in range(goals.min_leaders["t0"])
    ]
    led: dict[int, int] = {}

    def finds(place: int, seen: set[int]) -> bool:
        for row, brokers in hosts.items():
            if places[place] in brokers and row not in seen:
                seen.add(row)
                if row not in led or finds(led[row], seen):
                    led[row] = place
                    return True
        return False

    return all(finds(place, set()) for place in range(len(places)))


@patient
@given(st.data())
def test_leaders_are_found_wherever_a_matching_has_them(data: st.DataObject) -> None:
    snapshot = data.draw(clusters(brokers=5, partitions=12))
    some = data.draw(goals_for(snapshot))
    names = tuple(name for name in (RACK, REPLICA_DISTRIBUTION) if name in some.names)
    extra = data.draw(st.sampled_from([(), (DISK_DISTRIBUTION,)]))
    goals = dataclasses.replace(
        some,
        names=(MIN_LEADERS, *names, *extra),
        min_leaders={"t0": data.draw(st.integers(1, 2))},
        pinned=(),
    )
    try:
        possible = can_lead(snapshot, goals)
    except InfeasibleGoalsError:
        possible = False
    try:
        plan = make_plan(snapshot, goals)
    except InfeasibleGoalsError:
        assert not possible
        return
    assert possible
    after, problem = executed(snapshot, plan), problem_of(snapshot, goals)
    led = np.array(leaders_of(after, "t0"))
    assert (led[problem.takes] >= goals.min_leaders["t0"]).all()
    if plan.summary.goals_met:
        assert len(make_plan(after, goals).changes) == 0


def test_the_command_line_takes_patterns(tmp_path: Path) -> None:
    file, out = tmp_path / "snapshot.json", tmp_path / "plan.json"
    save_snapshot(cluster(["a", "b", "c"], [[1, 2, 3]] * 6), file)
    run = CliRunner().invoke(main, ["plan", str(file), "--min-leaders", "t*=1", "-o", str(out)])
    assert run.exit_code == 0, run.output
    names = [goal.name for goal in load_plan(out).summary.goals]
    assert names == [*DEFAULT_GOALS, MIN_LEADERS]
    wrong = CliRunner().invoke(main, ["plan", str(file), "--min-leaders", "x*=1"])
    assert (wrong.exit_code, "least leaders: no topic is like 'x*'" in wrong.output) == (1, True)
