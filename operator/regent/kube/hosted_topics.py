"""Which topics have replicas on which brokers, kept up to date by what differs from view to view.

A view is there before its news, which come from another thread. So what is said of a view is never
that of the one before: a topic that is missing would count as gone from its brokers.

Costs nothing as long as nobody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from regent.controller.view import ClusterView, TopicView
from regent.model.persistent_map import changed_keys

_NO_TOPICS: Mapping[str, TopicView] = {}


class HostedTopics:
    """Topics by broker."""

    def __init__(self) -> None:
        self._seen: Mapping[str, TopicView] | None = None
        self._brokers_of: dict[str, frozenset[int]] = {}
        self._topics_on: dict[int, dict[str, None]] = {}
        self._concerned: set[int] = set()

    def on(self, brokers: Iterable[int], view: ClusterView) -> tuple[str, ...]:
        """Names of the topics with replicas on any of the brokers, sorted."""
        self._see(view)
        return tuple(sorted({topic for b in brokers for topic in self._topics_on.get(b, ())}))

    def forget(self) -> None:
        """Nobody asks any more, or whoever does is going to ask again."""
        self._seen = None
        self._brokers_of.clear()
        self._topics_on.clear()
        self._concerned.clear()

    def see_topics(self, view: ClusterView, topics: Iterable[str]) -> frozenset[int]:
        """Take in that topics have changed; the brokers that have, or had, replicas of them. Those
        of what :meth:`on` has come across before are among them."""
        self._see(view)
        concerned = self._concerned.union(*(_brokers_of(view, topic) for topic in topics))
        self._concerned.clear()
        return frozenset(concerned)

    def _see(self, view: ClusterView) -> None:
        """Take in what differs from the last view."""
        is_first = self._seen is None
        before, self._seen = self._seen or _NO_TOPICS, view.topics
        if before is view.topics:
            return
        for topic in changed_keys(before, view.topics):
            before_brokers = self._brokers_of.get(topic, frozenset())
            brokers = _brokers_of(view, topic)
            self._put(topic, brokers)
            if not is_first:
                self._concerned |= before_brokers | brokers

    def _put(self, topic: str, brokers: frozenset[int]) -> None:
        before = self._brokers_of.get(topic, frozenset())
        for broker in before - brokers:
            self._topics_on[broker].pop(topic, None)
        for broker in brokers - before:
            self._topics_on.setdefault(broker, {})[topic] = None
        if brokers:
            self._brokers_of[topic] = brokers
        else:
            self._brokers_of.pop(topic, None)


def _brokers_of(view: ClusterView, name: str) -> frozenset[int]:
    topic = view.topics.get(name)
    return frozenset(
        b for each in (() if topic is None else topic.partitions) for b in each.replicas
    )
