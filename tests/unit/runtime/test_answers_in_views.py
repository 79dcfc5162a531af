"""What brokers have answered of leadership, as views show it and as it is reported."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from regent.controller.view import TopicView
from regent.runtime import view_publisher
from regent.runtime.awaited_answers import unanswered_leaders
from regent.runtime.view_publisher import ViewPublisher
from tests.unit.runtime.test_view_publisher import cluster, publishing, told, until


class Brokers:
    """What they have been sent, and have not answered."""

    def __init__(self) -> None:
        self.last_batch = 0
        self.unanswered: dict[int, int] = {}

    def tell(self, *broker_ids: int) -> None:
        self.last_batch += 1
        for broker_id in broker_ids:
            self.unanswered.setdefault(broker_id, self.last_batch)


class Ear:
    """Hears of topics."""

    def __init__(self, publisher: ViewPublisher, *, is_immediate: bool = False) -> None:
        self.heard: list[frozenset[str] | None] = []
        publisher.subscribe(self.heard.append, is_immediate=is_immediate)


@contextlib.asynccontextmanager
async def publishing_of(
    brokers: Brokers, *, last_batch: Callable[[], int] | None = None
) -> AsyncIterator[ViewPublisher]:
    async with publishing(
        await cluster(),
        last_batch=last_batch or (lambda: brokers.last_batch),
        unanswered=lambda: dict(brokers.unanswered),
    ) as publisher:
        yield publisher


def awaited(publisher: ViewPublisher, name: str) -> tuple[int, ...]:
    return unanswered_leaders(publisher.view.topics[name], publisher.view.unanswered)


async def test_topic_is_reported_with_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[str] = []
    make = view_publisher.topic_view

    def describe(context: object, name: str, *rest: object) -> TopicView | None:
        described.append(name)
        return make(context, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("regent.runtime.awaited_answers.HELD_S", 600.0)
    brokers = Brokers()
    async with publishing_of(brokers) as publisher:
        await told(publisher, None)
        monkeypatch.setattr(view_publisher, "topic_view", describe)
        patient, immediate = Ear(publisher), Ear(publisher, is_immediate=True)
        brokers.tell(1, 2)
        publisher.publish(frozenset({"a", "b"}))
        await until(publisher, lambda view: view.topics["a"].batch == 1, immediate=True)
        assert awaited(publisher, "a") == (1, 2)
        assert awaited(publisher, "b") == (2,)
        assert (immediate.heard, patient.heard) == ([frozenset("ab")], [])
        brokers.tell(1)
        del brokers.unanswered[2]
        publisher.look_for_answers()
        await until(publisher, lambda _: patient.heard)
        assert patient.heard == [frozenset("b")]
        assert awaited(publisher, "a") == (1,)
        brokers.unanswered[1] = 2
        publisher.look_for_answers()
        await until(publisher, lambda _: len(patient.heard) > 1)
        assert patient.heard == [frozenset("b"), frozenset("a")]
        assert awaited(publisher, "a") == ()
        assert described == ["a", "b"]


async def test_what_is_answered_while_topics_are_described_is_shown_without_another_event() -> None:
    """Nothing may follow that has anybody look for answers."""
    brokers = Brokers()

    def last_batch() -> int:
        if brokers.unanswered:
            brokers.unanswered.clear()
            publisher.look_for_answers()  # the controller has read the answer
        return brokers.last_batch

    async with publishing_of(brokers, last_batch=last_batch) as publisher:
        publisher.publish(None)
        brokers.tell(1)
        ear = Ear(publisher)
        await until(publisher, lambda _: ear.heard)
        await until(publisher, lambda _: awaited(publisher, "a") == ())
