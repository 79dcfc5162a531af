"""Requests that are answered once topics are created, grown or gone.

As Kafka's purgatory of topic operations: what was written takes effect a little later, and the view
shows when. A change of the view costs what it concerns, however many wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Final

from regent.controller.view import ClusterView, TopicView

IsSettled = Callable[[str, TopicView | None], bool]

MAX_WAITING: Final = 200
"""Requests that wait at a time. A waiting request is one in progress, of which the server takes a
limited number: whoever creates topics that never get a leader must not keep brokers out."""

MAX_WAIT_S: Final = 100.0
"""Whatever the client allows: the server ends a request that takes longer than two minutes."""


class _Wait:
    """One request that waits."""

    def __init__(self, topics: Iterable[str], is_settled: IsSettled) -> None:
        self.topics = tuple(dict.fromkeys(topics))
        self.pending = dict.fromkeys(self.topics)
        self.is_settled = is_settled
        self.ended = asyncio.Event()


class TopicWaits:
    """Who waits for which topics. Belongs into the controller's loop.

    Args:
        view: The newest view.
    """

    def __init__(self, view: Callable[[], ClusterView]) -> None:
        self._view = view
        self._by_topic: dict[str, dict[_Wait, None]] = {}
        self._waits: dict[_Wait, None] = {}

    async def settled(
        self, topics: Collection[str], is_settled: IsSettled, *, timeout_s: float
    ) -> Collection[str]:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        wait = _Wait(topics, is_settled)
        self._look(wait, list(wait.pending))
        may_wait = self._view().is_active and len(self._waits) < MAX_WAITING and timeout_s > 0
        if wait.pending and may_wait:
            self._add(wait)
            try:
                async with asyncio.timeout(min(timeout_s, MAX_WAIT_S)):
                    await wait.ended.wait()
            except TimeoutError:
                pass
            finally:
                self._remove(wait)
        return [topic for topic in topics if topic not in wait.pending]

    def view_changed(self, topics: frozenset[str] | None) -> None:
        """The view has changed in these topics, None: in any."""
        if not self._view().is_active:
            for wait in self._waits:
                wait.ended.set()
            return
        if topics is None or len(topics) > len(self._by_topic):
            names = [t for t in self._by_topic if topics is None or t in topics]
        else:
            names = [t for t in sorted(topics) if t in self._by_topic]
        for name in names:
            for wait in self._by_topic[name]:
                self._look(wait, (name,))

    def _look(self, wait: _Wait, names: Iterable[str]) -> None:
        view = self._view()
        for name in names:
            if name not in wait.pending or not view.knows(name):
                continue
            if wait.is_settled(name, view.topics.get(name)):
                del wait.pending[name]
        if not wait.pending:
            wait.ended.set()

    def _add(self, wait: _Wait) -> None:
        self._waits[wait] = None
        for name in wait.topics:
            self._by_topic.setdefault(name, {})[wait] = None

    def _remove(self, wait: _Wait) -> None:
        del self._waits[wait]
        for name in wait.topics:
            waits = self._by_topic[name]
            del waits[wait]
            if not waits:
                del self._by_topic[name]
