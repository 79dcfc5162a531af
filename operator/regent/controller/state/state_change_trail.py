"""The state-change trail: the last changes of each partition's leadership, with their causes.

It belongs to a term: it begins empty, and what was before is not known to it. A partition that has
not changed since takes no memory. What one event changes shares one cause, and each state is the
very object that the cluster state holds or held, so that a change costs some hundred bytes at most,
and less than deciding it. Partitions that share their states share their trails, too.

Both bounds are on numbers of changes: for each partition the oldest change goes first, over all
partitions the trails of those whose last change is the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from regent.controller.state.causes import BrokerLife, Cause, CauseKind, ChangeKind
from regent.model.cluster import Broker
from regent.model.partition import LeaderAndIsr, TopicPartition

CHANGES_PER_PARTITION: Final = 12
CHANGES_IN_ALL: Final = 250_000
REMOVED_TOPICS: Final = 1_000
"""Topics of which is remembered why they are gone."""
BROKERS: Final = 10_000
"""Brokers of which is remembered what happened to them last: one that gets a new id at each start
leaves many."""

_EVICTED_AT_A_TIME: Final = 0.1
"""Part of all changes. Removing the first of a dict again and again would take ever longer."""


class StateChange(msgspec.Struct, frozen=True, gc=False):
    """One change of a partition's leadership.

    Attributes:
        after: The leadership since then; None: it is not known any more.
    """

    cause: Cause
    kind: ChangeKind
    after: LeaderAndIsr | None


class PartitionTrail(msgspec.Struct, frozen=True, gc=False):
    """The last changes of one partition.

    Attributes:
        before: The leadership before the first of ``changes``; None: it had none.
        changes: Oldest first, at least one.
        dropped: Number of changes of this term before those.
    """

    before: LeaderAndIsr | None
    changes: tuple[StateChange, ...]
    dropped: int = 0

    @property
    def now(self) -> LeaderAndIsr | None:
        """The leadership after the last change."""
        return self.changes[-1].after


class _Continued(NamedTuple):
    """What becomes of a trail by a change, which is the same for all partitions that share both.

    Attributes:
        start: The trail until now, or the leadership of a partition without one.
        after: The leadership from now on.
        trail: None: that is no change.
        added: By how many changes the trail is longer.
    """

    start: PartitionTrail | LeaderAndIsr | None
    after: LeaderAndIsr | None
    trail: PartitionTrail | None
    added: int


class StateChangeTrail:
    """The trails of all partitions that have changed in this term.

    Attributes:
        began_ms: When the term began, in milliseconds since the epoch.
        evicted_partitions: How many trails were given up because there were too many changes.
        broker_causes: Broker -> the last cause that was about it, for the last ones.
        removed_topics: Topic -> why it is gone, for the last ones.
    """

    def __init__(
        self, *, per_partition: int = CHANGES_PER_PARTITION, in_all: int = CHANGES_IN_ALL
    ) -> None:
        self._per_partition = per_partition
        self._in_all = in_all
        self._trails: dict[TopicPartition, PartitionTrail] = {}
        self._count = 0
        self._cause = Cause(CauseKind.CONTROLLER_FAILOVER, "", 0)
        self.began_ms = 0
        self.evicted_partitions = 0
        self.broker_causes: dict[int, Cause] = {}
        self.removed_topics: dict[str, Cause] = {}

    def __len__(self) -> int:
        """Number of changes that are kept."""
        return self._count

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionTrail]:
        """The trails, the partition that changed last at the end."""
        return MappingProxyType(self._trails)

    # Causes

    def begin_term(self, now_ms: int) -> None:
        """This controller was elected; all that follows is the failover."""
        self.began_ms = now_ms
        self._cause = Cause(CauseKind.CONTROLLER_FAILOVER, self._cause.event, now_ms)

    def begin_event(self, event: str, now_ms: int) -> None:
        """All that follows is the processing of an event, until the next."""
        self._cause = Cause(CauseKind.OTHER, event, now_ms)

    @contextmanager
    def because(self, kind: CauseKind, *, brokers: Iterable[Broker] = ()) -> Iterator[None]:
        """What is done inside has this cause. An inner cause replaces an outer one."""
        outer = self._cause
        lives = tuple(BrokerLife(b.broker_id, b.epoch, b.session_id) for b in brokers)
        self._cause = Cause(kind, outer.event, outer.time_ms, lives)
        for life in lives:
            self.broker_causes.pop(life.broker_id, None)
            self.broker_causes[life.broker_id] = self._cause
        while len(self.broker_causes) > BROKERS:
            del self.broker_causes[next(iter(self.broker_causes))]
        try:
            yield
        finally:
            self._cause = outer

    # Changes

    def record(
        self,
        kind: ChangeKind,
        changes: Mapping[TopicPartition, LeaderAndIsr | None],
        *,
        known: Mapping[TopicPartition, LeaderAndIsr],
    ) -> None:
        """Leadership is about to change. What is the same as before is no change.

        Args:
            known: The leadership until now, where no change of this term is kept.
        """
        trails = self._trails
        # By what the objects are, not by what they hold; ``made`` keeps them for their ids.
        made: dict[tuple[int, int], _Continued] = {}
        for tp, after in changes.items():
            trail = trails.get(tp)
            start = known.get(tp) if trail is None else trail
            key = (id(start), id(after))
            continued = made.get(key)
            if continued is None:
                continued = made[key] = self._continued(start, kind, after)
            if continued.trail is None:
                continue
            if trail is not None:
                del trails[tp]  # to the end
            trails[tp] = continued.trail
            self._count += continued.added
        if self._count > self._in_all:
            self._evict()

    def _continued(
        self,
        start: PartitionTrail | LeaderAndIsr | None,
        kind: ChangeKind,
        after: LeaderAndIsr | None,
    ) -> _Continued:
        trail = start if isinstance(start, PartitionTrail) else None
        before = start.now if isinstance(start, PartitionTrail) else start
        if before == after:
            return _Continued(start, after, None, 0)
        change = StateChange(self._cause, kind, after)
        if trail is None:
            return _Continued(start, after, PartitionTrail(before, (change,)), 1)
        if len(trail.changes) < self._per_partition:
            longer = PartitionTrail(trail.before, (*trail.changes, change), trail.dropped)
            return _Continued(start, after, longer, 1)
        first, *kept = trail.changes
        as_long = PartitionTrail(first.after, (*kept, change), trail.dropped + 1)
        return _Continued(start, after, as_long, 0)

    def _evict(self) -> None:
        """Give up trails, the longest unchanged first, until there is some room again."""
        aim = self._in_all - int(self._in_all * _EVICTED_AT_A_TIME)
        surplus = self._count - aim
        for tp in list(islice(self._trails, surplus)):  # each has one change at least
            if self._count <= aim:
                break
            self._count -= len(self._trails.pop(tp).changes)
            self.evicted_partitions += 1

    def forget_topic(self, topic: str, partitions: Iterable[TopicPartition]) -> None:
        """A topic is gone; why is remembered for a while."""
        for tp in partitions:
            trail = self._trails.pop(tp, None)
            if trail is not None:
                self._count -= len(trail.changes)
        self.removed_topics.pop(topic, None)
        self.removed_topics[topic] = self._cause
        if len(self.removed_topics) > REMOVED_TOPICS:
            del self.removed_topics[next(iter(self.removed_topics))]
