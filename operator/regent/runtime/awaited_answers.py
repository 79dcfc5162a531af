"""Topics whose leaders have not answered the request that made them leaders, or followed it.

Most answers come within milliseconds. So news of such a topic waits a little for them: else whoever
reads it would look at each topic twice. What takes longer is news at once, and again when answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from regent.controller.view import ClusterView, TopicView, unanswered_leaders

HELD_S: Final = 0.25
"""How long news of a topic waits for its leaders' answers."""

_NOTHING: Final[Mapping[int, int]] = {}


def merged(some: Mapping[int, int], others: Mapping[int, int]) -> Mapping[int, int]:
    """What is unanswered by either, with the older of two batches."""
    if not some or not others:
        return some or others
    return {b: min(each[b] for each in (some, others) if b in each) for b in {**some, **others}}


def awaiting(
    topics: Mapping[str, TopicView | None], unanswered: Mapping[int, int]
) -> Iterator[str]:
    """Topics that have leaders which have not answered."""
    for name, topic in topics.items() if unanswered else ():
        if topic is not None and unanswered_leaders(topic, unanswered):
            yield name


class AwaitedAnswers:
    """Knows what to report when. Costs what leaders have not answered."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[str, None]] = {}
        self._held: dict[str, float] = {}
        self._seen = _NOTHING

    @property
    def due_at(self) -> float | None:
        """When something is news though it is not answered; None: it is not known."""
        return next(iter(self._held.values()), None)

    def clear(self) -> None:
        """Nothing is known of any topic."""
        self._waiting.clear()
        self._held.clear()
        self._seen = _NOTHING

    def everything(self, view: ClusterView, awaited: Iterable[str]) -> None:
        """Everything is news. What is :func:`awaiting` is so once more when it is answered."""
        self.clear()
        self._seen = view.unanswered
        for name in awaited:
            self._wait(view, name)

    def look(
        self, view: ClusterView, described: Iterable[str], awaited: Iterable[str], *, at: float
    ) -> frozenset[str]:
        """Topics that are news.

        Args:
            described: Those that are new in the view.
            awaited: Of these, those that are :func:`awaiting`.
            at: The present.
        """
        news = dict.fromkeys(described)
        for name in awaited:
            if self._wait(view, name):
                self._held.setdefault(name, at + HELD_S)
                del news[name]
        before, self._seen = self._seen, view.unanswered
        for broker_id in [b for b in self._waiting if before.get(b) != self._seen.get(b)]:
            for name in self._waiting.pop(broker_id):
                if not self._wait(view, name):
                    news[name] = None
        for name in news:
            self._held.pop(name, None)
        for name, due_at in list(self._held.items()):
            if due_at > at:
                break
            news[name] = None
            del self._held[name]
        return frozenset(news)

    def _wait(self, view: ClusterView, name: str) -> bool:
        """Have a topic wait for one of its leaders; whether one has not answered."""
        topic = view.topics.get(name)
        leaders = () if topic is None else view.unanswered_leaders(topic)
        if not leaders:
            return False
        self._waiting.setdefault(leaders[0], {})[name] = None
        return True
