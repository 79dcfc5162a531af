"""Makes the immutable view of the cluster from the controller's context, a slice at a time.

Views are for people and custom resources; answers to brokers come first. After a failover there may
be 100,000 partitions to describe, so the work is cut into slices between which the loop is free.
Later only topics that have changed are described again, and the others are shared with the view
before. Where changes keep coming, as ISR changes may by the thousand, that takes a fifth of the
time at most: after each round there is a pause, and what changes meanwhile is described together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from regent.controller.active_controller import ActiveController
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState, ReplicaState
from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.model.active_regent import ActiveRegent
from regent.model.partition import NO_LEADER, TopicPartition
from regent.model.persistent_map import PersistentMap
from regent.runtime.awaited_answers import AwaitedAnswers, awaiting, merged

logger = logging.getLogger(__name__)

PARTITIONS_PER_SLICE = 500

PAUSE_RATIO: Final = 4
"""A pause is so many times as long as the round before it."""

LONGEST_PAUSE_S: Final = 0.25
"""However long the round was."""

BEFORE_EVERYTHING_S: Final = 0.2
"""After a failover brokers are being sent everything, too: a round between two requests of a broker
is time that it waits for a controller. So a round of everything waits so long, and again and again
until they are informed."""

PARTITIONS_PER_WAIT: Final = 40_000
"""It waits once more for so many partitions at most: brokers are informed of more meanwhile, on a
busy machine, too. So one that does not answer keeps nobody from the view for long."""

_HEALTH = {
    PartitionState.NEW: PartitionHealth.NEW,
    PartitionState.ONLINE: PartitionHealth.ONLINE,
    PartitionState.OFFLINE: PartitionHealth.OFFLINE,
    PartitionState.NON_EXISTENT: PartitionHealth.OFFLINE,
}

Listener = Callable[[frozenset[str] | None], None]

Uninformed = Mapping[int, frozenset[TopicPartition]]
"""Brokers that are out of reach, each with what it has not been informed of, if there is any."""

NOBODY: Final[Uninformed] = MappingProxyType({})


class ViewSource(Protocol):
    """Whose context is described."""

    @property
    def active(self) -> ActiveController | None:
        """None: nothing is known of the cluster."""
        ...

    @property
    def controller_id_seen(self) -> int:
        """Id of the active controller as far as known, -1 if there is none."""
        ...

    @property
    def regent_seen(self) -> ActiveRegent | None:
        """Another Regent that is the active controller, as far as known."""
        ...


class Describing(NamedTuple):
    """How what a context does not have by itself is found out.

    Attributes:
        partition_state: State of a partition.
        deletion_waits_for: Brokers that a topic's deletion waits for, sorted.
        is_client: Whether a broker is the controller, and this process asks it.
    """

    partition_state: Callable[[ControllerContext, TopicPartition], PartitionState]
    deletion_waits_for: Callable[[ControllerContext, str], tuple[int, ...]]
    is_client: bool = False


def _deletion_waits_for(context: ControllerContext, topic: str) -> tuple[int, ...]:
    if not context.is_topic_queued_for_deletion(topic):
        return ()
    brokers = {
        broker_id
        for tp, assignment in context.cluster.partitions_of(topic).items()
        for broker_id in assignment.replicas
        if context.replica_state(broker_id, tp) is not ReplicaState.DELETION_SUCCESSFUL
    }
    return tuple(sorted(brokers))


OF_THE_CONTROLLER: Final = Describing(ControllerContext.partition_state, _deletion_waits_for)
"""The controller's own states."""


