"""The controller's waiting events: those that say the same, or can be processed together, are one.

A handler reads the present state and acts on all that it finds, so a run of events need not cost a
run of handlings. What may become one is decided here, by the kind of the event alone:

1. *Read again* (:data:`_READ_AGAIN`): the event says that something changed, not what. One that
   waits already covers the later one, whatever stands between them: its handler reads what is there
   when it is processed, and sets the watch that reports everything after that. (If it is skipped
   because this process is not the controller, then so would the later one be, or a failover between
   them has read everything.)
2. *Sets* (modified topics, brokers or ISRs; answers of brokers, or their requests, of one kind):
   the event joins the waiting one of its kind, and so overtakes what stands between them. That
   must not change the order in which one source speaks: watches fire in the order of ZooKeeper's
   changes, a broker answers in the order of the requests that it gets, and sends its own in an
   order. Events of different sources could have come in any order. So an event joins unless one
   of *another* kind from its own source stands behind the one it would join.
3. Commands are a source of their own and are never merged: each keeps its place among them and its
   answer. Only requests of brokers that shut down are one set: several brokers are, where one has
   waited for another. Each broker waits for its answer.
4. Nothing else is merged, and no set overtakes it: it decides whether we are the controller.

Two kinds jump the queue. The expiry of the session: what waits was meant for a controller that no
longer exists, finds that out, and its caller is answered. And the shutdown, which must not wait
for work that the next controller does anyway: what waits is dropped, and whoever waits for an
answer gets that of a process that is not the controller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, Final, NamedTuple

from regent.controller import events as e

_READ_AGAIN: Final = frozenset(
    {
        e.ControllerChange,
        e.SessionReconnected,
        e.BrokerChange,
        e.TopicChange,
        e.TopicDeletion,
        e.TopicsUnwatched,
        e.ZkPartitionReassignment,
        e.IsrChangeNotification,
        e.LogDirEventNotification,
        e.ReplicaLeaderElection,
        e.AutoPreferredReplicaLeaderElection,
        e.LeaderBalanceUncounted,
        e.WatchCheck,
        e.IsrAnnouncementDue,
        e.AnswersOvertaken,
        e.RefusalRepairDue,
        e.DelegationTokenExpiry,
        e.UnassignedReplicaCheck,
        e.ConfigChange,
    }
)
_MODIFICATIONS: Final = frozenset(
    {
        e.PartitionModifications,
        e.TopicNodesDeleted,
        e.BrokerModifications,
        e.PartitionReassignmentIsrChange,
        e.IsrChangesMade,
        e.UnreportedStates,
    }
)
_ANSWERS: Final = frozenset(
    {
        e.LeaderAndIsrResponseReceived,
        e.UpdateMetadataResponseReceived,
        e.StopReplicaResponseReceived,
        e.DescribeLogDirsResponseReceived,
    }
)
_REQUESTS: Final = frozenset(
    {
        e.AlterPartitionReceived,
        e.AllocateProducerIdsReceived,
        e.ControlledShutdownReceived,
    }
)
_ZOOKEEPER: Final = "ZooKeeper"


_MERGED: Final = _READ_AGAIN | _MODIFICATIONS | _ANSWERS | _REQUESTS


class WaitingEvent(NamedTuple):
    """The next event to be processed.

    Attributes:
        queued_at: When the oldest of the events came that it was made of.
    """

    event: e.ControllerEvent
    queued_at: float


class _Entry:
    """A place in the queue."""

    __slots__ = ("kind", "members", "place", "queued_at", "whole")

    def __init__(self, event: e.ControllerEvent, *, queued_at: float, place: int) -> None:
        self.kind = type(event)
        self.whole = event
        self.queued_at = queued_at
        self.place = place
        self.members: dict[Hashable, Any] = {}

    def join(self, event: e.ControllerEvent) -> None:
        """Take the members of another event of the same kind in; a name only once."""
        if not self.members:
            self._add(_members(self.whole))
        self._add(_members(event))

    def _add(self, members: tuple[Any, ...]) -> None:
        if self.kind in _MODIFICATIONS:
            self.members.update(dict.fromkeys(members))
        else:
            first = len(self.members)
            self.members.update(enumerate(members, first))

    def event(self) -> e.ControllerEvent:
        """What is to be processed."""
        if not self.members:
            return self.whole
        members = self.members if self.kind in _MODIFICATIONS else self.members.values()
        return self.kind(tuple(members))


def _members(event: e.ControllerEvent) -> tuple[Any, ...]:
    """A set event has one field, which holds its members."""
    (field,) = event.__struct_fields__
    members: tuple[Any, ...] = getattr(event, field)
    return members


def _sources(event: e.ControllerEvent) -> tuple[Hashable, ...]:
    """The source: ZooKeeper, brokers that answer, brokers that ask; none for what is no report."""
    kind = type(event)
    if kind in _ANSWERS:
        return tuple(dict.fromkeys(response.broker_id for response in _members(event)))
    if kind in (e.AlterPartitionReceived, e.AllocateProducerIdsReceived):
        return tuple(("requests", each.request.broker_id) for each in _members(event))
    if kind in _READ_AGAIN or kind in _MODIFICATIONS:
        return (_ZOOKEEPER,)
    return ()


class EventQueue:
    """The waiting events. What an operation costs does not depend on how many there are."""

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._last_of_kind: dict[type[e.ControllerEvent], _Entry] = {}
        self._last_words: dict[Hashable, dict[type[e.ControllerEvent], int]] = {}
        self._barrier = -1
        self._next_place = 0
        self._is_shutting_down = False

    def __len__(self) -> int:
        return len(self._entries)

    def kinds(self) -> list[str]:
        """Names of what waits, in order."""
        return [entry.kind.__name__ for entry in self._entries]

    def members(self, kind: type[e.ControllerEvent]) -> Iterator[Any]:
        """What waits in set events of a kind."""
        for entry in self._entries:
            if entry.kind is kind:
                yield from _members(entry.event())

    def put(self, event: e.ControllerEvent, *, now: float) -> None:
        """Append an event, or merge it with one that waits."""
        if isinstance(event, e.Expire):
            if not self._starts_with(e.Expire):
                self._entries.appendleft(_Entry(event, queued_at=now, place=-1))
        elif isinstance(event, e.Shutdown):
            self._shut_down(event, now)
        elif self._is_shutting_down and not isinstance(event, e.AnsweredEvent):
            return
        elif not self._merge(event):
            self._append(event, now)

    def take(self) -> WaitingEvent:
        """Remove the first event.

        Raises:
            IndexError: If none waits.
        """
        entry = self._entries.popleft()
        if self._last_of_kind.get(entry.kind) is entry:
            del self._last_of_kind[entry.kind]
        if not self._entries:
            self._last_words.clear()
        return WaitingEvent(entry.event(), entry.queued_at)

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self._last_of_kind.clear()
        self._last_words.clear()

    def _starts_with(self, kind: type[e.ControllerEvent]) -> bool:
        return bool(self._entries) and self._entries[0].kind is kind

    def _shut_down(self, event: e.Shutdown, now: float) -> None:
        kept = [x for x in self._entries if x.kind in (e.Expire, e.Shutdown)]
        owed = [x for x in self._entries if x not in kept and issubclass(x.kind, e.AnsweredEvent)]
        self.clear()
        shutdown = _Entry(event, queued_at=now, place=self._next_place)
        self._entries.extend([*kept, shutdown, *owed])
        self._is_shutting_down = True

    def _merge(self, event: e.ControllerEvent) -> bool:
        kind = type(event)
        waiting = self._last_of_kind.get(kind)
        if waiting is None:
            return False
        if kind in _READ_AGAIN:
            return True
        if waiting.place < self._barrier or self._has_spoken_since(waiting, event):
            return False
        waiting.join(event)
        self._note(event, waiting.place)
        return True

    def _has_spoken_since(self, waiting: _Entry, event: e.ControllerEvent) -> bool:
        """Whether a source of the event stands behind the waiting one with an event of another
        kind."""
        return any(
            place > waiting.place
            for source in _sources(event)
            for kind, place in self._last_words.get(source, {}).items()
            if kind is not waiting.kind
        )

    def _append(self, event: e.ControllerEvent, now: float) -> None:
        kind, place = type(event), self._next_place
        self._next_place += 1
        entry = _Entry(event, queued_at=now, place=place)
        self._entries.append(entry)
        if kind in _MERGED:
            self._last_of_kind[kind] = entry
            self._note(event, place)
        elif kind is not e.CommandsReceived:
            self._barrier = place

    def _note(self, event: e.ControllerEvent, place: int) -> None:
        for source in _sources(event):
            self._last_words.setdefault(source, {})[type(event)] = place
