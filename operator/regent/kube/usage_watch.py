"""Finds out whether topics are in use whose resources were deleted and protect them.

A resource that waits asks again a minute after each answer: what has changed, no event says. All
brokers are asked about one topic at the same time, and about one topic after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from regent.controller.view import ClusterView, TopicView
from regent.kube.object_cache import ObjectKey
from regent.model.cluster import Broker
from regent.model.errors import BrokerQuestionError
from regent.reconcile.topics.usage import (
    ASKED_AGAIN_S,
    TopicUsage,
    UsageQuestion,
    blind_spots,
    coordinators,
    leaders_of,
)
from regent.runtime.ports import TopicUsagePort

_KEPT_S: Final = 10 * ASKED_AGAIN_S
"""For so long an answer is remembered that nobody asks for any more."""


class UsageWatch:
    """Knows which topics are in use, of those that somebody asks for.

    Args:
        broker_questions: Asks brokers; None: nobody is asked, and nothing is known.
        view: Returns the newest view of the cluster.
        clocks: Each returns the present, aware; None: it does not know. The earliest counts: by a
            clock that is ahead, what was just written would be old, and its topic would be deleted.
        on_news: Called with the resources for which answers are news.
    """

    def __init__(
        self,
        broker_questions: TopicUsagePort | None,
        *,
        view: Callable[[], ClusterView],
        clocks: Iterable[Callable[[], datetime | None]],
        on_news: Callable[[frozenset[ObjectKey]], None],
    ) -> None:
        self._questions = broker_questions
        self._view = view
        self._clocks = tuple(clocks)
        self._on_news = on_news
        self._known: dict[UsageQuestion, TopicUsage] = {}
        self._wanted: dict[UsageQuestion, dict[ObjectKey, None]] = {}
        self._asking: dict[UsageQuestion, dict[ObjectKey, None]] = {}
        self._something_is_wanted = asyncio.Event()

    def ask(self, key: ObjectKey, question: UsageQuestion, *, at: float) -> TopicUsage | None:
        """What is known; None: nothing yet. If that is outdated, brokers are asked, and the answer
        is news for the resource."""
        known = self._known.get(question)
        if known is None or known.is_outdated(at=at):
            keys = self._asking.get(question)
            if keys is None:
                keys = self._wanted.setdefault(question, {})
                self._something_is_wanted.set()
            keys[key] = None  # of one that is being asked the answer is enough
        return known

    async def run(self) -> None:
        """Ask whenever somebody wants to know, until cancelled."""
        while True:
            await self._something_is_wanted.wait()
            self._something_is_wanted.clear()
            self._asking, self._wanted = self._wanted, {}
            at = asyncio.get_running_loop().time()
            self._known = {q: each for q, each in self._known.items() if at - each.at < _KEPT_S}
            for question in tuple(self._asking):
                self._known[question] = await self._find_out(question)
                self._on_news(frozenset(self._asking.pop(question)))

    async def _find_out(self, question: UsageQuestion) -> TopicUsage:
        at, before = asyncio.get_running_loop().time(), self._view()
        topic = _topic_of(question, before)
        if topic is None or self._questions is None:
            why = "brokers are not asked" if topic is not None else "the topic is another one now"
            return TopicUsage(question, at, unknown=(why,))
        inquiry = _Inquiry(self._questions, question, since=self._since(question))
        async with asyncio.TaskGroup() as group:
            for each in inquiry.parts(topic, before):
                group.create_task(each)
        after = self._view()
        if _topic_of(question, after) != topic or coordinators(after) != coordinators(before):
            inquiry.unknown.append("leaders have changed while brokers were asked")
        return TopicUsage(
            question,
            at,
            recent=tuple(sorted(inquiry.recent)),
            groups=tuple(sorted(inquiry.groups.items())),
            unknown=(*blind_spots(topic, before), *sorted(set(inquiry.unknown))),
        )

    def _since(self, question: UsageQuestion) -> int:
        times = [time for clock in self._clocks if (time := clock()) is not None]
        moment = min(times) - timedelta(seconds=question.idle_s)
        return max(0, int(moment.timestamp() * 1000))


class _Inquiry:
    """What brokers have answered about one topic so far."""

    def __init__(self, asked: TopicUsagePort, question: UsageQuestion, *, since: int) -> None:
        self.recent: list[int] = []
        self.groups: dict[str, str] = {}
        self.unknown: list[str] = []
        self._asked = asked
        self._question = question
        self._since = since

    def parts(self, topic: TopicView, view: ClusterView) -> list[Coroutine[Any, Any, None]]:
        """What has to be asked: leaders about records, all brokers about groups."""
        partitions = tuple(each.partition for each in topic.partitions)
        leaders = (
            self._ask_leader(view.brokers.get(leader), leader, tuple(led))
            for leader, led in leaders_of(topic).items()
            if leader >= 0
        )
        coordinating = (
            self._ask_coordinator(broker, partitions) for broker in view.brokers.values()
        )
        return [*leaders, *coordinating]

    async def _ask_leader(
        self, broker: Broker | None, leader: int, partitions: tuple[int, ...]
    ) -> None:
        if broker is None:
            self.unknown.append(f"broker {leader} is not alive")
            return
        name = self._question.topic
        try:
            found = await self._asked.records_since(broker, name, partitions, since_ms=self._since)
        except BrokerQuestionError as error:
            self.unknown.append(f"broker {leader}: {error}")
        else:
            self.recent.extend(found)

    async def _ask_coordinator(self, broker: Broker, partitions: tuple[int, ...]) -> None:
        try:
            found = await self._asked.groups_using(broker, self._question.topic, partitions)
        except BrokerQuestionError as error:
            self.unknown.append(f"broker {broker.broker_id}: {error}")
        else:
            self.groups.update(found)


def _topic_of(question: UsageQuestion, view: ClusterView) -> TopicView | None:
    """The topic that is meant; None: it is gone, or another one."""
    topic = view.topics.get(question.topic)
    if topic is None or topic.is_being_deleted or not view.may_act:
        return None
    is_same = topic.czxid == question.czxid and len(topic.partitions) == question.partitions
    return topic if is_same else None
