"""One channel in the history of a controller, beside a channel that merges nothing.

A small controller makes batches as the real one does: it creates topics, elects, moves and stops
replicas, deletes topics and creates them again under the same name without waiting for anybody. One
broker gets every batch in full; another one, which is the same, gets what
:class:`~regent.protocol.pending_requests.PendingRequests` makes of them. In the end both must be in
the same state.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from regent.model.cluster import Broker, EndPoint
from regent.model.partition import (
    EPOCH_DURING_DELETE,
    NO_LEADER,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from regent.protocol.control_requests import (
    ControlRequest,
    ControlRequests,
    LeaderAndIsrRequest,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from regent.protocol.metadata_updates import SharedMetadata
from regent.protocol.partition_state import PartitionState
from regent.protocol.pending_requests import MAX_OVERTAKEN, PendingRequests
from tests.simulation.trace import require
from tests.support.unmerged_requests import requests_to

RECEIVER = 1
OTHERS = (2, 3)
TOPICS = ("a", "b")
PARTITIONS = 3
NAMES = tuple(TopicPartition(topic, index) for topic in TOPICS for index in range(PARTITIONS))

BROKERS = {
    broker_id: Broker(broker_id, 100, (EndPoint("PLAINTEXT", "PLAINTEXT", "host", broker_id),))
    for broker_id in (RECEIVER, *OTHERS)
}

STEPS = (
    "create",
    "delete",
    "elect",
    "change_isr",
    "stop",
    "remove_replica",
    "add_replica",
    "broker_down",
    "broker_up",
    "list_brokers",
    "take",
    "take_twice",
)


class Step(NamedTuple):
    """A method of :class:`ControllerModel`, or a request is sent; `which` chooses what and how."""

    kind: str
    which: int


class ControllerModel:
    """A controller of two topics. Every step gives batches, none where it does not apply."""

    def __init__(self) -> None:
        self.alive: dict[int, Broker] = dict(BROKERS)
        self.states: dict[TopicPartition, PartitionState] = {}
        self.topic_ids: dict[str, uuid.UUID] = {}
        self._created = 0

    def perform(self, step: Step) -> list[ControlRequests]:
        batches: Iterable[ControlRequests] = getattr(self, step.kind)(step.which)
        return list(batches)

    def create(self, which: int) -> Iterator[ControlRequests]:
        topic = TOPICS[which % len(TOPICS)]
        if topic in self.topic_ids:
            return
        self._created += 1
        self.topic_ids[topic] = uuid.UUID(int=self._created)
        replicas = OTHERS if which % 5 == 0 else (RECEIVER, *OTHERS)
        live = tuple(r for r in replicas if r in self.alive)
        if not live:
            del self.topic_ids[topic]
            return
        for index in range(PARTITIONS):
            leader = live[(which + index) % len(live)]
            self._set(TopicPartition(topic, index), leader, live, replicas, leader_epoch=0)
        yield self._batch(self._of(topic), new=True)

    def delete(self, which: int) -> Iterator[ControlRequests]:
        topic = TOPICS[which % len(TOPICS)]
        if topic not in self.topic_ids:
            return
        gone = self._of(topic)
        hosted = [tp for tp in gone if RECEIVER in self.states[tp].assignment.replicas]
        yield self._batch(gone, leadership=False, deleted=True)
        for delete in (False, True):
            stop = StopReplicaPartition(EPOCH_DURING_DELETE, delete)
            yield self._batch((), leadership=False, stops=dict.fromkeys(hosted, stop))
        for tp in gone:
            del self.states[tp]
        del self.topic_ids[topic]

    def elect(self, which: int) -> Iterator[ControlRequests]:
        yield from self._elect([tp for tp in self.states if tp == NAMES[which % len(NAMES)]], which)

    def _elect(self, partitions: list[TopicPartition], which: int) -> Iterator[ControlRequests]:
        for tp in partitions:
            before = self.states[tp]
            replicas = before.assignment.replicas
            live = tuple(r for r in replicas if r in self.alive)
            leader = live[which % len(live)] if live else NO_LEADER
            self._set(tp, leader, live or before.leader_and_isr.isr, replicas)
        if partitions:
            yield self._batch(partitions)

    def change_isr(self, which: int) -> Iterator[ControlRequests]:
        """A leader has changed its ISR: everybody is informed, no leader epoch rises."""
        tp = NAMES[which % len(NAMES)]
        if tp in self.states:
            state = self.states[tp]
            current, replicas = state.leader_and_isr, state.assignment.replicas
            self._set(tp, current.leader, current.isr, replicas, current.leader_epoch)
            yield self._batch([tp], leadership=False)

    def stop(self, which: int) -> Iterator[ControlRequests]:
        """The receiver's replica leaves the ISR, as on a failed log directory."""
        tp = NAMES[which % len(NAMES)]
        live = [r for r in OTHERS if r in self.alive]
        if tp not in self.states or not live:
            return
        replicas = self.states[tp].assignment.replicas
        if RECEIVER not in replicas:
            return
        self._set(tp, live[which % len(live)], tuple(live), replicas)
        epoch = self.states[tp].leader_and_isr.leader_epoch
        yield self._batch([tp], leadership=False, stops={tp: StopReplicaPartition(epoch, False)})

    def remove_replica(self, which: int) -> Iterator[ControlRequests]:
        """A reassignment takes the partition from the receiver, and does not wait for it."""
        tp = NAMES[which % len(NAMES)]
        live = tuple(r for r in OTHERS if r in self.alive)
        if tp not in self.states or not live:
            return
        if RECEIVER not in self.states[tp].assignment.replicas:
            return
        self._set(tp, live[which % len(live)], live, OTHERS)
        epoch = self.states[tp].leader_and_isr.leader_epoch
        yield self._batch([tp], leadership=False, stops={tp: StopReplicaPartition(epoch, False)})
        yield self._batch((), leadership=False, stops={tp: StopReplicaPartition(epoch, True)})

    def add_replica(self, which: int) -> Iterator[ControlRequests]:
        """Another reassignment brings it back."""
        tp = NAMES[which % len(NAMES)]
        live = tuple(r for r in OTHERS if r in self.alive)
        if tp not in self.states or not live:
            return
        if RECEIVER in self.states[tp].assignment.replicas:
            return
        self._set(tp, live[which % len(live)], live, (RECEIVER, *OTHERS))
        yield self._batch([tp], new=True)

    def broker_down(self, which: int) -> Iterator[ControlRequests]:
        broker_id = OTHERS[which % len(OTHERS)]
        if broker_id not in self.alive:
            return
        self.alive = {b: broker for b, broker in self.alive.items() if b != broker_id}
        yield self._batch((), leadership=False)
        led = [tp for tp, s in self.states.items() if s.leader_and_isr.leader == broker_id]
        yield from self._elect(led, which)

    def broker_up(self, which: int) -> Iterator[ControlRequests]:
        broker_id = OTHERS[which % len(OTHERS)]
        if broker_id in self.alive:
            return
        self.alive = {b: BROKERS[b] for b in BROKERS if b in self.alive or b == broker_id}
        yield self._batch((), leadership=False)
        leaderless = [tp for tp, s in self.states.items() if s.leader_and_isr.leader == NO_LEADER]
        yield from self._elect(leaderless, which)

    def list_brokers(self, which: int) -> Iterator[ControlRequests]:
        yield self._batch((), leadership=False)

    def _of(self, topic: str) -> list[TopicPartition]:
        return [tp for tp in self.states if tp.topic == topic]

    def _set(
        self,
        tp: TopicPartition,
        leader: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...],
        leader_epoch: int | None = None,
    ) -> None:
        before = self.states.get(tp)
        partition_epoch = 0
        if before is not None:
            partition_epoch = before.leader_and_isr.partition_epoch + 1
        if leader_epoch is None:
            assert before is not None
            leader_epoch = before.leader_and_isr.leader_epoch + 1
        self.states[tp] = PartitionState(
            tp.partition,
            LeaderAndIsr(leader, leader_epoch, isr, 1, partition_epoch),
            ReplicaAssignment(replicas),
        )

    def _batch(
        self,
        partitions: Iterable[TopicPartition],
        *,
        leadership: bool = True,
        new: bool = False,
        deleted: bool = False,
        stops: Mapping[TopicPartition, StopReplicaPartition] | None = None,
    ) -> ControlRequests:
        states = {tp: self.states[tp] for tp in partitions}
        dead = {
            tp: tuple(r for r in state.assignment.replicas if r not in self.alive)
            for tp, state in states.items()
        }
        hosted = {tp: new for tp, s in states.items() if RECEIVER in s.assignment.replicas}
        return ControlRequests(
            controller_id=7,
            controller_epoch=1,
            brokers=self.alive,
            topic_ids=dict(self.topic_ids),
            partitions=states,
            offline_replicas={tp: replicas for tp, replicas in dead.items() if replicas},
            leader_and_isr={RECEIVER: hosted} if leadership else {},
            update_metadata_receivers=tuple(self.alive),
            deleted_partitions=frozenset(states if deleted else ()),
            stop_replica={RECEIVER: stops or {}},
        )


