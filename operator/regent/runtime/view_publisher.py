"""Makes the immutable view of the cluster from the controller's context, a slice at a time.

Views are for people and custom resources; answers to brokers come first. After a failover there may
be 100,000 partitions to describe, so the work is cut into slices between which the loop is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from regent.controller.active_controller import ActiveController
from regent.controller.context import ControllerContext
from regent.controller.kafka_controller import KafkaController
from regent.controller.states import PartitionState
from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.model.partition import NO_LEADER

PARTITIONS_PER_SLICE = 500

_HEALTH = {
    PartitionState.NEW: PartitionHealth.NEW,
    PartitionState.ONLINE: PartitionHealth.ONLINE,
    PartitionState.OFFLINE: PartitionHealth.OFFLINE,
    PartitionState.NON_EXISTENT: PartitionHealth.OFFLINE,
}

Listener = Callable[[frozenset[str] | None], None]


class ViewPublisher:
    """Holds the newest view. Runs in the controller's loop; :attr:`view` may be read by anybody."""

    def __init__(self, controller: KafkaController) -> None:
        self._controller = controller
        self.listeners: list[Listener] = []
        self._dirty: dict[str, None] = {}
        self._rebuild = False
        self._wake = asyncio.Event()
        self.view = ClusterView()

    def subscribe(self, listener: Listener) -> None:
        self.listeners.append(listener)

    def publish(self, topics: frozenset[str] | None) -> None:
        """Topics changed (None: anything). What concerns the whole cluster is visible at once."""
        if topics is None:
            self._rebuild = True
        else:
            self._dirty.update(dict.fromkeys(sorted(topics)))
        self._swap(dict(self.view.topics), is_complete=self.view.is_complete)
        self._wake.set()

    def reset(self) -> None:
        """The controller is no longer active: nothing is known any more."""
        self._dirty.clear()
        self._rebuild = False
        self._swap({}, is_complete=False)
        self._notify(None)

    async def run(self) -> None:
        """Keep the view up to date for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._rebuild or self._dirty:
                await self._round()

    async def _round(self) -> None:
        active = self._controller.active
        if active is None:
            self._dirty.clear()
            self._rebuild = False
            self._notify(None)
            return
        everything, self._rebuild = self._rebuild, False
        if everything:
            self._dirty.clear()
            names = list(active.context.topics)
            topics: dict[str, TopicView] = {}
        else:
            names = list(self._dirty)
            self._dirty.clear()
            topics = dict(self.view.topics)
        since_pause = 0
        for name in names:
            if self._controller.active is not active:
                return
            view = topic_view(active.context, name)
            if view is None:
                topics.pop(name, None)
                continue
            topics[name] = view
            since_pause += len(view.partitions)
            if since_pause >= PARTITIONS_PER_SLICE:
                since_pause = 0
                await asyncio.sleep(0)
        if self._controller.active is not active:
            return
        self._swap(topics, is_complete=everything or self.view.is_complete)
        self._notify(None if everything else frozenset(names))

    def _swap(self, topics: dict[str, TopicView], *, is_complete: bool) -> None:
        active: ActiveController | None = self._controller.active
        self.view = ClusterView(
            is_active=active is not None,
            is_complete=is_complete and active is not None,
            controller_id=self._controller.controller_id_seen,
            controller_epoch=self.view.controller_epoch if active is None else active.context.epoch,
            brokers={} if active is None else dict(active.context.live_or_shutting_down_brokers),
            topics=topics if active is not None else {},
            broker_facts=() if active is None else active.context.broker_facts(),
        )

    def _notify(self, topics: frozenset[str] | None) -> None:
        for listener in tuple(self.listeners):
            listener(topics)


def topic_view(context: ControllerContext, topic: str) -> TopicView | None:
    """View of one topic, None if there is none of that name."""
    if not context.has_topic(topic):
        return None
    partitions = []
    for tp, assignment in sorted(context.partitions_of(topic).items()):
        leadership = context.leadership.get(tp)
        partitions.append(
            PartitionView(
                partition=tp.partition,
                state=_HEALTH[context.partition_state(tp)],
                replicas=assignment.replicas,
                leader=NO_LEADER if leadership is None else leadership.leader,
                leader_epoch=-1 if leadership is None else leadership.leader_epoch,
                isr=() if leadership is None else leadership.isr,
                adding_replicas=assignment.adding_replicas,
                removing_replicas=assignment.removing_replicas,
            )
        )
    return TopicView(
        name=topic,
        topic_id=context.topic_ids.get(topic),
        partitions=tuple(partitions),
        is_being_deleted=context.is_topic_queued_for_deletion(topic),
    )
