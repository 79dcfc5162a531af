"""The report of a plan: one file without scripts, and the same tables at a terminal."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from regent_rebalance.describe import described
from regent_rebalance.flows import ADDED, OTHERS, broker_flows, rack_flows, rack_loads
from regent_rebalance.goals import Goals
from regent_rebalance.html_report import render_report
from regent_rebalance.plan import Plan
from regent_rebalance.planner import make_plan
from regent_rebalance.schedule import Limits
from regent_rebalance.snapshot import Snapshot
from regent_rebalance.text import render_difference, render_plan
from regent_rebalance.units import size_text, time_text
from tests.unit.planner.clusters import cluster

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Document(HTMLParser):
    """Elements of a document. Fails for those that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def plan_for(snapshot: Snapshot, goals: Goals | None = None, **rest: object) -> Plan:
    wanted = goals or Goals()
    plan = make_plan(snapshot, wanted)
    return described(snapshot, wanted, plan, Limits(rate=1), **rest)  # type: ignore[arg-type]


@pytest.fixture
def plan() -> Plan:
    return plan_for(cluster(["a", "b", "c"], [[1, 2]] * 4, sizes=[10, 20, 30, 40]))


def test_a_report_is_one_file_without_scripts(plan: Plan) -> None:
    document = Document(render_report(plan))
    tags = {tag for tag, _ in document.elements}
    assert {"svg", "table", "details"} <= tags
    assert not tags & {"script", "link", "img", "iframe", "object", "embed"}
    names = {name for _, attributes in document.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "href"})


def test_a_report_names_hash_goals_bounds_and_times(plan: Plan) -> None:
    report = render_report(plan)
    for text in (plan.hash, "RackAwareGoal", "no plan has fewer new replicas", "mandatory"):
        assert text in report
    assert plan.details is not None
    assert time_text(plan.details.schedule.seconds) in report


def test_names_of_racks_and_topics_are_no_markup() -> None:
    snapshot = cluster(["<b>&", '"x"', "c"], [[1, 2]] * 4)
    report = render_report(plan_for(snapshot, assumptions=("<script>alert(1)</script>",)))
    Document(report)
    assert "<b>&" not in report
    assert "<script" not in report


def test_an_unmet_goal_and_what_goes_wrong_are_in_the_report() -> None:
    snapshot = cluster(["a", "b"], [[1]], alive=[False, True], sizes=[5])
    goals = Goals(replica_balance=1.0)
    report = render_report(plan_for(snapshot, goals))
    assert "no replica lives" in report
    unmet = render_report(plan_for(cluster(["a", "b", "b"], [[1, 2]] * 6), goals))
    assert "not met" in unmet
    assert "broker 1 (rack a) has 6 replicas" in unmet


def test_disks_that_hold_less_than_a_plan_gives_them_stand_out() -> None:
    snapshot = cluster(["a", "b"], [[1]] * 4, sizes=[60] * 4)
    enough = render_report(plan_for(snapshot))
    snapshot.brokers.disk_bytes[:] = [300, 50]
    assert 'class="over"' not in enough
    assert 'class="over"' in render_report(plan_for(snapshot))


@pytest.mark.parametrize(
    "partitions", [[[1, 2], [2, 1]], [[1, 2]]], ids=["nothing to do", "little to do"]
)
def test_small_plans_have_a_report(partitions: list[list[int]]) -> None:
    Document(render_report(plan_for(cluster(["a", "b"], partitions))))


def test_brokers_after_a_plan_are_those_of_the_cluster_that_it_makes(plan: Plan) -> None:
    assert plan.details is not None
    brokers = plan.details.brokers
    assert [b.before.replicas for b in brokers] == [4, 4, 0]
    spread = plan.summary.after[0]
    after = [b.after.replicas for b in brokers]
    assert (min(after), max(after), sum(after)) == (spread.least, spread.most, 8)
    leaders = [b.after.leaders for b in brokers]
    assert (min(leaders), max(leaders), sum(leaders)) == (
        plan.summary.after[1].least,
        plan.summary.after[1].most,
        4,
    )
    assert sum(b.received for b in brokers) == sum(b.sent for b in brokers) == plan.summary.bytes
    assert [b.before.disk for b in brokers] == [100, 100, 0]
    assert sum(b.after.disk for b in brokers) == 200


def test_moves_are_counted_from_what_replicas_leave_to_what_they_go_to() -> None:
    snapshot = cluster(["a", "b", "c"], [[1, 2]] * 3)
    plan = plan_for(snapshot, Goals(names=(), drained=(2,), replication_factor={"t1": 1}))
    assert plan.details is not None
    flows = broker_flows(plan, plan.details)
    assert sum(map(sum, flows.counts)) == plan.summary.moves
    assert flows.counts[flows.sources.index("2")][flows.targets.index("3")] == 2
    grown = plan_for(snapshot, Goals(names=(), replication_factor={"t0": 3}))
    assert grown.details is not None
    racks = rack_flows(grown, grown.details)
    assert racks.counts[racks.sources.index(ADDED)][racks.targets.index("c")] == 2


def test_the_quietest_racks_share_a_row_where_there_are_too_many() -> None:
    count = 60
    snapshot = cluster([f"r{b}" for b in range(count)], [[1]] * 80 + [[2]] * 7)
    plan = plan_for(snapshot)
    assert plan.details is not None
    flows = broker_flows(plan, plan.details)
    assert flows.kind == "rack"
    assert OTHERS in flows.targets
    assert len(flows.targets) <= 40
    assert sum(map(sum, flows.counts)) == plan.summary.moves
    assert sum(rack.brokers for rack in rack_loads(plan.details)) == count


def test_tables_at_a_terminal_have_brokers_racks_moves_and_batches(plan: Plan) -> None:
    text = render_plan(plan)
    for title in ("racks", "brokers", "new replicas, from racks to racks", "batches    "):
        assert f"\n{title}" in text
    assert "predicted, at least" in text
    few = render_plan(plan, shown=1)
    assert "brokers: the 1 with most to copy of 3" in few


def test_a_difference_has_the_times_of_both(plan: Plan) -> None:
    other = plan_for(cluster(["a", "b", "c"], [[1, 2]] * 4), Goals(pinned=("t0",)))
    first, second = render_difference(plan, other).splitlines()[:2]
    assert plan.details is not None
    assert first.endswith(time_text(plan.details.schedule.seconds))
    assert "goals met" in second


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.2, "less than 1 s"),
        (59.6, "1 min"),
        (3_661, "1 h 1 min"),
        (86_400 * 3 + 7_300, "3 d 2 h"),
        (86_400 + 60, "1 d"),
    ],
)
def test_times_have_two_units_at_most(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999_900, "1 MB"),
        (1_500_000_000, "1.5 GB"),
        (2e18, "2,000 PB"),
    ],
)
def test_sizes_have_three_digits(count: float, text: str) -> None:
    assert size_text(count) == text
