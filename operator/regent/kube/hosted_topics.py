"""Which topics have replicas on which brokers, kept up to date by the topics that change.

Costs nothing as long as nobody asks.
"""

from __future__ import annotations

from collections.abc import Iterable

from regent.controller.view import ClusterView


class HostedTopics:
    """Topics by broker."""

    def __init__(self) -> None:
        self._is_current = False
        self._brokers_of: dict[str, frozenset[int]] = {}
        self._topics_on: dict[int, dict[str, None]] = {}

    def on(self, brokers: Iterable[int], view: ClusterView) -> tuple[str, ...]:
        """Names of the topics with replicas on any of the brokers, sorted."""
        if not self._is_current:
            self._see_all(view)
        return tuple(sorted({topic for b in brokers for topic in self._topics_on.get(b, ())}))

    def forget(self) -> None:
        """Everything may have changed."""
        self._is_current = False

    def see_topics(self, view: ClusterView, topics: Iterable[str]) -> frozenset[int]:
        """Take in topics that have changed; the brokers that have, or had, replicas of them."""
        if not self._is_current:
            self._see_all(view)
        concerned: set[int] = set()
        for topic in topics:
            concerned |= self._brokers_of.get(topic, frozenset())
            self._put(topic, _brokers_of(view, topic))
            concerned |= self._brokers_of.get(topic, frozenset())
        return frozenset(concerned)

    def _see_all(self, view: ClusterView) -> None:
        self._brokers_of.clear()
        self._topics_on.clear()
        for topic in view.topics:
            self._put(topic, _brokers_of(view, topic))
        self._is_current = True

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
