"""When brokers are asked how far copies are, and what becomes of their answers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Collection
from datetime import UTC, datetime

import pytest

from regent.controller.view import ClusterView
from regent.kube.copy_watch import INTERVAL_S, CopyWatch
from regent.kube.object_cache import ObjectKey
from regent.model.cluster import Broker
from regent.model.errors import BrokerQuestionError
from regent.model.partition import TopicPartition
from regent.model.replica_sizes import ReplicaSizes
from regent.reconcile.reassignments.copies import CopyFigures, UnknownFigures, figures
from regent.reconcile.reassignments.move_plan import Move, MovePlan
from tests.unit.kube.jumping_clock import jumping, run
from tests.unit.reconcile.reassignments.reassigning import moved, orders, tp
from tests.unit.reconcile.requests import view

MOVING = view(orders(moved(0, (1, 2), (1, 3)), moved(1, (1, 2), (1, 3))))
KEYS = tuple(ObjectKey("PartitionReassignment", "shop", name) for name in ("a", "b"))
PLANS = tuple(
    MovePlan.of("cluster-a", [Move("orders", index, 7, (1, 2), (1, 3))]) for index in (0, 1)
)


class Disks:
    """Brokers whose replicas have sizes. Answers as a broker does: about what it was asked."""

    def __init__(self) -> None:
        self.sizes: dict[int, dict[TopicPartition, int]] = {
            1: {tp(0): 1000, tp(1): 600},
            3: {tp(0): 100, tp(1): 0},
        }
        self.failed: dict[int, tuple[str, ...]] = {}
        self.asked: list[tuple[float, int, frozenset[TopicPartition]]] = []

    async def replica_sizes(
        self, broker: Broker, partitions: Collection[TopicPartition]
    ) -> ReplicaSizes:
        at = asyncio.get_running_loop().time()
        self.asked.append((at, broker.broker_id, frozenset(partitions)))
        held = self.sizes.get(broker.broker_id)
        if held is None:
            raise BrokerQuestionError("timed out")
        sizes = {each: held[each] for each in partitions if each in held}
        return ReplicaSizes(sizes, self.failed.get(broker.broker_id, ()))


class Watching:
    """A watch, and the resources that it tells of news: each looks again, as if reconciled."""

    def __init__(self, disks: Disks, seen: ClusterView = MOVING) -> None:
        self.view = seen
        self.followers = dict(zip(KEYS, PLANS, strict=True))
        self.rounds = 0
        self._news = asyncio.Event()
        self.watch = CopyWatch(
            disks,
            view=lambda: self.view,
            now=lambda: datetime(2026, 5, 1, 12, tzinfo=UTC),
            on_news=self._on_news,
        )

    def follow(self) -> None:
        moving = {
            tp(each.partition)
            for each in self.view.topics["orders"].partitions
            if each.is_being_reassigned
        }
        for key, plan in self.followers.items():
            self.watch.follow(key, plan, moving)

    def _on_news(self, keys: frozenset[ObjectKey]) -> None:
        self.rounds += 1
        self._news.set()
        self.follow()

    async def rounds_over(self, count: int) -> None:
        while self.rounds < count:
            self._news.clear()
            await self._news.wait()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run())
        try:
            yield
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


@jumping
async def test_one_request_a_broker_for_all_resources_at_most_every_ten_seconds() -> None:
    disks = Disks()
    watching = Watching(disks)
    async with watching.running():
        for _ in range(5):
            watching.follow()
        await watching.rounds_over(3)
    both = frozenset({tp(0), tp(1)})
    times = sorted({at for at, *_ in disks.asked})
    assert [(b, asked) for _, b, asked in disks.asked] == [(1, both), (3, both)] * 3
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [INTERVAL_S] * 2
    assert figures(PLANS[0], MOVING, watching.watch.ledger) == CopyFigures(1000, 100, 0)


@jumping
async def test_a_resource_that_does_not_look_any_more_is_forgotten() -> None:
    disks = Disks()
    watching = Watching(disks)
    async with watching.running():
        watching.follow()
        await watching.rounds_over(1)
        watching.followers.pop(KEYS[0])  # deleted: it was asked for once more
        await watching.rounds_over(3)
        assert {asked for _, _, asked in disks.asked[4:]} == {frozenset({tp(1)})}


def test_nobody_is_asked_any_more_when_nothing_moves() -> None:
    async def story() -> None:
        watching = Watching(Disks())
        async with watching.running():
            watching.follow()
            await watching.rounds_over(1)
            watching.view = view(orders((1, 3), (1, 3)))
            await watching.rounds_over(2)
            await watching.rounds_over(3)

    with pytest.raises(AssertionError, match="everybody waits, and nothing will ever happen"):
        run(story())


@jumping
async def test_why_a_broker_does_not_say_is_known() -> None:
    disks = Disks()
    watching = Watching(disks)
    why = []
    async with watching.running():
        del disks.sizes[3]
        watching.follow()
        await watching.rounds_over(1)
        why.append(figures(PLANS[0], MOVING, watching.watch.ledger))
        disks.sizes[3] = {}
        disks.failed[3] = ("/data-1",)
        await watching.rounds_over(2)
        why.append(figures(PLANS[0], MOVING, watching.watch.ledger))
        watching.view = view(*MOVING.topics.values(), brokers=2)
        await watching.rounds_over(3)
        why.append(figures(PLANS[0], MOVING, watching.watch.ledger))
    assert why == [
        UnknownFigures("broker 3 does not say: timed out"),
        UnknownFigures("broker 3 does not say: log directories have failed: ['/data-1']"),
        UnknownFigures("broker 3 does not say: it is not alive"),
    ]


@jumping
async def test_outside_a_term_nobody_is_asked() -> None:
    disks = Disks()
    watching = Watching(disks)
    async with watching.running():
        watching.follow()
        watching.view = view(*MOVING.topics.values(), active=False)
        await watching.rounds_over(1)
    assert not disks.asked
