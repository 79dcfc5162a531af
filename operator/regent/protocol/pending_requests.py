"""What one broker still has to be informed of: the newest state only.

Kafka's controller has a queue of requests per broker, which grows as long as the broker does not
answer (``ControllerChannelManager``). Here a batch is merged with what waits already, so what waits
is bounded by the number of partitions. The orders that must be kept are in ``docs/way-out.md``.
Pure: who sends, and when, is the channel's business.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

from regent.model.cluster import Broker
from regent.model.partition import TopicPartition
from regent.protocol.collected_entries import NOTHING_COLLECTED, CollectedEntries
from regent.protocol.control_requests import (
    NO_PARTITIONS,
    BrokerList,
    ControlHeader,
    ControlRequest,
    ControlRequests,
    DescribeLogDirsRequest,
    LeaderAndIsrRequest,
    PartitionUpdates,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from regent.protocol.leadership_answers import LeadershipAnswers
from regent.protocol.metadata_updates import Metadata, SharedMetadata
from regent.protocol.partition_state import PartitionState

MAX_OVERTAKEN: Final = 10
"""Requests that may overtake a waiting StopReplica: deletions must not delay leadership, but they
must come to an end, too."""

_SLACK: Final = 1_000
"""Partitions in updates that may wait, beyond twice the different ones, before all are merged."""


def receivers_of(requests: ControlRequests) -> tuple[int, ...]:
    """The brokers that a batch has something for."""
    receivers = dict.fromkeys(b for b, named in requests.leader_and_isr.items() if named)
    receivers |= dict.fromkeys(requests.update_metadata_receivers)
    receivers |= dict.fromkeys(b for b, named in requests.stop_replica.items() if named)
    receivers |= dict.fromkeys((*requests.describe_log_dirs, *requests.list_replicas))
    return tuple(receivers)


def leadership_in(request: ControlRequest | None) -> Collection[TopicPartition]:
    """The partitions of whose leadership a request informs its broker."""
    return request.partitions if isinstance(request, LeaderAndIsrRequest) else ()


_deletes: Final = attrgetter("delete")


class PendingRequests:
    """Requests that wait for one life of a broker.

    Attributes:
        answers: Which batches the broker has answered.
        metadata: Waiting UpdateMetadata, and the batches that the broker has acknowledged.

    Args:
        broker_id: The receiver.
        shared: Merges updates once for all receivers; says how large a request may be.
    """

    def __init__(self, broker_id: int, *, shared: SharedMetadata) -> None:
        self.answers = LeadershipAnswers()
        self._broker_id = broker_id
        self._shared = shared
        self._header = ControlHeader(-1, -1, broker_id, -1)
        self._leadership = _PendingLeaderAndIsr(max_partitions=shared.max_partitions)
        self.metadata = PendingUpdateMetadata(shared)
        # Of re-created partitions, whose LeaderAndIsr waits, too. It comes behind these.
        self._deletions_before: dict[TopicPartition, StopReplicaPartition] = {}
        self._stops: dict[TopicPartition, StopReplicaPartition] = {}
        self._overtaken = 0
        self._asks_for_log_dirs = False
        self._asks_for_replicas = False

    def __bool__(self) -> bool:
        # A deletion ahead of a LeaderAndIsr never waits without that.
        return bool(self._leadership or self.metadata or self._stops or self._asks_for_log_dirs)

    @property
    def size(self) -> int:
        """Partitions that wait, counted once for each kind of request (those of UpdateMetadata
        perhaps more often, until they are merged); a list of brokers counts one, as does the
        question for log directories."""
        return (
            len(self._leadership)
            + self.metadata.size
            + len(self._deletions_before)
            + len(self._stops)
            + self._asks_for_log_dirs
        )

    @property
    def leadership(self) -> Collection[TopicPartition]:
        """The partitions of whose leadership the broker is to be informed."""
        return self._leadership.partitions

    @property
    def oldest_unanswered(self) -> int | None:
        """The oldest batch of whose leadership the broker has not answered something, or nobody has
        read the answer; None: there is none."""
        return self.answers.oldest(is_waiting=bool(self._leadership))

    @property
    def next_update(self) -> PartitionUpdates | None:
        """What the next UpdateMetadata will say of partitions, if nothing is added before: None if
        other requests come first, or if several updates wait, which are merged."""
        is_next = not (self._leadership or self._deletions_before)
        return self.metadata.only_update if is_next else None

    def add(self, requests: ControlRequests, metadata: Metadata, number: int = 0) -> None:
        """Add what a batch has for the broker.

        Args:
            requests: The batch, which lists the broker as alive.
            metadata: What ``shared`` has made of it for all channels.
            number: Of the batch, for :attr:`oldest_unanswered` and :attr:`metadata`.
        """
        broker_id = self._broker_id
        self._header = ControlHeader(
            requests.controller_id,
            requests.controller_epoch,
            broker_id,
            requests.brokers[broker_id].epoch,
        )
        replicas = requests.leader_and_isr.get(broker_id)
        if replicas:
            is_first = self._leadership.is_first and not self._leadership
            self.metadata.leadership_follows(is_first=is_first)
            entries = requests.entries.get(broker_id, NOTHING_COLLECTED)
            self.answers.added(number, is_first=not self._leadership)
            self._leadership.add(replicas, requests, entries)
            self._leadership_overtakes_stops(replicas)
        if broker_id in requests.update_metadata_receivers:
            self.metadata.add(metadata, number)
        stops = requests.stop_replica.get(broker_id)
        if stops:
            self._add_stops(stops)
        if broker_id in requests.list_replicas:
            self._asks_for_log_dirs = self._asks_for_replicas = True
        elif broker_id in requests.describe_log_dirs:
            self._asks_for_log_dirs = True

    def _leadership_overtakes_stops(self, replicas: Iterable[TopicPartition]) -> None:
        """A stop is void once the replica is to go on; a deletion is not, and comes first."""
        if not self._stops:
            return
        for tp in replicas:
            stop = self._stops.pop(tp, None)
            if stop is not None and stop.delete:
                self._deletions_before[tp] = stop

    def _add_stops(self, stops: Mapping[TopicPartition, StopReplicaPartition]) -> None:
        if not self._stops and not any(map(_deletes, stops.values())):
            self._stops.update(stops)
            return
        for tp, stop in stops.items():
            before = self._stops.get(tp)
            if stop.delete:
                self._leadership.discard(tp)
                before = self._deletions_before.pop(tp, before)
            self._stops[tp] = _merge_stops(before, stop)

    def take(self) -> ControlRequest:
        """The next request to send. There must be one.

        It is to be answered before the next one is taken: the orders rest on that.
        """
        if self._deletions_before:
            return self._take_stops(self._deletions_before)
        if self._stops and self._overtaken >= MAX_OVERTAKEN:
            due = {tp: s for tp, s in self._stops.items() if tp not in self._leadership}
            if due:
                return self._take_stops(self._stops, among=due)
        if self._stops:
            self._overtaken += 1
        if self._leadership and not self.metadata.is_due:
            if self.metadata.must_list_brokers_first:
                return self.metadata.take_broker_list(self._header)
            request = self._leadership.take(self._header)
            self.answers.sent()
            if not self._leadership:
                self.metadata.leadership_was_taken()
            return request
        if self.metadata:
            return self.metadata.take(self._header)
        if self._stops:
            return self._take_stops(self._stops)
        # Last: the answer is about everything that was deleted before.
        lists_replicas = self._asks_for_replicas
        self._asks_for_log_dirs = self._asks_for_replicas = False
        return DescribeLogDirsRequest(self._header, lists_replicas)

    def _take_stops(
        self,
        waiting: dict[TopicPartition, StopReplicaPartition],
        *,
        among: Mapping[TopicPartition, StopReplicaPartition] | None = None,
    ) -> StopReplicaRequest:
        """Deletions first, as in Kafka, and never both kinds at once: the oldest versions have one
        flag for all partitions."""
        candidates = waiting if among is None else among
        delete = any(map(_deletes, candidates.values()))
        chosen = (tp for tp, stop in candidates.items() if stop.delete is delete)
        some = list(islice(chosen, self._shared.max_partitions))
        self._overtaken = 0
        return StopReplicaRequest(
            self._header, dict(zip(some, map(waiting.pop, some), strict=True))
        )


def _merge_stops(
    before: StopReplicaPartition | None, stop: StopReplicaPartition
) -> StopReplicaPartition:
    """Deletion sticks, and so does what it was to delete: a later stop may be of a re-created
    partition, whose epochs begin at 0, and the broker would refuse it for the replica that it has.
    Otherwise the newest epoch counts."""
    if before is None or not before.delete:
        return stop
    skips_check = min(before.leader_epoch, stop.leader_epoch) < 0
    pick = min if skips_check else max
    return StopReplicaPartition(pick(before.leader_epoch, stop.leader_epoch), delete=True)


class _PendingLeaderAndIsr:
    """Leadership that waits. Takes over the mappings of a batch as they are, and copies them only
    to merge: a failover has one for each broker with all its replicas.

    Attributes:
        is_first: Whether none was taken yet.
    """

    def __init__(self, *, max_partitions: int) -> None:
        self._max_partitions = max_partitions
        self.is_first = True
        self._clear()

    def _clear(self) -> None:
        self._is_own = False
        self._partitions: Mapping[TopicPartition, bool] = {}
        self._states: Mapping[TopicPartition, PartitionState] = {}
        self._topic_ids: Mapping[str, uuid.UUID] = {}
        self._brokers: Mapping[int, Broker] = {}
        self._entries = NOTHING_COLLECTED

    def __len__(self) -> int:
        return len(self._partitions)

    def __contains__(self, tp: TopicPartition) -> bool:
        return tp in self._partitions

    @property
    def partitions(self) -> Collection[TopicPartition]:
        return self._partitions.keys()

    def add(
        self,
        replicas: Mapping[TopicPartition, bool],
        requests: ControlRequests,
        entries: CollectedEntries,
    ) -> None:
        self._brokers = requests.brokers
        if not self._partitions:
            self._is_own = False
            self._entries = entries
            self._partitions, self._states = replicas, requests.partitions
            self._topic_ids = requests.topic_ids
            return
        partitions, states, topic_ids = self._own()
        for tp, is_new in replicas.items():
            partitions[tp] = is_new or partitions.get(tp, False)
            states[tp] = requests.partitions[tp]
        for topic in dict.fromkeys(tp.topic for tp in replicas):
            topic_ids.pop(topic, None)
            if topic in requests.topic_ids:
                topic_ids[topic] = requests.topic_ids[topic]

    def discard(self, tp: TopicPartition) -> None:
        if tp in self._partitions:
            partitions, states, _ = self._own()
            del partitions[tp], states[tp]

    def take(self, header: ControlHeader) -> LeaderAndIsrRequest:
        """The first one whole, as it makes a broker begin to write high-watermark checkpoints:
        what is missing from it loses its own (``ReplicaManager.becomeLeaderOrFollower``)."""
        if self.is_first or len(self._partitions) <= self._max_partitions:
            self.is_first = False
            request = LeaderAndIsrRequest(
                header,
                self._partitions,
                self._states,
                self._topic_ids,
                self._brokers,
                self._entries,
            )
            self._clear()
            return request
        partitions, states, topic_ids = self._own()
        some = list(islice(partitions, self._max_partitions))
        return LeaderAndIsrRequest(
            header,
            {tp: partitions.pop(tp) for tp in some},
            {tp: states.pop(tp) for tp in some},
            dict(topic_ids),
            self._brokers,
        )

    def _own(
        self,
    ) -> tuple[
        dict[TopicPartition, bool], dict[TopicPartition, PartitionState], dict[str, uuid.UUID]
    ]:
        if not self._is_own:
            self._is_own = True
            self._entries = NOTHING_COLLECTED  # what they hold is about to change
            known = self._states
            # by items: of what is no dict each value would be asked for by itself
            self._partitions = dict(self._partitions.items())
            self._states = {tp: known[tp] for tp in self._partitions}
            self._topic_ids = dict(self._topic_ids)
        return self._partitions, self._states, self._topic_ids  # type: ignore[return-value]


class _Update(NamedTuple):
    """An update that waits.

    Attributes:
        batch: Number of the oldest batch in the update.
    """

    content: PartitionUpdates
    batch: int


class PendingUpdateMetadata:
    """Metadata that waits: updates in the order of their batches, and the newest list of brokers.

    Attributes:
        is_due: Whether what waits must not be overtaken: a LeaderAndIsr has overtaken it before, or
            the first one follows. A broker that has started names brokers to clients from its first
            UpdateMetadata on, and would deny the topics that it does not know.
    """

    def __init__(self, shared: SharedMetadata) -> None:
        self._shared = shared
        self._updates: deque[_Update] = deque()
        self._brokers_batch = 0
        self._in_flight: int | None = None
        self._is_acknowledged = False
        self._brokers = BrokerList({})
        self._sent_brokers: BrokerList | None = None
        self._brokers_wait = False
        self._leadership_is_newer = False
        self._precedes_leadership = False
        self._due = 0
        self._size = 0
        self._compacted_size = 0
        self.is_due = False

    def __bool__(self) -> bool:
        return self._brokers_wait or bool(self._updates)

    @property
    def size(self) -> int:
        return self._size + self._brokers_wait

    @property
    def only_update(self) -> PartitionUpdates | None:
        """The update that waits, if it is one."""
        return self._updates[0].content if len(self._updates) == 1 else None

    @property
    def oldest(self) -> int | None:
        """The oldest batch of which the broker has not acknowledged all metadata; None: there is
        none. 0 before the first acknowledgement, and from a refusal until the next one."""
        if not self._is_acknowledged:
            return 0
        numbers = (n for n in (self._in_flight, self._waiting) if n is not None)
        return min(numbers, default=None)

    @property
    def _waiting(self) -> int | None:
        """The oldest batch of which something waits."""
        if self._brokers_wait:
            return self._brokers_batch
        return self._updates[0].batch if self._updates else None

    def answered(self, *, is_accepted: bool) -> None:
        """The broker has answered the request that was taken last."""
        self._in_flight = None
        self._is_acknowledged = is_accepted

    @property
    def must_list_brokers_first(self) -> bool:
        """Whether leadership that waits belongs to a newer batch than an update that waits, and
        the broker does not know the newest list: its leader may be new in it."""
        return self._leadership_is_newer and bool(self) and not self._broker_list_is_known

    @property
    def _broker_list_is_known(self) -> bool:
        return self._brokers is self._sent_brokers

    def leadership_follows(self, *, is_first: bool) -> None:
        """Leadership of a newer batch begins to wait.

        Args:
            is_first: Whether none was sent, nor waits.
        """
        if is_first and self._updates:
            self._precedes_leadership = self.is_due = True
            self._due = len(self._updates)
        self._leadership_is_newer = self._leadership_is_newer or bool(self)

    def leadership_was_taken(self) -> None:
        """No leadership waits any more. What does has its turn before any newer one."""
        self._leadership_is_newer = False
        self.is_due = bool(self)
        self._due = len(self._updates)

    def add(self, metadata: Metadata, number: int) -> None:
        brokers, updates = metadata
        added = sum(len(update.partitions) for update in updates)
        if not self._updates:
            self._compacted_size = added
        self._brokers = brokers
        self._updates += (_Update(update, number) for update in updates)
        self._size += added
        if not self._updates and not self._brokers_wait:
            self._brokers_wait, self._brokers_batch = True, number
        slack = min(self._shared.max_partitions, _SLACK)
        if self._size > 2 * self._compacted_size + slack:
            self._compact()

    def _compact(self) -> None:
        """Merge everything. What waits has more than doubled since the last time, so this is cheap
        in the long run, and what waits stays bounded."""
        self._updates = deque(self._merged(self._updates))
        self._size = self._compacted_size = _size_of(self._updates)
        self._due = len(self._updates)

    def _merged(self, updates: Collection[_Update]) -> list[_Update]:
        oldest = min(each.batch for each in updates)
        merged = self._shared.merge(each.content for each in updates)
        return [_Update(each, oldest) for each in merged]

    def take_broker_list(self, header: ControlHeader) -> UpdateMetadataRequest:
        """An UpdateMetadata without partitions."""
        self._in_flight = self._waiting
        return self._request(header, NO_PARTITIONS)

    def take(self, header: ControlHeader) -> UpdateMetadataRequest:
        """As many updates as fit into one request, merged."""
        self._in_flight = self._waiting
        count, size = 0, 0
        for update in islice(self._updates, self._due if self.is_due else None):
            size += len(update.content.partitions)
            if count and size > self._shared.max_partitions:
                break
            count += 1
        front = [self._updates.popleft() for _ in range(count)]
        if count > 1:
            self._size -= _size_of(front)
            front = self._merged(front)
            self._size += _size_of(front)
        self._updates.extendleft(reversed(front[1:]))
        self._due = max(self._due - count + len(front[1:]), 0)
        self.is_due = self._precedes_leadership = self._precedes_leadership and self._due > 0
        chosen = front[0].content if front else NO_PARTITIONS
        self._size -= len(chosen.partitions)
        return self._request(header, chosen)

    def _request(self, header: ControlHeader, updates: PartitionUpdates) -> UpdateMetadataRequest:
        self._brokers_wait = False
        self._sent_brokers = self._brokers
        return UpdateMetadataRequest(header, self._brokers, updates)


def _size_of(updates: Iterable[_Update]) -> int:
    return sum(len(each.content.partitions) for each in updates)
