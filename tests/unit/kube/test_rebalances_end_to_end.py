"""spec.rebalance from the resource to the brokers: the real controller over a simulated cluster,
and the real planner in this process."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from regent.kube.kind_wiring import KindSurroundings, serve_partition_reassignments
from regent.kube.object_cache import ObjectKey
from regent.kube.plan_runner import PlanTask
from regent.kube.rebalance_planning import PlanningTools
from regent.kube.served_kind import ServedKind
from regent.model.cluster import Broker
from regent.model.log_dirs import LogDirs
from regent.model.topic_name_rules import TopicNameRules
from regent.planning.results import PlannedChange, PlannedChanges, PlanResult, read_result
from regent.planning.snapshotting import Answers
from regent.reconcile.reassignments.move_plan import Move, MovePlan, read_plan
from regent_rebalance.cli import plan
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.waiting import until, wait_for
from tests.unit.kube.serving_moves import ServedResource, Serving
from tests.unit.reconcile.reassignments.reassigning import AUTOMATIC

MANUAL = {"policy": "Manual"}


class Planner:
    """The planner's command, in this process.

    Attributes:
        tasks: What it was asked for.
        gate: Set: it answers.
        cancelled: How often nobody waited for its answer any more.
        handed_in: The answer of somebody else, which arrives instead of the planner's.
    """

    def __init__(self, folder: Path) -> None:
        self.tasks: list[PlanTask] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.cancelled = 0
        self.handed_in: PlanResult | None = None
        self._file = folder / "snapshot.json"

    async def run(self, task: PlanTask) -> PlanResult:
        self.tasks.append(task)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.handed_in is not None:
            return self.handed_in
        return await asyncio.to_thread(self._run, task)

    def _run(self, task: PlanTask) -> PlanResult:
        self._file.write_bytes(task.snapshot)
        arguments = ["make", str(self._file), "--json", *task.goals.arguments()]
        run = CliRunner().invoke(plan, arguments)
        return read_result(run.exit_code, run.stdout_bytes, run.stderr)


async def log_dirs(brokers: Collection[Broker]) -> Answers:
    return {broker.broker_id: LogDirs({"orders": {0: 10}}) for broker in brokers}


def rebalance(
    planner: Planner,
    goals: dict[str, Any] | None = None,
    *,
    rules: tuple[str, ...] = (),
    **spec: Any,
) -> ServedResource:
    tools = PlanningTools(ask_log_dirs=log_dirs, runner=planner)

    def serve(around: KindSurroundings) -> ServedKind:
        settings = dataclasses.replace(
            around.settings, topic_name_rules=TopicNameRules.parse(rules)
        )
        return serve_partition_reassignments(
            dataclasses.replace(around, planning=tools, settings=settings)
        )

    return ServedResource(
        serve, "PartitionReassignment", **{"approval": AUTOMATIC, "rebalance": goals or {}, **spec}
    )


def create_topic(
    cluster: SimulatedCluster,
    controller: LiveController,
    topic: str,
    replicas: list[tuple[int, ...]],
) -> None:
    """Create a topic, and wait until the controller has elected its leaders: a cluster without
    topics needs no moves."""
    cluster.create_topic(topic, replicas)
    wait_for(
        lambda: controller.view.topics.get(topic),
        f"{topic} to be known",
        until=lambda shown: all(each.has_leader for each in shown.partitions),
    )


def approve(cluster: SimulatedCluster, move: ServedResource, serving: Serving) -> None:
    """Approve the plan of a resource; nothing else may move."""
    stored = move.status["plan"]
    for each in read_plan(stored["document"], expected_hash=stored["hash"]).moves:
        cluster.expect_move(each.topic, each.partition, each.target)
        cluster.expect_move(each.topic, each.partition, each.replicas)
    serving.change(approval={**MANUAL, "planHash": stored["hash"]})


def spread(cluster: SimulatedCluster, topic: str = "orders") -> Counter[int]:
    return Counter(broker for replicas in cluster.replicas(topic) for broker in replicas)


async def test_a_skewed_cluster_is_balanced_after_approval(tmp_path: Path) -> None:
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create_topic(cluster, controller, "orders", [(1, 2)] * 12)
        planner = Planner(tmp_path)
        move = rebalance(planner, approval=MANUAL)
        async with move.served(controller):
            await move.wait_for("AwaitingApproval")
        awaiting = move.status
        assert cluster.replicas("orders") == [(1, 2)] * 12
        async with move.served(controller) as serving:  # another process: the plan stays
            approve(cluster, move, serving)
            await move.wait_for("Completed")
        assert len(planner.tasks) == 1
        assert move.status["plan"] == awaiting["plan"]
        assert move.status["rebalance"] == awaiting["rebalance"]
        assert move.status["rebalance"]["lowerBound"] == awaiting["plan"]["replicaMoves"]
        # Within the limits of the goals: 91 to 109 percent of 8 replicas, and of 4 leaders.
        assert set(spread(cluster).values()) <= {7, 8, 9}
        leaders = Counter(p.leader for p in controller.view.topics["orders"].partitions)
        assert set(leaders.values()) <= {3, 4, 5}
        assert len(leaders) == 3

        again = rebalance(planner)
        async with again.served(controller):
            await again.wait_for("Completed")
        assert again.status["plan"]["partitions"] == 0


async def test_a_plan_is_not_made_to_its_end_for_a_resource_that_is_gone(tmp_path: Path) -> None:
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create_topic(cluster, controller, "orders", [(1, 2)] * 6)
        planner = Planner(tmp_path)
        planner.gate.clear()
        move = rebalance(planner)

        async with move.served(controller) as serving:
            await until(lambda: len(planner.tasks), "the planner to be asked")
            serving.delete()
            serving.queue.add(move.key)
            await until(lambda: planner.cancelled, "it to be cancelled")


def executed(controller: LiveController, topic: str) -> tuple[ObjectKey, dict[str, Any]]:
    """Another resource, whose plan moves a partition of a topic to a broker that is not alive."""
    cluster_id = controller.view.cluster_id
    czxid = controller.view.topics[topic].czxid
    moves = MovePlan.of(cluster_id, [Move(topic, 0, czxid, (1, 2), (9, 2))])
    return ObjectKey("PartitionReassignment", "shop", "stuck"), {
        "metadata": {"name": "stuck", "namespace": "shop", "uid": "u2"},
        "spec": {"assignments": [{"topic": topic, "partition": 0, "replicas": [9, 2]}]},
        "status": {
            "clusterId": cluster_id,
            "startedAt": "2026-01-02T03:04:05Z",
            "phase": "Executing",
            "plan": {"hash": moves.hash, "document": moves.document},
        },
    }


async def test_another_that_waits_for_a_dead_broker_holds_no_plan_up(tmp_path: Path) -> None:
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create_topic(cluster, controller, "orders", [(1, 2)] * 6)
        create_topic(cluster, controller, "stuck", [(1, 2)] * 2)
        planner = Planner(tmp_path)
        move = rebalance(planner, approval=MANUAL)
        async with move.served(controller) as serving:
            serving.around.reassignments.put(*executed(controller, "stuck"))
            await move.wait_for("AwaitingApproval")
            (remark,) = (
                each
                for each in move.status["rebalance"]["remarks"]
                if "PartitionReassignment shop/stuck" in each
            )
            approve(cluster, move, serving)
            await move.wait_for("Completed")
        assert "stuck-0: brokers [9] are not alive" in remark
        assert planner.tasks[-1].goals.pinned == ("stuck",)
        assert cluster.replicas("stuck") == [(1, 2)] * 2
        assert spread(cluster, "orders")[3] > 0


async def test_what_becomes_of_the_topics_of_another_is_news_for_a_plan_that_waits() -> None:
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create_topic(cluster, controller, "stuck", [(1, 2)] * 2)
        move = ServedResource(serve_partition_reassignments, "PartitionReassignment", rebalance={})
        async with move.served(controller) as serving:
            served = serve_partition_reassignments(serving.around)
            served.cache.put(move.body)
            assert served.topics_changed(frozenset({"stuck"})) == frozenset()
            stuck, body = executed(controller, "stuck")
            serving.around.reassignments.put(stuck, body)
            assert served.topics_changed(frozenset({"stuck"})) == frozenset({move.key, stuck})


async def test_plan_is_refused_when_it_moves_a_foreign_topic_created_after_the_snapshot(
    tmp_path: Path,
) -> None:
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create_topic(cluster, controller, "orders", [(1, 2)] * 6)
        planner = Planner(tmp_path)
        planner.gate.clear()
        planner.handed_in = PlannedChanges((PlannedChange("foreign", 0, (1, 2), (1, 3)),))
        move = rebalance(planner, rules=("shop=orders",))  # approved automatically

        async def seen() -> tuple[list[str], str | None]:
            found = [each["message"] for each in move.status.get("problems", ())]
            return found, move.status.get("startedAt")

        async with move.served(controller):
            await until(lambda: len(planner.tasks), describe="the planner to be asked")
            create_topic(cluster, controller, "foreign", [(1, 2)])
            planner.gate.set()
            problems, started_at = await until(seen, until=any, describe="an answer to the plan")
        assert started_at is None
        assert problems == [
            "the planner has failed and is started again: its plan moves foreign-0, a topic that "
            "topic_name_rules do not let the namespace move; find out who has handed it in"
        ]
        assert cluster.replicas("foreign") == [(1, 2)]