class HostedReplica(NamedTuple):
    """A partition as a broker hosts it."""

    leader_epoch: int
    leader: int
    is_active: bool


class BrokerModel:
    """The receiver, as real brokers obey, with one failed log directory: it takes no replica that
    it does not have unless that is new (``Partition.makeFollower``)."""

    def __init__(self) -> None:
        self.known: list[int] = []
        self.metadata: dict[TopicPartition, tuple[LeaderAndIsr, tuple[int, ...]]] = {}
        self.replicas: dict[TopicPartition, HostedReplica] = {}
        self.logs: dict[TopicPartition, uuid.UUID] = {}
        self.committed_offsets: dict[tuple[TopicPartition, uuid.UUID], None] = {}

    def active_replica(self, tp: TopicPartition) -> HostedReplica | None:
        """A partition that it leads or follows: a stopped one is as good as none."""
        replica = self.replicas.get(tp)
        return replica if replica is not None and replica.is_active else None

    def obey(self, request: ControlRequest) -> None:
        match request:
            case LeaderAndIsrRequest():
                for tp, is_new in request.partitions.items():
                    self._become(tp, request.states[tp], request.topic_ids[tp.topic], is_new)
            case UpdateMetadataRequest():
                self._update(request)
            case StopReplicaRequest():
                for tp, stop in request.partitions.items():
                    self._stop(tp, stop)

    def _become(
        self, tp: TopicPartition, state: PartitionState, topic_id: uuid.UUID, is_new: bool
    ) -> None:
        current = state.leader_and_isr
        replica = self.replicas.get(tp)
        if self.logs.get(tp, topic_id) != topic_id:
            return  # INCONSISTENT_TOPIC_ID
        if replica is not None and current.leader_epoch <= replica.leader_epoch:
            return
        if tp not in self.logs and not is_new:
            return  # KAFKA_STORAGE_ERROR
        self.logs[tp] = topic_id
        if current.leader not in self.known and current.leader != RECEIVER:
            return  # a follower needs a leader that it knows to be alive; only the log is created
        self.replicas[tp] = HostedReplica(current.leader_epoch, current.leader, is_active=True)

    def _update(self, request: UpdateMetadataRequest) -> None:
        self.known = list(request.brokers.brokers)
        updates = request.updates
        for tp, state in updates.partitions.items():
            if tp in updates.deleted:
                self.metadata.pop(tp, None)
                self.committed_offsets = {
                    key: None for key in self.committed_offsets if key[0] != tp
                }
            else:
                offline = updates.offline_replicas.get(tp, ())
                self.metadata[tp] = (state.leader_and_isr, offline)
                self.committed_offsets[tp, updates.topic_ids[tp.topic]] = None

    def _stop(self, tp: TopicPartition, stop: StopReplicaPartition) -> None:
        replica = self.replicas.get(tp)
        if replica is not None and 0 <= stop.leader_epoch < replica.leader_epoch:
            return  # FENCED_LEADER_EPOCH
        if stop.delete:
            self.replicas.pop(tp, None)
            self.logs.pop(tp, None)
        elif replica is not None:
            self.replicas[tp] = replica._replace(is_active=False)


