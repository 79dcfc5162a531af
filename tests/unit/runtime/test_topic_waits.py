"""Requests that wait for topics."""

from __future__ import annotations

import asyncio

from regent.controller.view import ClusterView, TopicView
from regent.runtime.topic_waits import MAX_WAITING, TopicWaits

ACTIVE = ClusterView(is_active=True, is_complete=True)


class Views:
    """A view that a test changes."""

    def __init__(self) -> None:
        self.view = ACTIVE
        self.waits = TopicWaits(lambda: self.view)

    def show(self, *topics: str) -> None:
        before = self.view.topics
        views = {name: TopicView(name, None, ()) for name in topics}
        self.view = ClusterView(is_active=True, is_complete=True, topics=views)
        self.waits.view_changed(frozenset({*before, *topics}))

    def hide(self, topic: str) -> None:
        self.view = ClusterView(
            is_active=True, is_complete=True, unreadable_topics={topic: "not JSON"}
        )
        self.waits.view_changed(frozenset({topic}))

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
    await asyncio.sleep(0)
    views.show("a")
    await asyncio.sleep(0)
    assert not waiting.done()
    views.show("a", "b", "c")
    assert await waiting == ["a", "b"]


async def test_what_is_there_already_is_not_waited_for() -> None:
    views = Views()
    views.show("a")
    assert await views.wait("a", timeout_s=0.0) == ["a"]


async def test_time_that_is_out_gives_what_is_there() -> None:
    views = Views()
    views.show("a")
    assert await views.wait("a", "b", timeout_s=0.01) == ["a"]


async def test_a_process_that_ceases_to_be_the_controller_lets_nobody_wait() -> None:
    views = Views()
    waiting = views.wait("a")
    await asyncio.sleep(0)
    views.resign()
    assert await waiting == []
    assert await views.wait("b") == []


async def test_a_view_that_is_not_complete_says_nothing() -> None:
    views = Views()
    views.view = ClusterView(is_active=True, is_complete=False)
    gone = asyncio.create_task(
        views.waits.settled(["a"], lambda _, topic: topic is None, timeout_s=60.0)
    )
    await asyncio.sleep(0)
    assert not gone.done()
    views.view = ACTIVE
    views.waits.view_changed(None)
    assert list(await gone) == ["a"]


async def test_only_so_many_wait() -> None:
    views = Views()
    waiting = [views.wait("a") for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    assert await views.wait("a") == []
    views.show("a")
    assert await asyncio.gather(*waiting) == [["a"]] * MAX_WAITING


async def test_who_stops_waiting_leaves_nothing() -> None:
    views = Views()
    waiting = views.wait("a")
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    again = [views.wait("a") for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    views.show("a")
    assert await asyncio.gather(*again) == [["a"]] * MAX_WAITING


async def test_a_topic_that_cannot_be_read_is_not_gone() -> None:
    views = Views()
    views.show("a")
    gone = asyncio.create_task(
        views.waits.settled(("a",), lambda _, topic: topic is None, timeout_s=60.0)
    )
    await asyncio.sleep(0)
    views.hide("a")
    await asyncio.sleep(0)
    assert not gone.done()
    views.view = ACTIVE
    views.waits.view_changed(frozenset({"a"}))
    assert list(await gone) == ["a"]
