"""When brokers are asked whether a topic is in use, and what their answers amount to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from regent.controller.view import ClusterView, TopicView
from regent.kube.object_cache import ObjectKey
from regent.kube.usage_watch import UsageWatch
from regent.model.cluster import Broker
from regent.model.errors import BrokerQuestionError
from regent.reconcile.topics.usage import ASKED_AGAIN_S, FRESH_S, TopicUsage, UsageQuestion
from tests.support.present import present
from tests.unit.kube.jumping_clock import jumping, run
from tests.unit.reconcile.requests import partition, view

ORDERS = TopicView("orders", None, (partition(0, (1, 2)), partition(1, (2, 1))), czxid=7)
OFFSETS = TopicView("__consumer_offsets", None, (partition(0, (1, 2)),), czxid=3)
SEEN = view(ORDERS, OFFSETS, brokers=3)
QUESTION = UsageQuestion("orders", 7, 2, 3600)
KEY = ObjectKey("KafkaTopic", "shop", "orders")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Records:
    """Brokers with records and consumer groups."""

    def __init__(self) -> None:
        self.newest_ms: dict[int, int] = {}
        self.groups: dict[int, dict[str, str]] = {}
        self.silent: dict[int, str] = {}
        self.asked: list[tuple[str, int]] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.later: ClusterView | None = None

    async def records_since(
        self, broker: Broker, topic: str, partitions: Collection[int], *, since_ms: int
    ) -> Collection[int]:
        self._hear("records", broker)
        return [p for p in partitions if self.newest_ms.get(p, -1) >= since_ms]

    async def groups_using(
        self, broker: Broker, topic: str, partitions: Collection[int]
    ) -> Mapping[str, str]:
        self._hear("groups", broker)
        self.meanwhile()
        return self.groups.get(broker.broker_id, {})

    def _hear(self, what: str, broker: Broker) -> None:
        self.asked.append((what, broker.broker_id))
        if broker.broker_id in self.silent:
            raise BrokerQuestionError(self.silent[broker.broker_id])


class Asking:
    def __init__(
        self,
        records: Records | None,
        seen: ClusterView = SEEN,
        clocks: Sequence[Callable[[], datetime | None]] = (lambda: NOW,),
    ) -> None:
        self.view = seen
        self._news: asyncio.Queue[frozenset[ObjectKey]] = asyncio.Queue()
        self.watch = UsageWatch(
            records, view=lambda: self.view, clocks=clocks, on_news=self._news.put_nowait
        )

    def look(self, question: UsageQuestion = QUESTION) -> TopicUsage | None:
        return self.watch.ask(KEY, question, at=asyncio.get_running_loop().time())

    async def answer(self) -> TopicUsage:
        """What is known when that is news for the resource."""
        assert await self._news.get() == {KEY}
        return present(self.look())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run())
        try:
            yield
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


def asked_once(
    records: Records | None,
    seen: ClusterView = SEEN,
    clocks: Sequence[Callable[[], datetime | None]] = (lambda: NOW,),
) -> TopicUsage:
    async def story() -> TopicUsage:
        asking = Asking(records, seen, clocks)
        if records is not None:
            records.meanwhile = lambda: _change(asking, records)
        async with asking.running():
            assert asking.look() is None, "nobody was asked yet"
            return await asking.answer()

    return run(story())


def _change(asking: Asking, records: Records) -> None:
    """What a test has put there becomes the view."""
    if records.later is not None:
        asking.view = records.later


def test_leaders_are_asked_for_records_and_all_brokers_for_groups() -> None:
    records = Records()
    assert asked_once(records).protection is None
    assert sorted(records.asked) == [
        ("groups", 1),
        ("groups", 2),
        ("groups", 3),
        ("records", 1),
        ("records", 2),
    ]


def test_records_count_from_the_time_on_that_the_resource_says() -> None:
    records = Records()
    edge = int(NOW.timestamp() * 1000) - 3_600_000
    records.newest_ms = {0: edge - 1, 1: edge}
    assert asked_once(records).recent == (1,)


@pytest.mark.parametrize(
    "clocks",
    [
        (lambda: NOW + timedelta(hours=2), lambda: NOW),
        (lambda: NOW, lambda: NOW + timedelta(hours=2)),
        (lambda: NOW, lambda: None),
    ],
)
def test_a_clock_that_is_ahead_makes_no_topic_idle(
    clocks: Sequence[Callable[[], datetime | None]],
) -> None:
    records = Records()
    records.newest_ms = {0: int(NOW.timestamp() * 1000)}
    assert asked_once(records, clocks=clocks).recent == (0,)


def test_whoever_does_not_answer_leaves_it_unknown() -> None:
    records = Records()
    records.silent = {2: "timed out"}
    assert asked_once(records).unknown == ("broker 2: timed out",)
    assert asked_once(None).unknown == ("brokers are not asked",)
    dead = msgspec.structs.replace(SEEN, brokers={1: SEEN.brokers[1]})
    assert asked_once(Records(), dead).unknown == ("broker 2 is not alive",)


@pytest.mark.parametrize(
    "changed",
    [
        view(
            ORDERS, msgspec.structs.replace(OFFSETS, partitions=(partition(0, (1, 2), leader=2),))
        ),
        view(msgspec.structs.replace(ORDERS, czxid=9), OFFSETS),
        view(OFFSETS),
        view(active=False),
    ],
)
def test_what_changes_while_brokers_are_asked_leaves_it_unknown(changed: ClusterView) -> None:
    records = Records()
    records.later = changed
    assert asked_once(records).unknown == ("leaders have changed while brokers were asked",)


@pytest.mark.parametrize(
    "seen",
    [view(OFFSETS), view(msgspec.structs.replace(ORDERS, czxid=9)), view(ORDERS, active=False)],
)
def test_of_another_topic_nothing_is_known(seen: ClusterView) -> None:
    records = Records()
    assert asked_once(records, seen).unknown == ("the topic is another one now",)
    assert records.asked == []


@jumping
async def test_brokers_are_asked_again_when_the_answer_is_old_and_not_before() -> None:
    records = Records()
    records.groups = {1: {"billing": "subscribed"}}
    asking = Asking(records)
    loop = asyncio.get_running_loop()
    async with asking.running():
        asking.look()
        first = await asking.answer()
        count = len(records.asked)
        assert asking.watch.ask(KEY, QUESTION, at=first.at + ASKED_AGAIN_S - 1) is first
        records.groups = {}
        at = first.at + ASKED_AGAIN_S
        assert asking.watch.ask(KEY, QUESTION, at=at) is first
        second = await asking.answer()
        assert len(records.asked) == 2 * count
        assert (first.protection is None, second.protection) == (False, None)
        assert asking.watch.ask(KEY, QUESTION, at=second.at + FRESH_S - 1) is second
        assert not second.is_outdated(at=loop.time())
        assert second.is_outdated(at=second.at + FRESH_S)


@jumping
async def test_what_is_asked_for_while_brokers_are_asked_is_not_asked_again() -> None:
    records = Records()
    asking = Asking(records)
    records.meanwhile = lambda: _look(asking)
    async with asking.running():
        asking.look()
        await asking.answer()
    assert len(records.asked) == 5


def _look(asking: Asking) -> None:
    assert asking.look() is None
