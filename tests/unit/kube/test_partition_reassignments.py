"""What is sent for PartitionReassignments, and what of it is remembered."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    DescribeTopicConfigs,
    Outcome,
    PartitionResult,
    Reason,
    Rejected,
)
from regent.controller.commands import Command
from regent.controller.view import ClusterView
from regent.kube.claim_index import ClaimIndex
from regent.kube.command_batcher import CommandBatcher
from regent.kube.copy_watch import CopyWatch
from regent.kube.event_recorder import EventRecorder
from regent.kube.kafka_topics import TopicIndex
from regent.kube.moving_partitions import MovingPartitions
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.kube.partition_reassignments import PartitionReassignments, ReassignmentIndex
from regent.kube.reconciler import Reconciler, ReconcilerParts
from regent.kube.settings import KubeSettings
from regent.kube.status_writer import StatusWriter
from regent.kube.topic_configs import TopicConfigs
from regent.model.partition import TopicPartition
from regent.reconcile.reassignments.kind import PARTITION_REASSIGNMENT
from regent.reconcile.reassignments.planning import plan_reassignment
from regent.reconcile.topics.kind import KAFKA_TOPIC
from tests.support.present import present
from tests.support.viewed_port import ViewedPort
from tests.unit.kube.jumping_clock import run
from tests.unit.kube.stored_objects import Store
from tests.unit.reconcile.reassignments.reassigning import (
    AUTOMATIC,
    assign,
    moved,
    orders,
    request,
    resource,
    tp,
)
from tests.unit.reconcile.requests import view


def now() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def body(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "generation": 1,
            "resourceVersion": "1",
        },
        "spec": {"approval": AUTOMATIC, **spec},
        "status": {},
    }


def plan_to_api(seen: ClusterView, assignments: list[dict[str, Any]]) -> dict[str, Any]:
    """``status.plan`` of a reassignment that is planned in this view."""
    planned = present(plan_reassignment(request(resource(assignments=assignments), seen)).status)
    return present(planned.plan).to_api()


class Port(ViewedPort):
    """Answers as it is told. Its view is what a test says."""

    def __init__(self, seen: ClusterView) -> None:
        self.view = seen
        self.moves: list[dict[TopicPartition, tuple[int, ...] | None]] = []
        self.refuse: dict[TopicPartition, str] = {}
        self.rejected: Rejected | None = None

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        return [self._answer(command) for command in commands]

    def _answer(self, command: Command) -> Outcome:
        if isinstance(command, DescribeTopicConfigs):
            return Accepted({topic: {} for topic in command.topics})
        assert isinstance(command, AlterPartitionReassignments)
        self.moves.append(dict(command.targets))
        results = {
            each: PartitionResult(39, self.refuse[each])
            if each in self.refuse
            else PartitionResult()
            for each in command.targets
        }
        return self.rejected or Accepted(results)


class Bench:
    """Reconciles some PartitionReassignments, each with an API server of its own."""

    def __init__(self, seen: ClusterView, *bodies: dict[str, Any]) -> None:
        self.port = Port(seen)
        self.moving = MovingPartitions()
        self.topics: TopicIndex = ClaimIndex(KAFKA_TOPIC)
        self.stores = {each["metadata"]["name"]: Store(copy.deepcopy(each)) for each in bodies}
        self.requeued: list[float | None] = []

    async def reconcile(self, times: int, names: Sequence[str] | None = None) -> None:
        settings = KubeSettings()
        batcher = CommandBatcher(self.port, timeout_s=60)
        index: ReassignmentIndex = ClaimIndex(PARTITION_REASSIGNMENT)
        kind = PartitionReassignments(
            index=index,
            topics=self.topics,
            configs=TopicConfigs(),
            moving=self.moving,
            copies=CopyWatch(None, view=lambda: self.port.view, now=now, on_news=lambda keys: None),
            batcher=batcher,
            settings=settings,
            view=lambda: self.port.view,
            now=now,
            jitter=lambda: 1.0,
        )
        keys = {name: ObjectKey("PartitionReassignment", "shop", name) for name in self.stores}
        reconcilers = {}
        recorders = []
        for name, store in self.stores.items():
            cache = ObjectCache("PartitionReassignment", index)
            assert store.stored is not None
            cache.put(copy.deepcopy(store.stored))
            recorders.append(EventRecorder(store, now=kind.now, instance="pod"))
            parts = ReconcilerParts(
                cache=cache,
                writer=StatusWriter(store, PARTITION_REASSIGNMENT, cache, on_news=lambda _: None),
                recorder=recorders[-1],
                settings=settings,
                view=lambda: self.port.view,
            )
            reconcilers[name] = Reconciler(parts, kind)
        tasks = [asyncio.create_task(batcher.run())]
        tasks.extend(asyncio.create_task(recorder.run()) for recorder in recorders)
        try:
            for _ in range(times):
                reconciled = await asyncio.gather(
                    *(reconcilers[name].reconcile(keys[name]) for name in names or keys)
                )
                self.requeued = [each.again_s for each in reconciled]
            for recorder in recorders:
                await recorder.flush()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def status(self, name: str = "a") -> dict[str, Any]:
        stored = present(self.stores[name].stored)
        status: dict[str, Any] = stored["status"]
        return status


@pytest.mark.parametrize("unknown", ["plan", "plan.document"])
def test_nothing_is_moved_if_the_plan_cannot_be_stored(unknown: str) -> None:
    bench = Bench(view(orders((1, 2))), body("a", assignments=assign((1, 3))))
    bench.stores["a"].unknown_fields = frozenset({unknown})
    with pytest.raises(Exception, match=rf"does not store status\.{unknown}: "):
        run(bench.reconcile(times=1))
    assert bench.port.moves == []


def test_two_reassignments_keep_the_limits_together() -> None:
    limits = {"total": 3}
    targets = assign(*[(1, 3)] * 8)
    bench = Bench(
        view(orders(*[(1, 2)] * 8)),
        body("a", assignments=targets[:4], concurrency=limits),
        body("b", assignments=targets[4:], concurrency=limits),
    )
    run(bench.reconcile(times=3))
    assert sum(map(len, bench.port.moves)) == 3


def test_only_the_first_of_two_reassignments_moves_a_partition_until_it_is_over() -> None:
    """Each would take the partition back to where the other one found it."""
    bench = Bench(
        view(orders((1, 2), (1, 2))),
        body("a", assignments=assign((1, 3), (1, 3))),
        body("b", assignments=assign((1, 2))),
    )
    run(bench.reconcile(times=1, names=["a"]))
    half = view(orders((1, 3), moved(1, (1, 2), (1, 3))))
    bench.port.view = half
    run(bench.reconcile(times=2))
    assert bench.status("b")["phase"] == "Pending"
    bench.status("b").update(
        startedAt="2026-01-01T00:00:01Z",
        plan=plan_to_api(half, assign((1, 2))),
        phase="Executing",
    )
    run(bench.reconcile(times=2))
    assert len(bench.port.moves) == 1, "b has begun as well, at the same moment"
    bench.port.view = view(orders((1, 3), (1, 3)))
    run(bench.reconcile(times=3))
    assert bench.status("a")["phase"] == "Completed"
    assert bench.port.moves[1:] == [{tp(0): (1, 2)}]


def test_the_end_of_a_reassignment_is_news_for_those_that_wait_for_it() -> None:
    cache = ObjectCache("PartitionReassignment", ClaimIndex(PARTITION_REASSIGNMENT))
    first = body("a", assignments=assign((1, 3)))
    first["status"] = {
        "startedAt": "2026-01-01T00:00:00Z",
        "plan": plan_to_api(view(orders((1, 2))), assign((1, 3))),
        "phase": "Executing",
    }
    cache.put(first)
    cache.put(body("b", assignments=assign((1, 2))))
    first["metadata"]["resourceVersion"] = "2"
    first["status"] = {**first["status"], "finishedAt": "2026-01-01T00:01:00Z"}
    assert ObjectKey("PartitionReassignment", "shop", "b") in cache.put(first)


def test_a_kafkatopic_that_owns_its_topic_keeps_its_number_of_replicas() -> None:
    bench = Bench(view(orders((1, 2))), body("a", assignments=assign((1, 2, 3))))
    topic: dict[str, Any] = {
        "metadata": {"name": "orders", "namespace": "shop", "uid": "t"},
        "spec": {"partitions": 1, "replicas": 2},
        "status": {"ownership": "Adopted"},
    }
    key = ObjectKey("KafkaTopic", "shop", "orders")
    bench.topics.put(key, topic)
    run(bench.reconcile(times=2))
    assert bench.status()["phase"] == "Invalid"
    assert bench.port.moves == []
    bench.topics.put(key, {**topic, "spec": {**topic["spec"], "managementPolicy": "Paused"}})
    run(bench.reconcile(times=2))
    assert bench.port.moves == [{tp(0): (1, 2, 3)}]


def test_a_refused_move_makes_room_and_is_tried_again_after_a_pause() -> None:
    bench = Bench(
        view(orders((1, 2), (1, 2))),
        body("a", assignments=assign((1, 3), (1, 3)), concurrency={"total": 1}),
    )
    bench.port.refuse = {tp(0): "no way"}
    run(bench.reconcile(times=2))
    assert bench.port.moves == [{tp(0): (1, 3)}, {tp(1): (1, 3)}]
    (again_s,) = bench.requeued
    assert again_s is not None
    assert 0 < again_s <= 0.5
    ready = next(c for c in bench.status()["conditions"] if c["type"] == "Ready")
    assert (ready["reason"], "orders-0: no way" in ready["message"]) == ("MovesRefused", True)


def test_a_process_that_is_not_the_controller_any_more_has_sent_nothing() -> None:
    bench = Bench(view(orders((1, 2))), body("a", assignments=assign((1, 3))))
    bench.port.rejected = Rejected(Reason.NOT_CONTROLLER, "not any more")
    run(bench.reconcile(times=1))
    assert not bench.moving.sent(at=0.0)
    assert bench.requeued == [0.5]


def test_the_end_is_reported_once() -> None:
    bench = Bench(view(orders((1, 2))), body("a", assignments=assign((1, 3))))
    run(bench.reconcile(times=1))
    bench.port.view = view(orders(moved(0, (1, 2), (1, 3))))
    run(bench.reconcile(times=1))
    bench.port.view = view(orders((1, 3)))
    run(bench.reconcile(times=1))
    patches = len(bench.stores["a"].patches)
    run(bench.reconcile(times=2))
    assert len(bench.stores["a"].patches) == patches
    assert bench.status()["phase"] == "Completed"
    assert [event["reason"] for event in bench.stores["a"].created] == [
        "ReassignmentPlanned",
        "ReassignmentStarted",
        "ReassignmentCompleted",
    ]
    assert bench.port.moves == [{tp(0): (1, 3)}]
