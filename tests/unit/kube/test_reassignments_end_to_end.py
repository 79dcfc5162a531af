"""PartitionReassignments from the resource to the brokers and back: the real controller over a
simulated cluster, whose safety checker follows every step, and an API server in memory."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry

from regent.controller.commands import AlterPartitionReassignments
from regent.kube.command_batcher import CommandBatcher
from regent.kube.event_recorder import EventRecorder
from regent.kube.health import KubeHealth
from regent.kube.kind_wiring import KindSurroundings, serve_partition_reassignments
from regent.kube.metrics import ResourceMetrics
from regent.kube.object_cache import ObjectKey
from regent.kube.settings import KubeSettings
from regent.kube.work_queue import WorkQueue
from regent.kube.worker import work
from regent.reconcile.request import Absence
from sandbox import wait_until_async
from tests.support.live_controller import LiveController
from tests.support.simulated_cluster import SimulatedCluster
from tests.unit.kube.test_status_writer import Store
from tests.unit.reconcile.reassignments.reassigning import AUTOMATIC, assign

KEY = ObjectKey("PartitionReassignment", "shop", "move")
Replicas = Sequence[tuple[int, ...]]


class Reassignment:
    """One PartitionReassignment that is served by one process after another."""

    def __init__(self, **spec: Any) -> None:
        self.store = Store(
            {
                "metadata": {
                    "name": "move",
                    "namespace": "shop",
                    "uid": "u1",
                    "generation": 1,
                    "resourceVersion": "1",
                },
                "spec": {"approval": AUTOMATIC, **spec},
                "status": {},
            }
        )

    @property
    def body(self) -> dict[str, Any]:
        assert self.store.stored is not None
        return self.store.stored

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.body["status"]
        return status

    @contextlib.asynccontextmanager
    async def served(self, controller: LiveController) -> AsyncIterator[Serving]:
        """By a process that has just started."""
        serving = Serving(self, controller)
        tasks = serving.start()
        try:
            yield serving
        finally:
            serving.is_open = False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            serving.queue.close()

    async def wait_for(self, phase: str) -> None:
        async def look() -> str | None:
            return self.status.get("phase")

        await wait_until_async(
            look, until=lambda now: now == phase, timeout_s=60, describe=f"phase {phase}"
        )


class Serving:
    """What serves it in one process."""

    def __init__(self, reassignment: Reassignment, controller: LiveController) -> None:
        def now() -> datetime:
            return datetime.now(UTC)

        self.is_open = True
        self.queue: WorkQueue[ObjectKey] = WorkQueue(jitter=lambda: 1.0)
        self._loop = asyncio.get_running_loop()
        self._controller = controller
        self._reassignment = reassignment
        self._metrics = ResourceMetrics(CollectorRegistry())
        self._batcher = CommandBatcher(controller, timeout_s=30)
        self._recorder = EventRecorder(reassignment.store, now=now, instance="pod")
        self._kind = serve_partition_reassignments(
            KindSurroundings(
                client=reassignment.store,
                settings=KubeSettings(status_detail_interval_s=0.1),
                view=lambda: controller.view,
                absence=Absence,
                batcher=self._batcher,
                recorder=self._recorder,
                metrics=self._metrics,
                health=KubeHealth(),
                now=now,
                jitter=lambda: 1.0,
                enqueue=self._enqueue,
                compare_everything=lambda _: None,
            )
        )

    def start(self) -> list[asyncio.Task[None]]:
        self._controller.subscribe(self._on_view_changed)
        self._kind.view_replaced()
        self.take()
        reconcile = self._kind.reconciler.reconcile
        return [
            asyncio.create_task(self._batcher.run()),
            asyncio.create_task(self._recorder.run()),
            asyncio.create_task(work(self.queue, reconcile, metrics=self._metrics)),
        ]

    def take(self) -> None:
        """The watch shows the newest version."""
        self._kind.cache.put(copy.deepcopy(self._reassignment.body))
        self.queue.add(KEY)

    def change(self, **spec: Any) -> None:
        """Somebody changes the spec."""
        body = self._reassignment.body
        body["spec"] |= spec
        self._reassignment.store.change(generation=body["metadata"]["generation"] + 1)
        self.take()

    def _on_view_changed(self, topics: frozenset[str] | None) -> None:
        if self.is_open:
            self._loop.call_soon_threadsafe(self._on_view, topics)

    def _on_view(self, topics: frozenset[str] | None) -> None:
        if topics is None:
            self._kind.view_replaced()
            self._enqueue(frozenset(self._kind.cache.keys()))
        else:
            self._enqueue(self._kind.topics_changed(topics))

    def _enqueue(self, keys: frozenset[ObjectKey]) -> None:
        for key in keys:
            self.queue.add(key)


def sent(controller: LiveController) -> list[AlterPartitionReassignments]:
    return [each for each in controller.commands if isinstance(each, AlterPartitionReassignments)]


def create(cluster: SimulatedCluster, origin: Replicas, target: Replicas) -> None:
    cluster.create_topic("orders", origin)
    for partition, replicas in enumerate(target):
        cluster.expect_move("orders", partition, replicas)
        cluster.expect_move("orders", partition, origin[partition])


async def wait_for_arrivals(cluster: SimulatedCluster, least: int) -> None:
    """Wait until so many partitions are on broker 3 alone."""

    async def look() -> int:
        return await asyncio.to_thread(lambda: cluster.replicas("orders").count((3,)))

    await wait_until_async(
        look,
        until=lambda arrived: arrived >= least,
        timeout_s=60,
        describe=f"{least} partitions to arrive",
    )


async def test_every_partition_arrives_by_events_alone_and_is_asked_for_once() -> None:
    origin, target = [(1, 2)] * 12, [(3, 2)] * 12
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create(cluster, origin, target)
        move = Reassignment(assignments=assign(*target), concurrency={"total": 3})
        async with move.served(controller):
            await move.wait_for("Completed")
        assert cluster.replicas("orders") == target
        assert move.status["summary"] == "12/12"
        asked = [tp for command in sent(controller) for tp in command.targets]
        assert sorted(asked) == [("orders", partition) for partition in range(12)]
        assert max(len(command.targets) for command in sent(controller)) <= 3


async def test_however_often_processes_and_terms_end_the_same_plan_goes_on() -> None:
    origin, target = [(1,)] * 20, [(3,)] * 20
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create(cluster, origin, target)
        move = Reassignment(assignments=assign(*target), concurrency={"total": 1})
        plans = set()
        for least in range(1, 20, 3):
            async with move.served(controller):
                await wait_for_arrivals(cluster, least)
            plans.add((move.status["plan"]["document"], move.status["startedAt"]))
            await asyncio.to_thread(controller.expire_session)
        async with move.served(controller):
            await move.wait_for("Completed")
        plans.add((move.status["plan"]["document"], move.status["startedAt"]))
        assert cluster.replicas("orders") == target
        assert len(plans) == 1


async def test_a_cancelled_reassignment_is_back_where_it_was_and_can_go_on() -> None:
    origin, target = [(1, 2)] * 4, [(3, 1)] * 4
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        create(cluster, origin, target)
        cluster.pause_broker(3)  # nothing is copied there
        move = Reassignment(assignments=assign(*target))
        async with move.served(controller) as serving:
            await wait_until_async(
                lambda: asyncio.to_thread(lambda: cluster.replicas("orders")),
                until=lambda replicas: replicas == [(3, 1, 2)] * 4,
                timeout_s=60,
                describe="all partitions to be on their way",
            )
            serving.change(desiredState="Cancelled")
            await move.wait_for("Cancelled")
            assert cluster.replicas("orders") == origin
            cluster.resume_broker(3)
            serving.change(desiredState="Running")
            await move.wait_for("Completed")
        assert cluster.replicas("orders") == target


async def test_one_replica_at_a_time_never_more_are_added() -> None:
    with SimulatedCluster(brokers=4) as cluster, LiveController(cluster) as controller:
        cluster.create_topic("orders", [(1, 2)])
        for stage in ((1, 3), (3, 4)):
            cluster.expect_move("orders", 0, stage)
        move = Reassignment(assignments=assign((3, 4)), concurrency={"perPartitionOneByOne": True})
        async with move.served(controller):
            await move.wait_for("Completed")
        assert [list(command.targets.values()) for command in sent(controller)] == [
            [(1, 3)],
            [(3, 4)],
        ]
        assert cluster.replicas("orders") == [(3, 4)]


async def test_the_replication_factor_grows_and_does_not_fall_below_what_the_topic_needs() -> None:
    origin, target = [(1, 2), (2, 3), (3, 1)], [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    with SimulatedCluster() as cluster, LiveController(cluster) as controller:
        cluster.create_topic("orders", origin, {"min.insync.replicas": "2"})
        for partition, replicas in enumerate(target):
            cluster.expect_move("orders", partition, replicas)
        shrink = Reassignment(replicationFactor={"orders": 1})
        async with shrink.served(controller):
            await shrink.wait_for("Invalid")
        assert {each["reason"] for each in shrink.status["problems"]} == {"BelowMinInsyncReplicas"}
        grow = Reassignment(replicationFactor={"orders": 3})
        async with grow.served(controller):
            await grow.wait_for("Completed")
        assert cluster.replicas("orders") == target