class ChannelHistory:
    """Plays steps and compares. Raises InvariantViolatedError."""

    def __init__(self, *, max_partitions: int) -> None:
        self._shared = SharedMetadata(max_partitions=max_partitions)
        self._max_partitions = max_partitions
        self.controller = ControllerModel()
        self.pending = PendingRequests(RECEIVER, shared=self._shared)
        self.unmerged, self.merged = BrokerModel(), BrokerModel()
        self._leadership_waits: dict[TopicPartition, None] = {}
        self._deletion_waits: dict[TopicPartition, None] = {}
        self._taken_since_stop = 0
        self._has_had_leadership = False

    def play(self, steps: Iterable[Step]) -> None:
        """Announce the brokers, as a failover does, perform the steps, send all that waits,
        compare."""
        for step in (Step("list_brokers", 0), *steps):
            if step.kind.startswith("take"):
                if self.pending:
                    self._take(twice=step.kind == "take_twice")
                continue
            for batch in self.controller.perform(step):
                self._add(batch)
        while self.pending:
            self._take(twice=False)
        self._compare()

    def _add(self, batch: ControlRequests) -> None:
        for request in requests_to(batch, RECEIVER):
            self.unmerged.obey(request)
        self.pending.add(batch, self._shared.of(batch))
        named = batch.leader_and_isr.get(RECEIVER, {})
        self._leadership_waits |= dict.fromkeys(named)
        for tp in named:
            self._deletion_waits.pop(tp, None)
        for tp, stop in batch.stop_replica[RECEIVER].items():
            if stop.delete:
                self._leadership_waits.pop(tp, None)
                self._deletion_waits[tp] = None
        require(
            self.pending.size <= 9 * len(NAMES) + self._max_partitions + 1,
            f"{self.pending.size} things wait",
        )

    def _take(self, *, twice: bool) -> None:
        request = self.pending.take()
        self._check_order(request)
        self.merged.obey(request)
        if twice:  # the answer was lost
            self.merged.obey(request)

    def _check_order(self, request: ControlRequest) -> None:
        if isinstance(request, LeaderAndIsrRequest):
            void = [tp for tp in request.partitions if tp in self._deletion_waits]
            require(not void, f"{void} are created to be deleted")
            missing = [tp for tp in self._leadership_waits if tp not in request.partitions]
            require(
                self._has_had_leadership or not missing,
                f"{missing} are missing from the first LeaderAndIsr",
            )
            self._has_had_leadership = True
            for tp in request.partitions:
                self._leadership_waits.pop(tp, None)
        if not isinstance(request, StopReplicaRequest):
            self._taken_since_stop += 1
            return
        recreated = all(tp in self._leadership_waits for tp in request.partitions)
        require(
            not self._leadership_waits or recreated or self._taken_since_stop >= MAX_OVERTAKEN,
            f"a stop of {list(request.partitions)} delays {list(self._leadership_waits)}",
        )
        self._taken_since_stop = 0
        for tp in request.partitions:
            self._deletion_waits.pop(tp, None)

    def _compare(self) -> None:
        want, have = self.unmerged, self.merged
        require(have.known == want.known, f"knows {have.known}, not {want.known}")
        require(have.metadata == want.metadata, f"announces {have.metadata}, not {want.metadata}")
        require(have.logs == want.logs, f"has the logs {have.logs}, not {want.logs}")
        kept = [key for key in have.committed_offsets if key not in want.committed_offsets]
        require(not kept, f"keeps committed offsets of {kept}")
        for tp in want.logs:
            state = self.controller.states.get(tp)
            if state is not None and state.leader_and_isr.leader in self.controller.alive:
                mine, theirs = have.active_replica(tp), want.active_replica(tp)
                require(mine == theirs, f"hosts {tp} as {mine}, not {theirs}")


def random_steps(rng: random.Random, count: int) -> list[Step]:
    """A history of some kinds of steps, where requests are sent now and then, or hardly ever."""
    sends = rng.choice((0.0, 0.05, 0.2, 0.5))
    others = [kind for kind in STEPS[:-2] if kind == "create" or rng.random() < 0.5]
    return [
        Step(rng.choice(STEPS[-2:] if rng.random() < sends else others), rng.randrange(1_000))
        for _ in range(count)
    ]


RECREATED_AND_MOVED_AWAY = (
    Step("create", 2),
    Step("elect", 0),
    Step("elect", 0),
    *(Step("take", 0),) * 3,
    Step("delete", 0),
    Step("create", 2),
    Step("remove_replica", 0),
)
"""Two deletions wait as one. The broker has the replica of the first, in a higher leader epoch."""


def play_history(seed: int) -> None:
    """A random history."""
    rng = random.Random(f"history {seed}")
    steps = random_steps(rng, rng.randrange(5, 100))
    ChannelHistory(max_partitions=rng.choice((1, 2, 1_000))).play(steps)