class ViewPublisher:
    """Holds the newest view. Runs in the controller's loop; :attr:`view` may be read by anybody.

    Args:
        controller: Whose context is described.
        pause: Waits for some seconds.
        are_brokers_informed: Whether none of them still has to be sent anything.
        uninformed: Which brokers are out of reach, and what they do not know.
        silent: Which do not answer.
        last_batch: The number of the newest batch that brokers were sent, or that waits for them.
        unanswered: Which have not answered what they were sent about leadership, and since which
            batch.
        describing: What the context does not have by itself.
    """

    def __init__(
        self,
        controller: ViewSource,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        are_brokers_informed: Callable[[], bool] = lambda: True,
        uninformed: Callable[[], Uninformed] = lambda: NOBODY,
        silent: Callable[[], Sequence[int]] = tuple,
        last_batch: Callable[[], int] = lambda: 0,
        unanswered: Callable[[], Mapping[int, int]] = dict,
        describing: Describing = OF_THE_CONTROLLER,
    ) -> None:
        self._controller = controller
        self._describing = describing
        self._pause = pause
        self._are_brokers_informed = are_brokers_informed
        self.listeners: list[Listener] = []
        self._immediate: list[Listener] = []
        self._dirty: dict[str, None] = {}
        self._to_describe: ActiveController | None = None
        self._has_loaded: ActiveController | None = None
        self._brokers_changed = False
        self._topics: PersistentMap[str, TopicView] = PersistentMap()
        self._unreadable: Mapping[str, str] = {}
        self._ask_uninformed = uninformed
        self._uninformed = NOBODY
        self._ask_silent = silent
        self._silent: tuple[int, ...] = ()
        self._last_batch = last_batch
        self._ask_unanswered = unanswered
        self._unanswered: Mapping[int, int] = {}
        self._answers_changed = False
        self._awaited = AwaitedAnswers()
        self._complete_of: ActiveController | None = None
        self._wake = asyncio.Event()
        self.view = ClusterView()

    def subscribe(self, listener: Listener, *, is_immediate: bool = False) -> None:
        """Have a listener called with what is new in a view.

        Args:
            is_immediate: Whether it hears of each topic at once, and once. Others hear of one whose
                leaders have not answered a little later, and again when they have.
        """
        (self._immediate if is_immediate else self.listeners).append(listener)

    def publish(self, topics: frozenset[str] | None) -> None:
        """Publish what the context says has changed, and ``topics`` (None: everything, which the
        context has by now).

        What concerns the whole cluster is visible at once.
        """
        active = self._controller.active
        if active is not None:
            self._dirty.update(dict.fromkeys(active.context.cluster.take_changed_topics()))
        if topics is None:
            # Until the view is made another term may have begun, which has not loaded anything yet.
            self._to_describe = self._has_loaded = active
        else:
            self._dirty.update(dict.fromkeys(sorted(topics)))
        before = self.view
        # What has been answered since may be a refusal, which the topics do not show yet.
        self._unanswered = merged(self._unanswered, self._ask_unanswered())
        self._swap()
        self._brokers_changed |= active is not None and (
            self.view.brokers is not before.brokers
            or self.view.shutting_down != before.shutting_down
            or self.view.cordoned != before.cordoned
            or self.view.unreached != before.unreached
            or self.view.silent != before.silent
            or self.view.broker_facts != before.broker_facts
        )
        self._wake.set()
        if self.view.active_regent != before.active_regent and not self._is_being_read():
            self._notify(None)  # who looks after resources is another one

    def look_for_answers(self) -> None:
        """Publish what brokers have answered, if that is new."""
        if self._controller.active is not None and self._ask_unanswered() != self._unanswered:
            self._answers_changed = True
            self._wake.set()

    def look_for_uninformed(self) -> None:
        """Publish what is new of brokers out of reach: they report nothing."""
        changed = self._take_uninformed()
        is_active = self._controller.active is not None
        reach = self.view.unreached, self.view.silent
        if changed or (is_active and reach != (tuple(sorted(self._uninformed)), self._silent)):
            self.publish(changed)

    def _take_uninformed(self) -> frozenset[str]:
        """Ask what brokers do not know. Returns the topics of which that has changed."""
        before, self._uninformed = self._uninformed, self._ask_uninformed()
        self._silent = tuple(sorted(self._ask_silent()))
        nothing: frozenset[TopicPartition] = frozenset()
        return frozenset(
            tp.topic
            for broker_id in {**before, **self._uninformed}
            if (known := before.get(broker_id, nothing))
            is not (now := self._uninformed.get(broker_id, nothing))
            for tp in known ^ now
        )

    def _is_being_read(self) -> bool:
        """Whether the view is about to show everything: that is reported once it does."""
        active = self._controller.active
        return active is not None and active is not self._complete_of

    def reset(self) -> None:
        """The controller is no longer active: nothing is known any more."""
        self._forget_changes()
        self._topics = PersistentMap()
        self._unreadable = {}
        self._complete_of = self._has_loaded = None
        self._unanswered = {}
        self._awaited.clear()
        self._swap()
        self._notify(None)

    def _forget_changes(self) -> None:
        self._dirty.clear()
        self._to_describe = None
        self._brokers_changed = self._answers_changed = False

    async def run(self) -> None:
        """Keep the view up to date until cancelled.

        If a defect ends it, the view is incomplete. The next run begins with everything, or waits
        for a term that has not loaded everything yet.
        """
        try:
            await self._follow()
        except BaseException:  # a cancellation may come from within
            self._complete_of = None
            self._to_describe = self._has_loaded
            self._wake.set()
            self._swap()
            raise

    async def _follow(self) -> None:
        while True:
            await self._until_woken()
            self._wake.clear()
            while self._is_round_due():
                if self._to_describe is not None:
                    await self._give_brokers_precedence(self._to_describe)
                began = time.monotonic()
                await self._round()
                took = time.monotonic() - began
                await self._pause(min(PAUSE_RATIO * took, LONGEST_PAUSE_S))

    async def _until_woken(self) -> None:
        due_at = self._awaited.due_at
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if due_at is None else due_at - time.monotonic()):
                await self._wake.wait()

    def _is_round_due(self) -> bool:
        due_at = self._awaited.due_at
        return (
            self._to_describe is not None
            or bool(self._dirty)
            or self._brokers_changed
            or self._answers_changed
            or (due_at is not None and due_at <= time.monotonic())
        )

    async def _give_brokers_precedence(self, active: ActiveController) -> None:
        await self._pause(BEFORE_EVERYTHING_S)
        for _ in range(active.context.cluster.partition_count // PARTITIONS_PER_WAIT):
            if self._are_brokers_informed():
                return
            await self._pause(BEFORE_EVERYTHING_S)

    async def _round(self) -> None:
        active = self._controller.active
        if active is None:
            self._forget_changes()
            self._awaited.clear()
            self._notify(None)
            return
        everything = self._to_describe is active
        unanswered = self._ask_unanswered()  # before topics are described, which show refusals
        self._dirty.update(dict.fromkeys(sorted(self._take_uninformed())))
        unreadable = active.context.cluster.unreadable_topics
        names = list(active.context.cluster.topics if everything else self._dirty)
        brokers_changed = self._brokers_changed
        self._forget_changes()
        topics: PersistentMap[str, TopicView] = PersistentMap() if everything else self._topics
        awaited: list[tuple[str, int]] = []
        for some in _slices(active.context, names):
            views = {
                name: topic_view(
                    active.context,
                    name,
                    self._describing,
                    self._uninformed,
                    # what has just changed is sent with the next batch, and described again
                    self._last_batch() + active.context.cluster.has_topic_changed(name),
                )
                for name in some
            }
            unanswered = merged(unanswered, self._ask_unanswered())
            awaited += awaiting(views, unanswered)
            topics = topics.updated(
                {name: view for name, view in views.items() if view is not None},
                removed=[name for name, view in views.items() if view is None],
            )
            await asyncio.sleep(0)
            if self._controller.active is not active:
                return
        self._topics = topics
        # A topic that became readable meanwhile, or ceased to be, may or may not be described.
        self._unreadable = {**unreadable, **active.context.cluster.unreadable_topics}
        if everything:
            self._complete_of = active
        self._unanswered = merged(unanswered, self._ask_unanswered())
        self.look_for_answers()  # some may have come meanwhile, and no event may follow
        self._swap()
        if everything:
            self._awaited.everything(self.view, awaited)
            self._notify(None)
            return
        news = self._awaited.look(self.view, names, awaited, at=time.monotonic())
        _notify_all(self._immediate, frozenset(names))
        if news or brokers_changed:
            _notify_all(self.listeners, news)

    def _swap(self) -> None:
        active: ActiveController | None = self._controller.active
        epoch = self.view.controller_epoch if active is None else active.context.term.epoch
        is_active = active is not None and not self._describing.is_client
        self.view = ClusterView(
            is_active=is_active,
            is_client=active is not None and self._describing.is_client,
            is_complete=active is not None and active is self._complete_of,
            controller_id=self._controller.controller_id_seen,
            controller_epoch=epoch,
            brokers={} if active is None else active.context.cluster.brokers,
            topics=self._topics if active is not None else {},
            unreadable_topics=self._unreadable if active is not None else {},
            cluster_id=None if active is None else active.context.cluster.cluster_id,
            shutting_down=() if active is None else tuple(active.context.shutting_down_broker_ids),
            broker_facts=() if active is None else active.context.broker_facts.all(),
            cordoned=() if active is None else active.context.cordoned_brokers,
            unreached=() if active is None else tuple(sorted(self._uninformed)),
            silent=() if active is None else self._silent,
            unanswered={} if active is None else self._unanswered,
            active_regent=None if is_active else self._controller.regent_seen,
        )

    def _notify(self, topics: frozenset[str] | None) -> None:
        _notify_all([*self._immediate, *self.listeners], topics)


def _notify_all(listeners: Sequence[Listener], topics: frozenset[str] | None) -> None:
    for listener in tuple(listeners):
        try:
            listener(topics)
        except Exception:
            # It belongs to the Kubernetes side, a defect of which must not cost the cluster
            # its controller. What it misses it finds at its next resync.
            logger.exception("A listener of the view failed")


def _slices(context: ControllerContext, names: Sequence[str]) -> Iterator[list[str]]:
    """Topics that are described without a pause."""
    some: list[str] = []
    partitions = 0
    for name in names:
        some.append(name)
        partitions += len(context.cluster.partitions_of(name)) or 1
        if partitions >= PARTITIONS_PER_SLICE:
            yield some
            some, partitions = [], 0
    if some:
        yield some


def topic_view(
    context: ControllerContext,
    topic: str,
    describing: Describing = OF_THE_CONTROLLER,
    uninformed: Uninformed = NOBODY,
    batch: int = 0,
) -> TopicView | None:
    """View of one topic, None if there is none of that name."""
    if not context.cluster.has_topic(topic):
        return None
    partitions = []
    for tp, assignment in sorted(context.cluster.partitions_of(topic).items()):
        leadership = context.cluster.leadership.get(tp)
        partitions.append(
            PartitionView(
                partition=tp.partition,
                state=_HEALTH[describing.partition_state(context, tp)],
                replicas=assignment.replicas,
                leader=NO_LEADER if leadership is None else leadership.leader,
                leader_epoch=-1 if leadership is None else leadership.leader_epoch,
                isr=() if leadership is None else leadership.isr,
                adding_replicas=assignment.adding_replicas,
                removing_replicas=assignment.removing_replicas,
                refusals=context.refusals.of_partition(tp),
                throttle=context.throttles.rate_of(tp),
                uninformed=tuple(
                    broker_id
                    for broker_id, partitions in uninformed.items()
                    if tp in partitions and broker_id in assignment.replicas
                ),
                on_failed_dirs=context.on_offline_dirs(tp, assignment.replicas),
            )
        )
    return TopicView(
        name=topic,
        topic_id=context.cluster.topic_ids.get(topic),
        partitions=tuple(partitions),
        is_being_deleted=context.is_topic_queued_for_deletion(topic),
        deletion_waits_for=describing.deletion_waits_for(context, topic),
        czxid=context.cluster.topic_czxids.get(topic, 0),
        config_changes=context.config_changes.get(topic, 0),
        batch=batch,
    )
