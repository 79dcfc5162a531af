"""Collects what one transition has to send to the brokers, and sends it as one merged batch.

Source: ``ControllerBrokerRequestBatch``. Two differences: the batch is a value that is dropped when
the transition fails (upstream keeps it, dirty, which breaks a controller that is elected again),
and what is sent of a partition is always its state at the end of the transition (KAFKA-9212).
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, compress
from operator import attrgetter, itemgetter
from typing import cast

from regent.controller.effects import SendRequests
from regent.controller.giving_way import give_way_after, in_parts
from regent.controller.state.context import ControllerContext
from regent.controller.state.leadership_entries import Entries
from regent.controller.state.states import ReplicaState
from regent.model.partition import (
    EPOCH_DURING_DELETE,
    INITIAL_LEADER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from regent.model.partition_columns import PartitionColumns
from regent.protocol.control_requests import ControlRequests, StopReplicaPartition
from regent.protocol.partition_state import PartitionState

_topic_of = itemgetter(0)
_index_of = itemgetter(1)
_replicas_of = attrgetter("assignment.replicas")


class _Stops(dict[tuple[int, bool], StopReplicaPartition]):
    """Stops by what they say: a batch has few different ones."""

    def __missing__(self, key: tuple[int, bool]) -> StopReplicaPartition:
        stop = self[key] = StopReplicaPartition(*key)
        return stop


class ControllerBrokerRequestBatch:
    """Requests of one transition, by receiver. Nothing leaves before :meth:`send`."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._clear()

    def _clear(self) -> None:
        self._leader_and_isr: dict[int, dict[TopicPartition, bool]] = {}
        self._first_leader_and_isr: Mapping[int, Mapping[TopicPartition, bool]] = {}
        self._entries: Entries = {}
        self._update_metadata: dict[TopicPartition, object] = {}  # in order; values say nothing
        self._former: dict[TopicPartition, None] = {}
        self._announces_everything = False
        self._receivers: dict[int, None] = {}
        self._everybody_receives = False
        self._stop_replica: dict[int, dict[TopicPartition, bool]] = {}
        self._unchecked_stops: dict[int, dict[TopicPartition, None]] = {}
        self._asked_for_log_dirs: dict[int, None] = {}
        self._asked_for_replicas: dict[int, None] = {}

    def add_leader_and_isr(
        self, broker_ids: Iterable[int], partitions: Collection[TopicPartition], *, is_new: bool
    ) -> None:
        """Send brokers the leadership of partitions whose replicas they host.

        Everybody else learns the same by UpdateMetadata. Partitions without leadership must not be
        passed. ``is_new`` sticks: once set for a broker and partition it stays. A replica that was
        stopped as its broker is shutting down is left out, whoever names it.
        """
        named = dict.fromkeys(partitions, is_new)
        for broker_id in broker_ids:
            if broker_id < 0:
                continue
            entries = self._leader_and_isr.setdefault(broker_id, {})
            if is_new or not entries:
                entries.update(named)
            else:
                for tp in partitions:
                    entries.setdefault(tp, False)
        self._everybody_receives = True
        self._update_metadata.update(named)

    def add_leaders_and_isrs(
        self, receivers: Mapping[TopicPartition, Iterable[int]], *, is_new: bool
    ) -> None:
        """The same for partitions each of which has brokers of its own to be sent to."""
        by_broker = self._leader_and_isr
        added: defaultdict[int, dict[TopicPartition, bool]] = defaultdict(dict)
        for tp, broker_ids in receivers.items():
            for broker_id in broker_ids:
                added[broker_id][tp] = is_new
        for broker_id, named in added.items():
            if broker_id < 0:
                continue
            entries = by_broker.setdefault(broker_id, named)
            if entries is named:
                continue
            if is_new:
                entries.update(named)
            else:
                for tp in named:
                    entries.setdefault(tp, False)
        if receivers:
            self.add_update_metadata(receivers)

    async def add_first_leader_and_isr(
        self,
        replicas: Mapping[int, Mapping[TopicPartition, bool]],
        entries: Entries,
    ) -> None:
        """The same for all brokers at a failover. No other LeaderAndIsr is in this batch.

        Args:
            replicas: By broker the partitions of its replicas, and whether they are new. They have
                leadership. Nobody else changes the mappings.
            entries: Of brokers in ``replicas``, as far as they were collected beforehand.
        """
        self._first_leader_and_isr = replicas
        self._entries = entries
        if not replicas:
            return
        for part in in_parts(chain.from_iterable(replicas.values())):
            self.add_update_metadata(part)
            await give_way_after(part)

    def add_first_of_everything(
        self, replicas: Mapping[int, Mapping[TopicPartition, bool]], entries: Entries
    ) -> None:
        """The same if ``replicas`` are those of all partitions of the cluster that have leadership:
        no partition is looked at here."""
        self._first_leader_and_isr = replicas
        self._entries = entries
        self._everybody_receives = self._announces_everything = bool(replicas)

    def repeat_leader_and_isr(
        self, broker_id: int, replicas: Mapping[TopicPartition, bool]
    ) -> None:
        """Send a broker, and nobody else, leadership again. The values say whether it is new."""
        if replicas:
            self._leader_and_isr.setdefault(broker_id, {}).update(replicas)
            self.add_update_metadata(replicas, broker_ids=(broker_id,))

    def add_update_metadata(
        self, partitions: Iterable[TopicPartition] = (), *, broker_ids: Iterable[int] | None = None
    ) -> None:
        """Announce partitions, and the broker list in any case, to brokers (all by default)."""
        if broker_ids is None:
            self._everybody_receives = True
        else:
            self._receivers.update(dict.fromkeys(broker_ids))
        self._update_metadata.update(dict.fromkeys(partitions))

    def add_former_partitions(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Have brokers forget what they may know of partitions, as far as these do not exist."""
        former = self._context.cluster.without_existing(partitions)
        if former:
            self._receivers.update(dict.fromkeys(broker_ids))
            self._former.update(dict.fromkeys(former))

    def add_stop_replica(
        self,
        broker_id: int,
        partitions: Collection[TopicPartition],
        *,
        delete: bool,
        checks_epoch: bool = True,
    ) -> None:
        """Stop replicas on a broker. ``delete`` sticks.

        Args:
            checks_epoch: Whether the broker is to refuse it if it knows a higher leader epoch (or,
                from 2.6 to 3.3, the same: KAFKA-13972).
        """
        entries = self._stop_replica.setdefault(broker_id, {})
        if delete or not entries:
            entries.update(dict.fromkeys(partitions, delete))
        else:
            for tp in partitions:
                entries.setdefault(tp, False)
        if not checks_epoch:
            self._unchecked_stops.setdefault(broker_id, {}).update(dict.fromkeys(partitions))

    def add_stray_deletion(self, broker_id: int, partitions: Collection[TopicPartition]) -> None:
        """Have a broker delete what it holds of former topics, whatever epoch it knows that under.

        The leadership of a topic that has the same name now says nothing about those replicas.
        """
        self.add_stop_replica(broker_id, partitions, delete=True, checks_epoch=False)

    def add_describe_log_dirs(self, broker_id: int) -> None:
        """Ask a broker which of its log directories are offline, once it has done all else."""
        self._asked_for_log_dirs[broker_id] = None

    def add_replica_listing(self, broker_ids: Iterable[int]) -> None:
        """Ask brokers which replicas are in their log directories, once they have done all else."""
        self._asked_for_replicas.update(dict.fromkeys(broker_ids))

    async def send(self) -> None:
        """Hand everything collected to the channels and empty the batch."""
        requests = await self._seal()
        self._clear()
        if requests is not None:
            await SendRequests(requests)

    async def _seal(self) -> ControlRequests | None:
        context = self._context
        brokers = context.cluster.brokers
        assert not (self._first_leader_and_isr and self._leader_and_isr), "a first one is alone"
        leader_and_isr = {
            broker_id: started
            for broker_id, entries in (self._first_leader_and_isr or self._leader_and_isr).items()
            if broker_id in brokers and (started := self._without_stopped(broker_id, entries))
        }
        stop_replica = {
            broker_id: self._stop_entries(entries, self._unchecked_stops.get(broker_id, ()))
            for broker_id, entries in self._stop_replica.items()
            if broker_id in brokers and entries
        }
        chosen = brokers if self._everybody_receives else self._receivers
        receivers = tuple(b for b in chosen if b in brokers)
        asked = tuple(b for b in self._asked_for_log_dirs if b in brokers)
        listing = tuple(b for b in self._asked_for_replicas if b in brokers)
        if not (leader_and_isr or stop_replica or receivers or asked or listing):
            return None
        partitions = await self._states()
        if self._former:
            partitions = {**partitions, **self._former_states()}
        return ControlRequests(
            controller_id=context.term.controller_id,
            controller_epoch=context.term.epoch,
            brokers=brokers,
            topic_ids=self._topic_ids(partitions, stop_replica),
            partitions=partitions,
            offline_replicas=self._offline_replicas(partitions),
            leader_and_isr=leader_and_isr,
            entries=self._entries,
            update_metadata_receivers=receivers,
            deleted_partitions=self._deleted_among(partitions),
            stop_replica=stop_replica,
            announced=context.announced,
            describe_log_dirs=asked,
            list_replicas=listing,
        )

    def _deleted_among(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        being_deleted = self._context.topics_to_be_deleted
        if not being_deleted:
            return frozenset(self._former)
        return frozenset(tp for tp in partitions if tp in self._former or tp.topic in being_deleted)

    def _former_states(self) -> dict[TopicPartition, PartitionState]:
        nothing = self._no_leadership()
        nowhere = ReplicaAssignment(())
        return {tp: PartitionState(tp.partition, nothing, nowhere) for tp in self._former}

    def _no_leadership(self) -> LeaderAndIsr:
        return LeaderAndIsr(NO_LEADER, INITIAL_LEADER_EPOCH, (), self._context.term.epoch, 0)

    def _without_stopped(
        self, broker_id: int, entries: Mapping[TopicPartition, bool]
    ) -> Mapping[TopicPartition, bool]:
        """Leave out what a broker that is shutting down was stopped from following: a LeaderAndIsr
        would have it fetch, and be in the ISR when it stops (KAFKA-14140).

        What this very batch stops stays: a former leader has to learn that it does not lead.
        """
        context = self._context
        if broker_id not in context.shutting_down_broker_ids:
            return entries
        stops = self._stop_replica.get(broker_id, {})
        if entries.keys() <= stops.keys():
            return entries
        leadership = context.cluster.leadership
        return {
            tp: is_new
            for tp, is_new in entries.items()
            if tp in stops
            or context.replica_state(broker_id, tp) is not ReplicaState.OFFLINE
            or (tp in leadership and broker_id in leadership[tp].isr)
        }

    async def _states(self) -> Mapping[TopicPartition, PartitionState]:
        """State of every partition announced, which includes those of every LeaderAndIsr.

        The ones without leadership are left out, unless their topic is to be deleted: brokers may
        know them from before their state became unreadable, and are to forget them.

        A value is made once for a leadership and an assignment, and with it its bytes.
        """
        cluster = self._context.cluster
        announced, leadership = cluster.announced_states, cluster.leadership
        wanted: Iterable[TopicPartition] = self._update_metadata
        if self._announces_everything:
            if len(announced) == len(leadership):
                return PartitionColumns.of(announced)
            wanted = (tp for tp in cluster.all_partitions() if tp in leadership)
        known: dict[TopicPartition, PartitionState | None] = {}
        for part in in_parts(wanted):
            some = dict(zip(part, map(announced.get, part), strict=True))
            if not all(some.values()):
                self._make_missing(some)
            known.update(some)
            await give_way_after(part)
        return known  # type: ignore[return-value]

    def _make_missing(self, known: dict[TopicPartition, PartitionState | None]) -> None:
        cluster = self._context.cluster
        missing = [tp for tp, state in known.items() if state is None]
        leaderships = list(map(cluster.leadership.get, missing))
        assignments = cluster.assignments_of_each(missing)
        if not (all(leaderships) and all(assignments)):
            self._make_where_possible(known, missing)
            return
        made = dict(
            zip(
                missing,
                map(
                    PartitionState,
                    map(_index_of, missing),
                    cast("list[LeaderAndIsr]", leaderships),
                    cast("list[ReplicaAssignment]", assignments),
                ),
                strict=True,
            )
        )
        known.update(made)
        cluster.announced_states.update(made)

    def _make_where_possible(
        self, known: dict[TopicPartition, PartitionState | None], missing: Iterable[TopicPartition]
    ) -> None:
        context, cluster = self._context, self._context.cluster
        nothing = self._no_leadership()
        for tp in missing:
            assignment, current = cluster.assignment(tp), cluster.leadership.get(tp)
            is_deleted = tp.topic in context.topics_to_be_deleted
            if assignment is None or (current is None and not is_deleted):
                del known[tp]
            elif current is None:
                known[tp] = PartitionState(tp[1], nothing, assignment)
            else:
                state = PartitionState(tp[1], current, assignment)
                known[tp] = cluster.announced_states[tp] = state

    def _topic_ids(
        self,
        partitions: Iterable[TopicPartition],
        stop_replica: Mapping[int, Iterable[TopicPartition]],
    ) -> dict[str, uuid.UUID]:
        known = self._context.cluster.topic_ids
        if not known:
            return {}
        if self._announces_everything:
            return dict(known)
        topics = dict.fromkeys(map(_topic_of, chain(partitions, *stop_replica.values())))
        return {topic: known[topic] for topic in topics if topic in known}

    def _stop_entries(
        self, entries: Mapping[TopicPartition, bool], unchecked: Collection[TopicPartition]
    ) -> dict[TopicPartition, StopReplicaPartition]:
        leadership = self._context.cluster.leadership
        being_deleted = self._context.topics_to_be_deleted
        made = _Stops()
        result: dict[TopicPartition, StopReplicaPartition] = {}
        for tp, delete in entries.items():
            if tp[0] in being_deleted:
                epoch = EPOCH_DURING_DELETE
            elif tp in unchecked:
                epoch = NO_EPOCH
            else:
                current = leadership.get(tp)
                epoch = NO_EPOCH if current is None else current.leader_epoch
            result[tp] = made[epoch, delete]
        return result

    def _offline_replicas(
        self, states: Mapping[TopicPartition, PartitionState]
    ) -> dict[TopicPartition, tuple[int, ...]]:
        context = self._context
        if context.all_hosts_are_online:
            return {}
        replicas = list(map(_replicas_of, states.values()))
        if context.has_offline_replicas:
            dead = [
                tuple(r for r in each if not context.is_replica_online(r, tp))
                for tp, each in zip(states, replicas, strict=True)
            ]
        else:
            by_replicas = {
                each: tuple(r for r in each if not context.is_broker_online(r))
                for each in dict.fromkeys(replicas)
            }
            dead = list(map(by_replicas.__getitem__, replicas))
        return dict(zip(compress(states, dead), filter(None, dead), strict=True))
