"""Which planner is asked, for how many at a time, and what becomes of a job that nobody needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from regent.controller.view import ClusterView
from regent.kube.errors import KubeUnavailableError
from regent.kube.object_cache import ObjectKey
from regent.kube.plan_runner import PlanTask
from regent.kube.rebalance_planning import PlanningTools, RebalancePlanning
from regent.kube.waiting import cancel
from regent.model.cluster import Broker
from regent.model.topic_name_rules import TopicNameRules
from regent.planning.goals import PlannerGoals
from regent.planning.histories import PlannerHistory
from regent.planning.orders import PlanningOrder, live_brokers
from regent.planning.results import (
    HistoryUnusable,
    PlannedChange,
    PlannedChanges,
    PlannerFailed,
    PlannerMissing,
    PlanResult,
)
from regent.planning.snapshotting import Answers
from regent.planning.spark_jobs import PlanOwner
from regent.resources.rebalance_history import RebalanceHistory
from regent.resources.rebalance_spark import RebalanceSpark
from tests.support.present import present
from tests.support.waiting import until
from tests.unit.kube.test_rebalances_end_to_end import log_dirs
from tests.unit.reconcile.reassignments.reassigning import orders
from tests.unit.reconcile.requests import view

KEY = ObjectKey("PartitionReassignment", "shop", "move")
OWNER = PlanOwner("shop", "move", "u1")
SEEN = view(orders((1, 2), (1, 2)))
ALL_TOPICS = TopicNameRules()
BESIDE = PlanningOrder(goals=PlannerGoals(), brokers=live_brokers(SEEN))
ON_SPARK = replace(BESIDE, spark=RebalanceSpark(image="planner:1"))


class Runner:
    """Notes what it is asked for.

    Attributes:
        gate: Set: it answers.
        dying: Set: who is cancelled ends.
        left: Whose jobs are there from before.
        unseen: Whether nobody can tell that.
        given_up: Whose jobs were deleted.
        deleting: Set: deleting ends.
        failing: How often deleting fails.
        result: The answer.
        at_once: How many it has been asked for at the same time.
    """

    def __init__(self) -> None:
        self.tasks: list[PlanTask] = []
        self.gate = asyncio.Event()
        self.dying = asyncio.Event()
        self.dying.set()
        self.left: set[PlanOwner] = set()
        self.unseen = False
        self.given_up: list[PlanOwner] = []
        self.deleting = asyncio.Event()
        self.deleting.set()
        self.failing = 0
        self.result: PlanResult = PlannedChanges(())
        self.at_once = 0
        self._running = 0

    async def run(self, task: PlanTask) -> PlanResult:
        self.tasks.append(task)
        self._running += 1
        self.at_once = max(self.at_once, self._running)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            await self.dying.wait()
            raise
        finally:
            self._running -= 1
        return self.result

    @property
    def owners(self) -> list[str]:
        """For whom it was asked, as ``namespace/name``."""
        found = [task.spark.owner for task in self.tasks if task.spark is not None]
        return [f"{each.namespace}/{each.name}" for each in found]

    async def has_job(self, owner: PlanOwner) -> bool:
        if self.unseen:
            raise KubeUnavailableError("no answer")
        return owner in self.left

    async def give_up(self, owner: PlanOwner) -> None:
        await self.deleting.wait()
        self.given_up.append(owner)
        if self.failing:
            self.failing -= 1
            raise KubeUnavailableError("no answer")


@asynccontextmanager
async def planning(
    beside: Runner,
    jobs: Runner | None,
    rules: TopicNameRules = ALL_TOPICS,
    *,
    history: str | None = None,
    seen: Callable[[], ClusterView] = lambda: SEEN,
    ask: Callable[[Collection[Broker]], Awaitable[Answers]] = log_dirs,
) -> AsyncIterator[RebalancePlanning]:
    made = RebalancePlanning(
        PlanningTools(ask_log_dirs=ask, runner=beside, history=history),
        jobs=jobs,
        concurrent_jobs=2,
        view=seen,
        rules=rules,
        on_news=lambda _: None,
        look_again_s=0.0,
    )
    running = asyncio.create_task(made.run(asyncio.Event()))
    try:
        yield made
    finally:
        await cancel((running,))


async def until_asked(runner: Runner, times: int = 1) -> None:
    await until(lambda: len(runner.tasks) == times, "the planner to be asked")


async def outcome(made: RebalancePlanning, key: ObjectKey = KEY) -> PlanResult:
    await until(lambda: made.outcome_for(key, "u1") is not None, "an outcome")
    found = present(made.outcome_for(key, "u1"))
    return found.result


async def until_given_up(runner: Runner, *owners: PlanOwner) -> None:
    await until(lambda: runner.given_up == list(owners), "jobs to be deleted")


async def settled() -> None:
    """Everything that can go on has gone on: nothing here waits for a thread or a server but
    snapshots, and those are small."""
    for _ in range(50):
        await asyncio.to_thread(int)


def key_of(name: str, namespace: str = "shop") -> ObjectKey:
    return ObjectKey("PartitionReassignment", namespace, name)


async def test_an_order_on_spark_is_a_job_with_an_identity() -> None:
    beside, jobs = Runner(), Runner()
    async with planning(beside, jobs) as made:
        made.keep(KEY, "u1", ON_SPARK)
        await until_asked(jobs)
        (task,) = jobs.tasks
        assert present(task.spark).owner == OWNER
        jobs.gate.set()
        assert await outcome(made) == PlannedChanges(())
        made.keep(KEY, "u1", None)
    assert beside.tasks == []
    assert jobs.given_up == [], "it has ended, and stays for its log"


async def test_a_job_that_nobody_needs_is_deleted_and_others_are_served_on() -> None:
    beside, jobs = Runner(), Runner()
    jobs.failing = 1
    async with planning(beside, jobs) as made:
        made.keep(KEY, "u1", ON_SPARK)
        await until_asked(jobs)
        made.keep(KEY, "u1", None)
        made.keep(KEY, "u1", BESIDE)
        await until_asked(beside)
    assert jobs.given_up == [OWNER]


async def test_processes_plan_one_at_a_time_and_the_next_begins_when_the_last_has_ended() -> None:
    beside = Runner()
    beside.dying.clear()
    async with planning(beside, None) as made:
        made.keep(KEY, "u1", BESIDE)
        made.keep(key_of("other"), "u1", BESIDE)
        await until_asked(beside)
        made.keep(KEY, "u1", None)
        await settled()
        assert len(beside.tasks) == 1, "it is being ended, and has its memory still"
        beside.dying.set()
        await until_asked(beside, 2)
        beside.gate.set()
        await outcome(made, key_of("other"))
    assert beside.at_once == 1


@pytest.mark.parametrize(
    "present",
    [view(orders((1, 2), (1, 2)), brokers=2), view(active=False), view(complete=False)],
    ids=["a broker is being restarted", "another is the controller", "it is still being read"],
)
async def test_a_plan_is_made_of_the_brokers_that_it_was_ordered_for_and_waits_for_them(
    present: ClusterView,
) -> None:
    """Its turn may come late, and before its object is looked at again: a plan would move
    everything off a broker that is back a moment later, or have nothing to move."""
    beside = Runner()
    beside.gate.set()
    seen = present
    async with planning(beside, None, seen=lambda: seen) as made:
        made.keep(KEY, "u1", BESIDE)
        await settled()
        assert beside.tasks == []
        seen = SEEN
        assert await outcome(made) == PlannedChanges(())
    (task,) = beside.tasks
    assert b'"alive":false' not in task.snapshot


async def test_brokers_are_asked_once_they_are_those_of_the_order() -> None:
    """What all brokers answer is large, and one that is waited for may take minutes to start."""
    beside = Runner()
    beside.gate.set()
    fewer = view(orders((1, 2), (1, 2)), brokers=2)
    seen, asked = fewer, 0

    async def ask(brokers: Collection[Broker]) -> Answers:
        nonlocal seen, asked
        asked += 1
        seen = fewer if asked == 1 else SEEN
        return await log_dirs(brokers)

    async with planning(beside, None, seen=lambda: seen, ask=ask) as made:
        made.keep(KEY, "u1", BESIDE)
        await settled()
        assert asked == 0
        seen = SEEN
        await until(lambda: asked == 1, "brokers to be asked")
        await settled()
        assert (asked, beside.tasks) == (1, [])
        seen = SEEN
        assert await outcome(made) == PlannedChanges(())
    assert asked == 2


async def test_an_order_waits_until_what_is_left_of_the_one_before_is_deleted() -> None:
    """What deletes the jobs of a resource would find the job of its next order, too."""
    jobs = Runner()
    jobs.deleting.clear()
    async with planning(Runner(), jobs) as made:
        made.keep(KEY, "u1", ON_SPARK)
        await until_asked(jobs)
        made.keep(KEY, "u1", None)
        made.keep(KEY, "u1", ON_SPARK)
        made.keep(key_of("other"), "u1", ON_SPARK)
        await until_asked(jobs, 2)
        await settled()
        assert jobs.owners == ["shop/move", "shop/other"]
        jobs.deleting.set()
        await until_given_up(jobs, OWNER)
        await until_asked(jobs, 3)
        assert jobs.owners[-1] == "shop/move"


async def test_with_other_brokers_the_plans_under_way_are_made_again_before_those_that_wait() -> (
    None
):
    """A broker comes or goes: all want another plan, and each that had a job replaces it."""
    jobs = Runner()
    seen = SEEN
    async with planning(Runner(), jobs, seen=lambda: seen) as made:
        for name in ("a", "b"):
            made.keep(key_of(name), "u1", ON_SPARK)
        await until_asked(jobs, 2)
        made.keep(key_of("waits", "other"), "u1", ON_SPARK)
        await settled()
        seen = view(orders((1, 2), (1, 2)), brokers=2)
        others = replace(ON_SPARK, brokers=live_brokers(seen))
        for key in (key_of("waits", "other"), key_of("a"), key_of("b")):
            made.keep(key, "u1", others)
        await until_asked(jobs, 4)
        await settled()
        assert sorted(jobs.owners) == ["shop/a", "shop/a", "shop/b", "shop/b"]
        assert jobs.at_once == 2
    assert jobs.given_up == []


async def test_a_regent_that_takes_over_goes_on_with_all_jobs_that_it_finds() -> None:
    """More than it would begin: they have their pods, and their drivers look for it. The others
    wait for room."""
    jobs = Runner()
    jobs.left = {PlanOwner("shop", name, "u1") for name in ("c", "d", "e")}
    async with planning(Runner(), jobs) as made:
        for name in ("a", "b", "c", "d", "e"):
            made.keep(key_of(name), "u1", ON_SPARK)
        await until_asked(jobs, 3)
        await settled()
        assert sorted(jobs.owners) == ["shop/c", "shop/d", "shop/e"]
        jobs.gate.set()
        await until_asked(jobs, 5)


async def test_a_job_that_has_failed_may_still_be_there_and_is_deleted() -> None:
    """Without its Secret, for instance, its driver never begins, and never ends."""
    beside, jobs = Runner(), Runner()
    jobs.result = PlannerFailed("its Secret was refused")
    jobs.gate.set()
    async with planning(beside, jobs) as made:
        made.keep(KEY, "u1", ON_SPARK)
        assert await outcome(made) == jobs.result
        made.keep(KEY, "u1", None)
        made.keep(KEY, "u1", BESIDE)
        await until_asked(beside)
    assert jobs.given_up == [OWNER]


async def test_a_defect_of_the_planner_is_an_outcome() -> None:
    class Defective(Runner):
        async def run(self, task: PlanTask) -> PlanResult:
            raise ValueError("no such thing")

    async with planning(Defective(), None) as made:
        made.keep(KEY, "u1", BESIDE)
        assert await outcome(made) == PlannerFailed("ValueError: no such thing")


async def test_at_the_end_of_the_process_a_job_goes_on() -> None:
    jobs = Runner()
    async with planning(Runner(), jobs) as made:
        made.keep(KEY, "u1", ON_SPARK)
        await until_asked(jobs)
    assert jobs.given_up == []


@pytest.mark.parametrize(
    "lost",
    [view(active=False), view(complete=False)],
    ids=["another is the controller", "it has just become the controller again"],
)
async def test_who_is_not_the_controller_any_more_leaves_a_job_to_whoever_is(
    lost: ClusterView,
) -> None:
    beside, jobs = Runner(), Runner()
    seen = SEEN
    async with planning(beside, jobs, seen=lambda: seen) as made:
        made.keep(KEY, "u1", ON_SPARK)
        await until_asked(jobs)
        seen = lost
        made.keep(KEY, "u1", None)
        await settled()
        assert jobs.given_up == []
        jobs.left, seen = {OWNER}, SEEN
        made.keep(KEY, "u1", ON_SPARK)
        await until_asked(jobs, 2)  # with the job that is there
    assert jobs.given_up == []


async def test_a_plan_that_moves_what_the_namespace_may_not_move_is_none() -> None:
    beside = Runner()
    beside.result = PlannedChanges((PlannedChange("orders", 0, (1, 2), (2, 1)),))
    beside.gate.set()
    rules = TopicNameRules.parse(("*=others",))
    async with planning(beside, None, rules) as made:
        made.keep(KEY, "u1", BESIDE)
        result = await outcome(made)
    assert beside.tasks[0].goals.pinned == ("orders",)
    assert isinstance(result, PlannerFailed)
    assert "moves orders-0, a topic that topic_name_rules do not let" in result.problem


FROM_HISTORY = RebalanceHistory(window_seconds=3600, percentile=99, max_age_seconds=600)


async def test_a_planner_gets_the_history_of_the_process_and_of_this_cluster_alone() -> None:
    beside, jobs = Runner(), Runner()
    async with planning(beside, jobs, history="file:/history") as made:
        made.keep(KEY, "u1", replace(ON_SPARK, history=FROM_HISTORY))
        await until_asked(jobs)
        made.keep(key_of("other"), "u1", replace(BESIDE, history=FROM_HISTORY))
        await until_asked(beside)
        made.keep(key_of("without"), "u1", ON_SPARK)
        await until_asked(jobs, 2)
    expected = PlannerHistory(
        place="file:/history", window_s=3600, percentile=99, max_age_s=600, cluster="cluster-a"
    )
    job, without = jobs.tasks
    assert (job.history, present(job.spark).history, beside.tasks[0].history) == (expected,) * 3
    assert (without.history, present(without.spark).history) == (None, None)


@pytest.mark.parametrize(
    ("place", "order", "named"),
    [(None, BESIDE, "planner_history"), ("/history", ON_SPARK, "/history, a folder that pods")],
)
async def test_a_history_that_is_nowhere_or_out_of_reach_is_said_and_nothing_is_planned(
    place: str | None, order: PlanningOrder, named: str
) -> None:
    beside, jobs = Runner(), Runner()
    async with planning(beside, jobs, history=place) as made:
        made.keep(KEY, "u1", replace(order, history=FROM_HISTORY))
        result = await outcome(made)
    assert isinstance(result, HistoryUnusable)
    assert named in result.problem
    assert (beside.tasks, jobs.tasks) == ([], [])


async def test_without_an_exchange_the_resource_says_what_to_set() -> None:
    beside = Runner()
    async with planning(beside, None) as made:
        made.keep(KEY, "u1", ON_SPARK)
        result = await outcome(made)
    assert isinstance(result, PlannerMissing)
    assert "planner_exchange_port" in result.problem
    assert beside.tasks == [], "what was to run elsewhere is not run here"
