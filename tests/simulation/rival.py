"""A broker's own controller, much simplified: it takes ``/controller`` when it vanishes.

What matters of it: it wins by the same transaction, its writes are fenced one by one so that it can
be overtaken between any two of them, it elects and shrinks ISRs, may move leaders, creates new
partitions, tells the brokers everything, and acts as the controller until a write fails or it
looks. It leaves topics that are to be deleted to its successor.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from regent.controller.transitions import election
from regent.model.cluster import Broker
from regent.model.errors import MalformedZNodeError
from regent.model.partition import (
    NO_LEADER,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from regent.protocol.control_requests import ControlRequests, ControlResponse
from regent.protocol.partition_state import PartitionState
from regent.zk_data import paths
from regent.zk_data.brokers import decode_broker, is_controller_registration
from regent.zk_data.controller import (
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    WriteResult,
    Written,
    ZkError,
)
from regent.zk_data.topics import decode_partition_state, decode_topic, encode_partition_state
from tests.simulation.broker import STALE_CONTROLLER_EPOCH, SimulatedBroker
from tests.simulation.network import Channel, RequestQueue
from tests.simulation.rival_endpoint import RivalEndpoint, not_controller
from tests.simulation.trace import InvariantViolatedError

if TYPE_CHECKING:
    from tests.simulation.endpoint import BrokerRequest
    from tests.simulation.world import World


class _MovedError(Exception):
    """The fence has closed."""


class RivalController:
    """The controller inside one broker. Shares the broker's session and its fate."""

    def __init__(self, world: World, broker: SimulatedBroker) -> None:
        self._world = world
        self._broker = broker
        self.name = f"rival-{broker.broker_id}"
        self._channels: dict[int, Channel[RequestQueue]] = {}
        self._reign: Iterator[None] | None = None
        self._session_id = 0
        self._known: dict[int, Broker] = {}
        self._seen_zxid = self._outrun_at = -1
        self.epoch = 0
        self._epoch_version = 0

    @property
    def broker_id(self) -> int:
        return self._broker.broker_id

    @property
    def broker_name(self) -> str:
        return self._broker.name

    @property
    def is_active(self) -> bool:
        return self._reign is not None

    @property
    def is_awake(self) -> bool:
        """Whether anything moves in its process."""
        return not self._broker.is_paused

    @property
    def can_send(self) -> bool:
        return self.is_awake

    def receive(self, response: ControlResponse) -> None:
        """Answers are of no interest, but that somebody newer is about is noticed some day."""
        if response.error_code == STALE_CONTROLLER_EPOCH and self._world.rng.random() < 0.5:
            self._resign("a broker obeys somebody else")

    def act(self) -> bool:
        """One ZooKeeper transaction, or one batch of requests."""
        client = self._broker.client
        if self._broker.is_paused:
            return False
        if not self._broker.is_running or client is None or not client.is_connected:
            if self._reign is not None and not self._broker.is_running:
                self._resign("the broker has died")
            return False
        if self._reign is not None and client.session_id != self._session_id:
            self._resign("the session is gone")
        if self._reign is None:
            return self._stand_for_election()
        if self._is_deposed() and self._world.rng.random() < 0.3:
            self._resign("another controller is active")
            return True
        if self._seen_zxid == self._world.safety.last_zxid:
            return False
        try:
            next(self._reign)
        except _MovedError:
            self._resign("a write was refused")
        except StopIteration:
            self._seen_zxid = self._world.safety.last_zxid
            self._reign = self._round(is_first=False)
        return True

    def _is_deposed(self) -> bool:
        node = self._world.zookeeper.get(paths.CONTROLLER)
        try:
            return node is None or decode_controller(node.data) != self._broker.broker_id
        except MalformedZNodeError:
            return True

    def _stand_for_election(self) -> bool:
        client = self._broker.client
        assert client is not None
        zxid = self._world.zookeeper.zxid
        if self._outrun_at == zxid:
            return False
        if client.get_data([paths.CONTROLLER]) != [None]:
            self._outrun_at = zxid
            return False
        (node,) = client.get_data([paths.CONTROLLER_EPOCH])
        if node is None:
            client.multi([Create(paths.CONTROLLER_EPOCH, encode_controller_epoch(0))])
            return True
        epoch = decode_controller_epoch(node.data) + 1
        content = encode_controller(self._broker.broker_id, self._world.clock.now_ms())
        results = client.multi(
            [
                Create(paths.CONTROLLER, content, ephemeral=True),
                SetData(paths.CONTROLLER_EPOCH, encode_controller_epoch(epoch), node.version),
            ]
        )
        raised = results[1]
        assert isinstance(raised, Written), "nobody else moves during a step"
        self.epoch, self._epoch_version = epoch, raised.version
        self._session_id = client.session_id
        self._known = {}
        self._seen_zxid = -1
        self._world.trace.line(self.name, "becomes the controller", f"epoch={epoch}")
        self._reign = self._round(is_first=True)
        return True

    def _resign(self, reason: str) -> None:
        self._world.trace.line(self.name, "resigns", reason)
        self._reign = None
        for channel in self._channels.values():
            self._world.network.close(channel)
        self._channels.clear()

    # Requests of brokers

    def answer(self, request: BrokerRequest) -> Any:
        """What a broker's controller answers; None: the connection is closed."""
        client = self._broker.client
        if not self._broker.is_running or client is None or not client.is_connected:
            return None
        if self._reign is None or client.session_id != self._session_id:
            return not_controller(request)
        endpoint = RivalEndpoint(self._world, self.name, self.epoch, self._known, self._write)
        try:
            return endpoint.answer(request)
        except _MovedError:
            self._resign("a write was refused")
            return not_controller(request)

    # One look at everything

    def _round(self, *, is_first: bool) -> Iterator[None]:
        """Look at everything, put it in order, inform all brokers. Each yield ends a step."""
        yield from self._drop_notifications()
        brokers = self._read_brokers()
        bounced = [b for b, known in self._known.items() if b in brokers and brokers[b] != known]
        changed = brokers != self._known
        for broker_id in [b for b in self._channels if b not in brokers or b in bounced]:
            self._world.network.close(self._channels.pop(broker_id))
        for broker_id in brokers:
            if broker_id not in self._channels:
                self._channels[broker_id] = self._world.network.open(
                    self, broker_id, RequestQueue(broker_id)
                )
        self._known = brokers
        if changed or is_first:
            self._send(brokers, {})
            yield
        assignments = self._read_assignments()
        yield
        states: dict[TopicPartition, PartitionState] = {}
        for tp, assignment in assignments.items():
            state = yield from self._settle(tp, assignment, brokers, bounced)
            if state is not None:
                states[tp] = PartitionState(tp.partition, state, assignment)
        self._send(brokers, states)
        yield

    def _write(self, operations: list[Operation]) -> list[WriteResult]:
        client = self._broker.client
        assert client is not None
        guard = Check(paths.CONTROLLER_EPOCH, self._epoch_version)
        results = client.multi([guard, *operations])
        if results[0] is ZkError.BAD_VERSION:
            raise _MovedError
        return list(results[1:])

    def _drop_notifications(self) -> Iterator[None]:
        for child in self._world.zookeeper.children(paths.ISR_CHANGE_NOTIFICATION):
            self._write([Delete(paths.isr_change_notification(child))])
            yield

    def _read_brokers(self) -> dict[int, Broker]:
        brokers: dict[int, Broker] = {}
        for child in self._world.zookeeper.children(paths.BROKER_IDS):
            broker_id = paths.broker_id_of(child)
            node = self._world.zookeeper.get(f"{paths.BROKER_IDS}/{child}")
            if broker_id is None or node is None:
                continue
            if is_controller_registration(node):
                raise InvariantViolatedError(f"{self.name} takes Regent {broker_id} for a broker")
            try:
                brokers[broker_id] = decode_broker(broker_id, node)
            except MalformedZNodeError:
                continue
        return brokers

    def _read_assignments(self) -> dict[TopicPartition, ReplicaAssignment]:
        assignments: dict[TopicPartition, ReplicaAssignment] = {}
        for topic in self._world.zookeeper.children(paths.BROKER_TOPICS):
            node = self._world.zookeeper.get(paths.topic(topic))
            assert node is not None
            try:
                decoded = decode_topic(topic, node.data).assignments
            except MalformedZNodeError:
                continue
            assignments |= {TopicPartition(topic, p): a for p, a in decoded.items()}
        return assignments

    # One partition

    def _settle(
        self,
        tp: TopicPartition,
        assignment: ReplicaAssignment,
        brokers: dict[int, Broker],
        bounced: list[int],
    ) -> Generator[None, None, LeaderAndIsr | None]:
        """Give a partition a leader and an ISR of live brokers. Returns its leadership."""
        path = paths.partition_state(tp)
        live = [r for r in assignment.replicas if r in brokers]
        node = self._world.zookeeper.get(path)
        if node is None:
            if not live or self._world.zookeeper.get(paths.delete_topic(tp.topic)):
                return None
            return (yield from self._create(tp, live))
        try:
            state = decode_partition_state(path, node)
        except MalformedZNodeError:
            return None
        wanted = self._wanted(state, assignment, live, bounced)
        if wanted is None:
            return state
        (result,) = self._write([SetData(path, encode_partition_state(wanted), node.version)])
        yield
        assert isinstance(result, Written), "nobody else moves during a step"
        return msgspec.structs.replace(wanted, partition_epoch=result.version)

    def _create(
        self, tp: TopicPartition, live: list[int]
    ) -> Generator[None, None, LeaderAndIsr | None]:
        for parent in (paths.topic_partitions(tp.topic), paths.topic_partition(tp)):
            self._write([Create(parent)])
            yield
        state = LeaderAndIsr(live[0], 0, tuple(live), self.epoch, 0)
        (result,) = self._write([Create(paths.partition_state(tp), encode_partition_state(state))])
        yield
        return state if isinstance(result, Written) else None

    def _wanted(
        self,
        state: LeaderAndIsr,
        assignment: ReplicaAssignment,
        live: list[int],
        bounced: list[int],
    ) -> LeaderAndIsr | None:
        """Leadership as it ought to be, None if it is so already."""
        leader, isr = state.leader, state.isr
        if leader not in live or leader in bounced:
            elected = election.offline(
                assignment.replicas,
                state.isr,
                [r for r in live if r not in bounced] or live,
                recovery_state=0,
                unclean_enabled=False,
                marks_recovery=False,
            )
            leader, isr = (NO_LEADER, isr) if elected is None else (elected.leader, elected.isr)
        elif self._world.rng.random() < 0.1:
            elected = election.preferred(assignment.replicas, isr, live, recovery_state=0)
            leader = leader if elected is None else elected.leader
        shrunk = tuple(r for r in isr if r in live) or isr
        if (leader, shrunk) == (state.leader, state.isr) and leader not in bounced:
            return None
        return LeaderAndIsr(
            leader, state.leader_epoch + 1, shrunk, self.epoch, state.partition_epoch
        )

    # Requests

    def _send(
        self, brokers: dict[int, Broker], states: dict[TopicPartition, PartitionState]
    ) -> None:
        leader_and_isr: dict[int, dict[TopicPartition, bool]] = {}
        for tp, state in states.items():
            for replica in state.assignment.replicas:
                if replica in brokers:
                    is_new = state.leader_and_isr.leader_epoch == 0
                    leader_and_isr.setdefault(replica, {})[tp] = is_new
        batch = ControlRequests(
            controller_id=self._broker.broker_id,
            controller_epoch=self.epoch,
            brokers=brokers,
            topic_ids=self._topic_ids(states),
            partitions=states,
            offline_replicas={},
            leader_and_isr=leader_and_isr,
            update_metadata_receivers=tuple(brokers),
            deleted_partitions=frozenset(),
            stop_replica={},
        )
        self._world.safety.requests.sent(self.name, batch)
        for channel in self._channels.values():
            channel.waiting.add(batch)

    def _topic_ids(self, states: dict[TopicPartition, PartitionState]) -> dict[str, uuid.UUID]:
        ids: dict[str, uuid.UUID] = {}
        for topic in dict.fromkeys(tp.topic for tp in states):
            node = self._world.zookeeper.get(paths.topic(topic))
            topic_id = None if node is None else decode_topic(topic, node.data).topic_id
            if topic_id is not None:
                ids[topic] = topic_id
        return ids
