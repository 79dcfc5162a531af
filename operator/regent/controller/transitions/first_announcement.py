"""What a new controller sends of all partitions, made in one walk over the cluster.

Brokers wait for it, so the walk goes topic by topic: what belongs to a partition is made at once,
and nothing is looked up among all partitions again. A standby makes the same beforehand, some at a
time (:mod:`regent.controller.state.leadership_entries`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter, is_, itemgetter
from typing import Final, NamedTuple, TypeGuard

from regent.controller.effects import GiveWay
from regent.controller.giving_way import LookedAt
from regent.controller.state.announced_states import AnnouncedStates
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.context import ControllerContext
from regent.controller.state.leadership_entries import Entries
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.model.partition_columns import PartitionColumns
from regent.protocol.collected_entries import CollectedEntries, TopicEntries
from regent.protocol.leader_and_isr import usual_suffix
from regent.protocol.partition_state import StateMaker, prefixes_of

COLLECTED_AT_ONCE: Final = 10_000
"""Partitions of which everything is made without letting go of the loop: some 20 ms."""

FLEXIBLE_SINCE: Final = (2, 4)
"""inter.broker.protocol.version from which LeaderAndIsr has the flexible encoding (KIP-482)."""

_number_of: Final = itemgetter(1)
_replicas_of: Final = attrgetter("replicas")
_is_unusual: Final = attrgetter("is_unusual")


class FirstAnnouncement(NamedTuple):
    """What each broker is sent of its replicas.

    Attributes:
        hosted: The partitions of each broker, and that they are not new there.
        led: Those that have leadership, which its request names. The same object as in ``hosted``
            if all have.
        entries: Of its request.
    """

    hosted: Mapping[int, Mapping[TopicPartition, bool]]
    led: Mapping[int, Mapping[TopicPartition, bool]]
    entries: Entries


def is_to_be_made(context: ControllerContext) -> bool:
    """Whether nothing was made beforehand, and brokers understand what is made here."""
    cluster = context.cluster
    return not cluster.announced_states and cluster.inter_broker_protocol >= FLEXIBLE_SINCE


async def make_first_announcement(context: ControllerContext) -> FirstAnnouncement:
    """Make the announced states of all partitions that have leadership, encode them, and collect
    both by broker."""
    cluster, looked_at = context.cluster, LookedAt(COLLECTED_AT_ONCE)
    suffix = usual_suffix(cluster.inter_broker_protocol)
    collector = _Collector(cluster.announced_states, suffix)
    leaderships = _leaderships(cluster)
    for topic in cluster.topics:
        partitions = cluster.partitions_of(topic)
        collector.add(topic, partitions, list(islice(leaderships, len(partitions))))
        if looked_at.is_a_part_with(len(partitions)):
            await GiveWay()
    hosts = collector.hosts.items()
    led = {broker_id: _none_is_new(host.led) for broker_id, host in hosts}
    without = {broker_id: host.without_leadership for broker_id, host in hosts}
    return FirstAnnouncement(
        {b: _none_is_new([*some, *without[b]]) if without[b] else some for b, some in led.items()},
        led,
        {broker_id: CollectedEntries(suffix, host.entries) for broker_id, host in hosts},
    )


def _leaderships(cluster: ClusterState) -> Iterator[LeaderAndIsr | None]:
    """Of all partitions, in their order. A cluster that was just read has them in that order, by
    the same names: then none is looked up."""
    leadership = cluster.leadership
    if len(leadership) == cluster.partition_count and all(
        map(is_, leadership, cluster.all_partitions())
    ):
        return iter(leadership.values())
    return map(leadership.get, cluster.all_partitions())


def _none_is_new(partitions: Sequence[TopicPartition]) -> PartitionColumns[bool]:
    return PartitionColumns(partitions, [False] * len(partitions))


class _Host:
    """What is collected for a broker.

    Attributes:
        led: Its partitions that have leadership.
        without_leadership: The others: of topics that are being created, or with a state that does
            not decode.
        entries: Entries of the former by topic, without topics of which a partition is being
            reassigned, or has a leader that recovers.
        prefixes: Leading bytes of the partitions of the topic that is being collected.
    """

    __slots__ = ("entries", "led", "prefixes", "without_leadership")

    def __init__(self) -> None:
        self.led: list[TopicPartition] = []
        self.without_leadership: list[TopicPartition] = []
        self.entries: dict[str, TopicEntries] = {}
        self.prefixes: list[bytes] = []


_Appends = tuple[Callable[[TopicPartition], None], Callable[[bytes], None]]
"""Add a partition, and its leading bytes, to what is collected for a broker."""


class _Collector:
    """Collects topics.

    Attributes:
        hosts: By broker.
    """

    def __init__(self, announced: AnnouncedStates, suffix: bytes) -> None:
        self._suffix = suffix
        self._announced = announced
        self._maker = StateMaker()
        self._appends: dict[tuple[int, ...], Sequence[_Appends]] = {}
        self.hosts: dict[int, _Host] = {}

    def add(
        self,
        topic: str,
        partitions: Mapping[TopicPartition, ReplicaAssignment],
        leaderships: Sequence[LeaderAndIsr | None],
    ) -> None:
        """All partitions of a topic."""
        if _all_known(leaderships):
            self._add_led(topic, partitions, leaderships)
            return
        led: dict[TopicPartition, ReplicaAssignment] = {}
        known: list[LeaderAndIsr] = []
        for (tp, assignment), leadership in zip(partitions.items(), leaderships, strict=True):
            if leadership is not None:
                led[tp] = assignment
                known.append(leadership)
                continue
            for broker_id in assignment.replicas:
                self._host(broker_id).without_leadership.append(tp)
        self._add_led(topic, led, known)

    def _add_led(
        self,
        topic: str,
        partitions: Mapping[TopicPartition, ReplicaAssignment],
        leaderships: Sequence[LeaderAndIsr],
    ) -> None:
        assignments = partitions.values()
        states = self._maker.make(list(map(_number_of, partitions)), leaderships, assignments)
        self._announced.update(zip(partitions, states, strict=True))
        prefixes = prefixes_of(states, flexible=True)
        replica_lists = list(map(_replicas_of, assignments))
        known = self._appends
        for tp, replicas, prefix in zip(partitions, replica_lists, prefixes, strict=True):
            found = known.get(replicas)
            if found is None:  # few partitions have others than those before
                found = known[replicas] = self._appends_of(replicas)
            for append_partition, append_prefix in found:
                append_partition(tp)
                append_prefix(prefix)
        is_usual = not any(map(_is_unusual, states))
        for broker_id in dict.fromkeys(chain.from_iterable(replica_lists)):
            host = self.hosts[broker_id]
            if is_usual:
                host.entries[topic] = TopicEntries.of(host.prefixes, suffix=self._suffix)
            host.prefixes.clear()

    def _appends_of(self, replicas: Sequence[int]) -> Sequence[_Appends]:
        hosts = [self._host(broker_id) for broker_id in replicas]
        return [(host.led.append, host.prefixes.append) for host in hosts]

    def _host(self, broker_id: int) -> _Host:
        host = self.hosts.get(broker_id)
        if host is None:
            host = self.hosts[broker_id] = _Host()
        return host


def _all_known(
    leaderships: Sequence[LeaderAndIsr | None],
) -> TypeGuard[Sequence[LeaderAndIsr]]:
    return all(leaderships)
