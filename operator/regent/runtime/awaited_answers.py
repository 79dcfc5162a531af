"""Topics whose leaders have not answered the request that made them leaders, or followed it.

Most answers come within milliseconds. So news of such a topic waits a little for them: else whoever
reads it would look at each topic twice. What takes longer is news at once, and again when answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from regent.controller.view import ClusterView, TopicView

HELD_S: Final = 0.25
"""How long news of a topic waits for its leaders' answers."""

_NOTHING: Final[Mapping[int, int]] = {}


def merged(some: Mapping[int, int], others: Mapping[int, int]) -> Mapping[int, int]:
    """What is unanswered by either, with the older of two batches."""
    if not some or not others:
        return some or others
    return {b: min(each[b] for each in (some, others) if b in each) for b in {**some, **others}}


def unanswered_leaders(topic: TopicView, unanswered: Mapping[int, int]) -> tuple[int, ...]:
    """Brokers that lead partitions of a topic, and may not have answered that yet, sorted."""
    since = [b for b, oldest in unanswered.items() if topic.is_announced_since(oldest)]
    if not since:
        return ()
    leaders = {partition.leader for partition in topic.partitions}
    return tuple(sorted(b for b in since if b in leaders))


def awaiting(
    topics: Mapping[str, TopicView | None], unanswered: Mapping[int, int]
) -> Iterator[tuple[str, int]]:
    """Topics that have leaders which have not answered, each with one of them."""
    for name, topic in topics.items() if unanswered else ():
        leaders = () if topic is None else unanswered_leaders(topic, unanswered)
        if leaders:
            yield name, leaders[0]


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

    def everything(self, view: ClusterView, awaited: Iterable[tuple[str, int]]) -> None:
        """Everything is news. What is :func:`awaiting` is so once more when it is answered."""
        self.clear()
        self._seen = view.unanswered
        self._wait(awaited)

    def look(
        self,
        view: ClusterView,
        described: Iterable[str],
        awaited: Sequence[tuple[str, int]],
        *,
        at: float,
    ) -> frozenset[str]:
        """Topics that are news.

        Args:
            described: Those that are new in the view.
            awaited: Of these, those that are :func:`awaiting`, as of this view or before.
            at: The present.
        """
        news = dict.fromkeys(described)
        for name, _ in awaited:
            self._held.setdefault(name, at + HELD_S)
            del news[name]
        before, self._seen = self._seen, view.unanswered
        for broker_id in [b for b in self._waiting if before.get(b) != self._seen.get(b)]:
            topics = {name: view.topics.get(name) for name in self._waiting.pop(broker_id)}
            still = dict(awaiting(topics, view.unanswered))
            self._wait(still.items())
            news |= {name: None for name in topics if name not in still}
        self._wait(awaited)
        for name in news:
            self._held.pop(name, None)
        for name, due_at in list(self._held.items()):
            if due_at > at:
                break
            news[name] = None
            del self._held[name]
        return frozenset(news)

    def _wait(self, awaited: Iterable[tuple[str, int]]) -> None:
        """Have topics wait, each for one of its leaders."""
        for name, broker_id in awaited:
            self._waiting.setdefault(broker_id, {})[name] = None
