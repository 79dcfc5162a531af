"""The view: complete after a failover, replaced topic by topic, empty after resigning."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from regent.controller import events as e
from regent.controller.state.context import ControllerContext
from regent.controller.view import ClusterView, PartitionHealth, RefusedReplica, TopicView
from regent.model.active_regent import ActiveRegent, ServedResources
from regent.model.partition import TopicPartition
from regent.runtime import view_publisher
from regent.runtime.view_publisher import ViewPublisher, topic_view
from regent.zk_data import paths
from regent.zk_data.controller import encode_controller
from regent.zk_data.operations import Create
from sandbox.waiting import DEADLINE_S
from tests.support.event_loop import until_idle
from tests.unit.runtime.worlds import Process


@asynccontextmanager
async def publishing(process: Process, **options: Any) -> AsyncIterator[ViewPublisher]:
    """A publisher whose loop runs once the body awaits."""
    publisher = ViewPublisher(process.controller, **options)
    async with running(publisher):
        yield publisher


@asynccontextmanager
async def running(publisher: ViewPublisher) -> AsyncIterator[None]:
    """The loop of a publisher."""
    task = asyncio.create_task(publisher.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def told(publisher: ViewPublisher, topics: frozenset[str] | None) -> frozenset[str] | None:
    """Publish and wait for the listeners to be told."""
    news: asyncio.Future[frozenset[str] | None] = asyncio.get_running_loop().create_future()

    def listen(changed: frozenset[str] | None) -> None:
        if not news.done():
            news.set_result(changed)

    publisher.subscribe(listen)
    publisher.publish(topics)
    return await asyncio.wait_for(news, DEADLINE_S)


async def until(
    publisher: ViewPublisher, holds: Callable[[ClusterView], object], *, immediate: bool = False
) -> None:
    """Wait for a view."""
    news = asyncio.Event()
    publisher.subscribe(lambda _: news.set(), is_immediate=immediate)
    while not holds(publisher.view):
        await asyncio.wait_for(news.wait(), DEADLINE_S)
        news.clear()


async def cluster() -> Process:
    """A controller that is active on two brokers and two topics."""
    process = Process()
    for broker_id in (1, 2):
        process.add_broker(broker_id)
    process.add_topic("a", (1, 2), (2, 1))
    process.add_topic("b", (2,))
    await process.interpreter.drive(process.controller.process(e.Eligible()))
    return process


def context_of(process: Process) -> ControllerContext:
    assert process.controller.active is not None
    return process.controller.active.context


@asynccontextmanager
async def viewed(**options: Any) -> AsyncIterator[tuple[Process, ViewPublisher]]:
    """A cluster, and a publisher that has published a complete view of the cluster."""
    process = await cluster()
    async with publishing(process, **options) as publisher:
        await told(publisher, None)
        yield process, publisher


async def test_what_brokers_out_of_reach_do_not_know_is_shown_until_they_do() -> None:
    known: dict[int, frozenset[TopicPartition]] = {}
    async with viewed(uninformed=lambda: dict(known)) as (_, publisher):
        of_a, of_b = TopicPartition("a", 1), TopicPartition("b", 0)
        news: list[frozenset[str] | None] = []
        publisher.subscribe(news.append)

        def uninformed(topic: str) -> list[tuple[int, ...]]:
            return [p.uninformed for p in publisher.view.topics[topic].partitions]

        known[2] = frozenset([of_a, of_b])
        publisher.look_for_uninformed()
        await until(publisher, lambda _: uninformed("a") == [(), (2,)])
        assert uninformed("b") == [(2,)]
        publisher.look_for_uninformed()
        known[2] = frozenset([of_b])
        publisher.look_for_uninformed()
        await until(publisher, lambda _: uninformed("a") == [(), ()])
        assert uninformed("b") == [(2,)]
        del known[2]
        publisher.look_for_uninformed()
        await until(publisher, lambda _: uninformed("b") == [()])
        assert news == [frozenset("ab"), frozenset("a"), frozenset("b")]


async def test_brokers_out_of_reach_are_shown_also_if_they_know_everything() -> None:
    known: dict[int, frozenset[TopicPartition]] = {}
    async with viewed(uninformed=lambda: dict(known)) as (_, publisher):
        news: list[frozenset[str] | None] = []
        publisher.subscribe(news.append)
        known[2] = frozenset()
        publisher.look_for_uninformed()
        await until(publisher, lambda _: news == [frozenset()])
        assert publisher.view.unreached == (2,)
        publisher.look_for_uninformed()
        del known[2]
        publisher.look_for_uninformed()
        await until(publisher, lambda _: news == [frozenset(), frozenset()])
        assert not publisher.view.unreached


async def test_brokers_that_do_not_answer_are_shown_until_they_do() -> None:
    silent = [2, 1]
    async with viewed(silent=lambda: list(silent)) as (_, publisher):
        assert publisher.view.silent == (1, 2)
        news: list[frozenset[str] | None] = []
        publisher.subscribe(news.append)
        silent.clear()
        publisher.look_for_uninformed()
        await until(publisher, lambda _: news == [frozenset()])
        assert not publisher.view.silent


async def test_a_process_that_is_not_the_controller_has_an_empty_view() -> None:
    async with publishing(Process()) as publisher:
        assert await told(publisher, frozenset({"a"})) is None
        assert not publisher.view.is_active
        assert publisher.view.topics == {}


async def test_another_regent_in_charge_is_news_for_all_resources() -> None:
    process = Process()
    await process.interpreter.drive(process.controller.process(e.Startup()))
    served = ServedResources("kafka/regent")
    content = encode_controller(7, 0, election_path="/regent/election", resources=served)
    process.outsider.multi([Create(paths.CONTROLLER, content)])
    await process.interpreter.drive(process.controller.process(e.ControllerChange()))
    publisher = ViewPublisher(process.controller)
    news: list[frozenset[str] | None] = []
    publisher.subscribe(news.append)
    publisher.publish(frozenset())
    assert publisher.view.active_regent == ActiveRegent(7, served)
    assert news == [None]
    publisher.publish(frozenset())
    assert news == [None]


async def test_failing_listener_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: frozenset[str] | None) -> None:
        raise ZeroDivisionError

    async with publishing(await cluster()) as publisher:
        publisher.subscribe(fail)
        assert await told(publisher, None) is None
        assert await told(publisher, frozenset({"b"})) == frozenset({"b"})
    assert caplog.text.count("A listener of the view failed") >= 2


async def test_after_a_failover_the_view_is_complete() -> None:
    async with publishing(await cluster()) as publisher:
        assert await told(publisher, None) is None
        view = publisher.view
        assert view.is_active
        assert view.is_complete
        assert view.controller_epoch == 1
        assert set(view.brokers) == {1, 2}
        topic = view.topics["a"]
        assert [p.replicas for p in topic.partitions] == [(1, 2), (2, 1)]
        assert [p.leader for p in topic.partitions] == [1, 2]
        assert [p.state for p in topic.partitions] == [PartitionHealth.ONLINE] * 2
        assert (topic.replication_factor, topic.leaderless, topic.under_replicated) == (2, 0, 0)


async def test_a_changed_topic_is_replaced_and_the_others_are_kept() -> None:
    async with viewed() as (process, publisher):
        before = publisher.view
        process.add_topic("c", (1,))
        await process.interpreter.drive(process.controller.process(e.TopicChange()))
        assert await told(publisher, frozenset({"c"})) == frozenset({"c"})
        assert set(publisher.view.topics) == {"a", "b", "c"}
        assert publisher.view.topics["a"] is before.topics["a"]
        assert set(before.topics) == {"a", "b"}


async def test_readable_topic_is_shown_before_it_is_no_longer_unreadable() -> None:
    """Else there would be a moment in which it seems not to exist."""
    process = await cluster()
    context = context_of(process)
    state = context.cluster
    state.note_unreadable({"c": "not JSON"})
    async with publishing(process) as publisher:
        await told(publisher, None)
        assert not publisher.view.knows("c")
        state.note_unreadable({"c": None})
        state.add_topic("c", None)
        publisher.publish(frozenset({"c"}))
        assert "c" in publisher.view.unreadable_topics  # as long as it is not described
        await until(publisher, lambda view: view.knows("c"))
        assert "c" in publisher.view.topics


@pytest.mark.parametrize("forgets", [True, False], ids=["a client", "a controller"])
async def test_unreadable_topic_is_not_gone(monkeypatch: pytest.MonkeyPatch, forgets: bool) -> None:
    process = await cluster()
    context = context_of(process)
    state = context.cluster
    async with publishing(process) as publisher:
        await told(publisher, None)

        def describe(*given: Any) -> TopicView | None:
            if forgets:
                state.remove_topic("a")
            state.note_unreadable({"a": "not JSON"})
            return topic_view(*given)

        monkeypatch.setattr(view_publisher, "topic_view", describe)
        await told(publisher, frozenset({"a"}))
        assert ("a" in publisher.view.topics) is not forgets
        assert not publisher.view.knows("a")


async def test_resigning_empties_the_view_at_once() -> None:
    async with viewed() as (process, publisher):
        process.controller.life.active = None
        publisher.reset()
        assert not publisher.view.is_active
        assert publisher.view.topics == {}
        assert publisher.view.controller_epoch == 1


async def test_a_term_that_follows_at_once_is_not_complete_before_it_has_loaded() -> None:
    """All its topics would seem to have been deleted, and all brokers to be drained."""
    process, loading = await cluster(), Process()
    await loading.interpreter.drive(loading.controller.process(e.Eligible()))
    async with publishing(process) as publisher:
        await told(publisher, None)
        process.controller.life.active = None
        publisher.reset()
        publisher.publish(None)  # in the same moment, before the view of nothing was made
        process.controller.life.active = loading.controller.active
        await told(publisher, frozenset({"a"}))
        assert publisher.view.is_active
        assert not publisher.view.is_complete
        await told(publisher, None)
        assert publisher.view.is_complete


async def test_changes_that_keep_coming_are_described_together_after_a_pause() -> None:
    process = await cluster()
    described: list[frozenset[str] | None] = []
    pauses: list[float] = []
    begun, over = asyncio.Event(), asyncio.Event()

    async def pause(seconds: float) -> None:
        if seconds == view_publisher.BEFORE_EVERYTHING_S:
            return
        pauses.append(seconds)
        begun.set()
        await over.wait()

    publisher = ViewPublisher(process.controller, pause=pause)
    publisher.subscribe(described.append)
    async with running(publisher):
        publisher.publish(None)
        await asyncio.wait_for(begun.wait(), DEADLINE_S)
        for topics in ({"a"}, {"b"}, {"a"}):
            publisher.publish(frozenset(topics))
            await until_idle()
        assert described == [None]
        begun.clear()
        over.set()
        await asyncio.wait_for(begun.wait(), DEADLINE_S)
        assert described == [None, frozenset({"a", "b"})]
        assert all(0 <= each <= view_publisher.LONGEST_PAUSE_S for each in pauses)


@pytest.mark.parametrize(("still_waiting", "waits"), [(0, 1), (1, 2), (100, 3)])
async def test_a_large_view_waits_until_brokers_are_informed_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, still_waiting: int, waits: int
) -> None:
    """One that does not answer keeps nobody from the view."""
    monkeypatch.setattr(view_publisher, "PARTITIONS_PER_WAIT", 2)
    process = await cluster()
    process.add_topic("c", (1,), (2,))
    await process.interpreter.drive(process.controller.process(e.TopicChange()))
    context = context_of(process)
    assert context.cluster.partition_count // 2 == 2
    questions = iter([False] * still_waiting)
    pauses: list[float] = []
    described = asyncio.Event()

    async def pause(seconds: float) -> None:
        if not described.is_set():
            pauses.append(seconds)

    publisher = ViewPublisher(
        process.controller, pause=pause, are_brokers_informed=lambda: next(questions, True)
    )
    publisher.subscribe(lambda _: described.set())
    async with running(publisher):
        publisher.publish(None)
        await asyncio.wait_for(described.wait(), DEADLINE_S)
        assert pauses == [view_publisher.BEFORE_EVERYTHING_S] * waits


async def test_a_refused_replica_is_in_the_view_of_its_topic() -> None:
    process = await cluster()
    context = context_of(process)
    context.refusals.update(2, refused={TopicPartition("a", 1): "SOME_ERROR"}, done=())
    async with publishing(process) as publisher:
        await told(publisher, None)
        assert publisher.view.topics["a"].refused == (RefusedReplica("a", 1, 2, "SOME_ERROR"),)
        assert publisher.view.topics["b"].refused == ()


async def test_replicas_on_failed_log_directories_are_in_the_view_until_they_are_back() -> None:
    process = await cluster()
    context = context_of(process)
    lost = TopicPartition("a", 1)
    async with publishing(process) as publisher:
        await told(publisher, None)
        context.change_replicas_on_offline_dirs(2, failed=[lost], recovered=())
        assert await told(publisher, frozenset()) == frozenset({"a"})
        assert publisher.view.topics["a"].partitions[1].on_failed_dirs == (2,)
        context.set_replicas_on_offline_dirs(2, ())
        assert await told(publisher, frozenset()) == frozenset({"a"})
        assert not publisher.view.topics["a"].partitions[1].on_failed_dirs


async def test_after_a_broker_change_only_topics_that_it_concerns_are_made_anew() -> None:
    process = await cluster()
    process.add_topic("c", (1,))
    await process.interpreter.drive(process.controller.process(e.TopicChange()))
    async with publishing(process) as publisher:
        await told(publisher, None)
        before = publisher.view
        process.remove_broker(2)
        await process.interpreter.drive(process.controller.process(e.BrokerChange()))
        assert await told(publisher, frozenset()) == frozenset({"a", "b"})
        after = publisher.view
        assert set(after.brokers) == {1}
        assert set(before.brokers) == {1, 2}
        assert after.topics["c"] is before.topics["c"]
        assert after.topics["b"].leaderless == 1
        assert before.topics["b"].leaderless == 0


async def test_what_changed_in_the_context_is_published_even_if_nobody_names_it() -> None:
    async with viewed() as (process, publisher):
        context_of(process).queue_topic_for_deletion("b")
        assert await told(publisher, frozenset({"a"})) == frozenset({"a", "b"})
        assert publisher.view.topics["b"].is_being_deleted


async def test_loading_term_is_incomplete_after_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise topics that are not loaded yet would look deleted."""

    def fail(*_: object) -> None:
        raise MemoryError("no room")

    process = await cluster()
    publisher = ViewPublisher(process.controller)
    with monkeypatch.context() as patch:
        patch.setattr(view_publisher, "topic_view", fail)
        publisher.publish(frozenset("a"))
        with pytest.raises(MemoryError):
            await publisher.run()
    async with running(publisher):
        publisher.publish(frozenset("b"))
        await until(publisher, lambda view: "b" in view.topics, immediate=True)
        assert not publisher.view.is_complete
        await told(publisher, None)
        assert publisher.view.is_complete
