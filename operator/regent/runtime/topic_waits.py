"""Requests that are answered once topics are created, grown or gone and a broker shows that.

Kafka's purgatory of topic operations (``DelayedCreatePartitions``, ``DelayedDeleteTopics``,
``DelayedElectLeader``) answers when the metadata cache of the controller's own node shows the
change, as the client might ask that node next. This node has brokers answer Metadata. So a request
waits for the view to show the change, then for one broker to acknowledge the metadata of it. From
then on, requests are passed on to brokers that have acknowledged the metadata of all answers given,
see :meth:`TopicWaits.lagging_brokers`. To wait for one broker is enough, as Kafka waits for one
node, and a broker that hangs delays no answer while another broker acknowledges.

A change of the view costs what it concerns, however many wait. An acknowledgement costs the number
of waiting requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Final

from regent.controller.view import ClusterView, TopicView
from regent.runtime.ports import BrokerChannelsPort

IsSettled = Callable[[str, TopicView | None], bool]

MAX_WAITING: Final = 200
"""Requests that wait at a time. A waiting request is one in progress, of which the server takes a
limited number: whoever creates topics that never get a leader must not keep brokers out."""

MAX_WAIT_S: Final = 100.0
"""Whatever the client allows: the server ends a request that takes longer than two minutes."""


_NO_BATCH: Final = -1


class _Wait:
    """One request that waits.

    Attributes:
        pending: Topics that the view does not show as they should be.
        batches: The other topics, each with the batch that a broker must acknowledge.
        batch: The newest batch that a broker must acknowledge.
        acknowledged: The newest batch that a broker has acknowledged.
    """

    def __init__(
        self, topics: Iterable[str], is_settled: IsSettled, *, batch: int = _NO_BATCH
    ) -> None:
        self.topics = tuple(dict.fromkeys(topics))
        self.pending = dict.fromkeys(self.topics)
        self.batches: dict[str, int] = {}
        self.batch = batch
        self.acknowledged = _NO_BATCH
        self.is_settled = is_settled
        self.ended = asyncio.Event()

    def settle(self, topic: str, batch: int) -> None:
        """A topic is as it should be, and brokers learn that by a batch."""
        self.pending.pop(topic, None)
        is_repeated = topic in self.batches
        self.batches[topic] = batch
        self.batch = max(self.batches.values() if is_repeated else (self.batch, batch))


class TopicWaits:
    """The requests that wait. Belongs into the controller's loop.

    Args:
        view: The newest view.
        channels: The channels that propagate metadata to brokers.
    """

    def __init__(self, view: Callable[[], ClusterView], channels: BrokerChannelsPort) -> None:
        self._view = view
        self._channels = channels
        self._confirmed = 0
        self._by_topic: dict[str, dict[_Wait, None]] = {}
        self._waits: dict[_Wait, None] = {}

    async def settled(
        self, topics: Collection[str], is_settled: IsSettled, *, timeout_s: float
    ) -> Collection[str]:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        wait = _Wait(topics, is_settled)
        self._look(wait, list(wait.pending))
        await self._until_ended(wait, timeout_s)
        return [topic for topic in topics if self._confirms(wait, wait.batches.get(topic))]

    async def propagated(self, *, timeout_s: float) -> bool:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        wait = _Wait((), lambda _, __: True, batch=self._channels.last_batch)
        await self._until_ended(wait, timeout_s)
        return self._confirms(wait, wait.batch)

    def lagging_brokers(self) -> Collection[int]:
        """See :class:`~regent.runtime.ports.ControllerRequests`."""
        acknowledged = self._channels.acknowledged()
        lagging = [b for b, batch in acknowledged.items() if batch < self._confirmed]
        return lagging if len(lagging) < len(acknowledged) else ()

    def _confirms(self, wait: _Wait, batch: int | None) -> bool:
        """Whether a broker has acknowledged a batch: if so, the answer rests on that."""
        if batch is None or batch > wait.acknowledged:
            return False
        self._confirmed = max(self._confirmed, batch)
        return True

    def _acknowledged(self) -> int:
        """The newest batch that a broker has acknowledged."""
        return max(self._channels.acknowledged().values(), default=_NO_BATCH)

    async def _until_ended(self, wait: _Wait, timeout_s: float) -> None:
        self._take_acknowledgements((wait,))
        may_wait = self._view().is_active and len(self._waits) < MAX_WAITING and timeout_s > 0
        if not wait.ended.is_set() and may_wait:
            self._add(wait)
            try:
                async with asyncio.timeout(min(timeout_s, MAX_WAIT_S)):
                    await wait.ended.wait()
            except TimeoutError:
                pass
            finally:
                self._remove(wait)

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
        self.metadata_acknowledged()

    def metadata_acknowledged(self) -> None:
        """A broker might have acknowledged metadata."""
        if self._waits:
            self._take_acknowledgements(self._waits)

    def _take_acknowledgements(self, waits: Iterable[_Wait]) -> None:
        acknowledged = self._acknowledged()
        for wait in waits:
            wait.acknowledged = max(wait.acknowledged, acknowledged)
            if not wait.pending and wait.batch <= acknowledged:
                wait.ended.set()

    def _look(self, wait: _Wait, names: Iterable[str]) -> None:
        """Look at topics in the view. A batch that was not sent before might not be sent at all:
        the view shows the topic again in this case."""
        view, sent = self._view(), self._channels.last_batch
        for name in names:
            if wait.batches.get(name, sent + 1) <= sent or not view.knows(name):
                continue
            topic = view.topics.get(name)
            if wait.is_settled(name, topic):
                wait.settle(name, sent if topic is None else max(sent, topic.batch))

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
