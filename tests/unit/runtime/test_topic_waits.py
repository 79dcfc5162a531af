"""Requests that wait for topics."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from regent.controller.view import ClusterView, TopicView
from regent.runtime.topic_waits import MAX_WAITING, TopicWaits
from tests.support.event_loop import until_idle
from tests.unit.runtime.worlds import KeptChannels

ACTIVE = ClusterView(is_active=True, is_complete=True)


class Channels(KeptChannels):
    """Channels to brokers whose acknowledgements a test gives.

    Attributes:
        last_batch: The newest batch that was sent.
        by_broker: The newest batch that each broker has acknowledged.
    """

    last_batch = 0

    def __init__(self) -> None:
        super().__init__()
        self.by_broker = {1: 0}

    def acknowledged(self) -> Mapping[int, int]:
        return self.by_broker


class Views:
    """A view that a test changes, and brokers that acknowledge what the test says."""

    def __init__(self) -> None:
        self.view = ACTIVE
        self.channels = Channels()
        self.waits = TopicWaits(lambda: self.view, self.channels)

    def acknowledge(self, **batches: int) -> None:
        """Brokers acknowledge batches: ``b1=3``."""
        self.channels.by_broker |= {int(name[1:]): n for name, n in batches.items()}
        self.waits.metadata_acknowledged()

    def show(self, *topics: str, batch: int = 0) -> None:
        before = self.view.topics
        views = {name: TopicView(name, None, (), batch=batch) for name in topics}
        self.view = ClusterView(is_active=True, is_complete=True, topics=views)
        self.waits.view_changed(frozenset({*before, *topics}))

    def resign(self) -> None:
        self.view = ClusterView()
        self.waits.view_changed(None)

    def wait(self, *topics: str, timeout_s: float = 60.0) -> asyncio.Task[list[str]]:
        """Wait until topics exist."""

        async def settled() -> list[str]:
            found = await self.waits.settled(
                topics, lambda _, topic: topic is not None, timeout_s=timeout_s
            )
            return list(found)

        return asyncio.create_task(settled())


async def test_who_waits_is_woken_by_the_last_of_its_topics() -> None:
    views = Views()
    waiting = views.wait("a", "b")
    await until_idle()
    views.show("a")
    await until_idle()
    assert not waiting.done()
    views.show("a", "b", "c")
    assert await waiting == ["a", "b"]


async def test_time_that_is_out_gives_what_is_there() -> None:
    views = Views()
    views.show("a")
    assert await views.wait("a", "b", timeout_s=0.01) == ["a"]


async def test_a_process_that_ceases_to_be_the_controller_lets_nobody_wait() -> None:
    views = Views()
    waiting = views.wait("a")
    await until_idle()
    views.resign()
    assert await waiting == []
    assert await views.wait("b") == []


async def test_a_view_that_is_not_complete_says_nothing() -> None:
    views = Views()
    views.view = ClusterView(is_active=True, is_complete=False)
    gone = asyncio.create_task(
        views.waits.settled(["a"], lambda _, topic: topic is None, timeout_s=60.0)
    )
    await until_idle()
    assert not gone.done()
    views.view = ACTIVE
    views.waits.view_changed(None)
    assert list(await gone) == ["a"]


async def test_only_so_many_wait() -> None:
    views = Views()
    waiting = [views.wait("a") for _ in range(MAX_WAITING)]
    await until_idle()
    assert await views.wait("a") == []
    views.show("a")
    assert await asyncio.gather(*waiting) == [["a"]] * MAX_WAITING


async def test_answer_waits_for_the_first_broker_that_acknowledges_what_was_sent() -> None:
    views = Views()
    views.channels.by_broker = {1: -1, 2: 4, 3: 4}
    views.channels.last_batch = 5
    views.show("a", batch=5)
    waiting = views.wait("a")
    await until_idle()
    assert not waiting.done()
    views.acknowledge(b2=5)
    assert await waiting == ["a"]
    assert sorted(views.waits.lagging_brokers()) == [1, 3]
    views.acknowledge(b1=5, b3=6)
    assert views.waits.lagging_brokers() == []


async def test_answer_waits_for_the_batch_that_is_not_sent_yet() -> None:
    """The view shows a leader before the brokers are sent the leader."""
    views = Views()
    views.show("a", batch=1)
    waiting = views.wait("a")
    views.acknowledge(b1=0)
    await until_idle()
    assert not waiting.done()
    views.channels.last_batch = 1
    views.acknowledge(b1=1)
    assert await waiting == ["a"]


async def test_answer_is_that_time_is_out_for_topics_that_no_broker_has_acknowledged() -> None:
    views = Views()
    views.show("a")
    waiting = views.wait("a", "b", timeout_s=0.01)
    await until_idle()
    views.channels.last_batch = 1
    views.show("a", "b")
    assert await waiting == ["a"]
    assert not await views.waits.propagated(timeout_s=0.01)


@pytest.mark.parametrize("by_broker", [{}, {1: -1}])
async def test_topics_are_not_awaited_without_acknowledgement(by_broker: dict[int, int]) -> None:
    views = Views()
    views.channels.by_broker = by_broker
    assert await views.wait() == []


async def test_propagated_when_a_broker_has_acknowledged_what_was_sent_before() -> None:
    views = Views()
    views.channels.last_batch = 3
    waiting = asyncio.create_task(views.waits.propagated(timeout_s=60.0))
    await until_idle()
    views.channels.last_batch = 4
    views.acknowledge(b1=2, b2=1)
    await until_idle()
    assert not waiting.done()
    views.acknowledge(b2=3)
    assert await waiting
    assert views.waits.lagging_brokers() == [1]
    assert await views.waits.propagated(timeout_s=0) is False


async def test_no_broker_lags_when_all_brokers_do() -> None:
    """A new term, or a restart of all brokers: requests are not sent from one to the next."""
    views = Views()
    views.channels.last_batch = 3
    views.acknowledge(b1=3)
    assert await views.waits.propagated(timeout_s=60.0)
    views.channels.by_broker = {1: -1, 2: -1}
    assert views.waits.lagging_brokers() == ()


async def test_answer_waits_for_no_batch_that_is_not_sent_in_the_end() -> None:
    views = Views()
    views.show("a", batch=1)
    waiting = views.wait("a")
    await until_idle()
    assert not waiting.done()
    views.show("a", batch=0)
    assert await waiting == ["a"]


async def test_not_propagated_when_the_process_ceases_to_be_the_controller() -> None:
    views = Views()
    views.channels.last_batch = 3
    waiting = asyncio.create_task(views.waits.propagated(timeout_s=60.0))
    await until_idle()
    views.resign()
    assert not await waiting
