"""A simulated broker: its life and its answers to the controller.

It obeys as a real one does: the order of the epoch checks, what is refused per partition, and the
follower that needs its leader among the live brokers it knows of. What it does on its own
(replication, ISR changes) is in :mod:`replication`.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LEADER_DURING_DELETE, LeaderAndIsr, TopicPartition
from regent.protocol.control_requests import (
    ControlHeader,
    ControlRequest,
    ControlResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from regent.protocol.leader_and_isr import NOTHING_FOLLOWS
from regent.protocol.partition_state import PartitionState
from regent.simulation.broker_znodes import encode_broker
from regent.simulation.zookeeper import InMemoryClient
from regent.zk_data import paths
from regent.zk_data.operations import Create, Delete, SetData, Written
from tests.simulation.controller_channel import ControllerChannel
from tests.simulation.replicated_log import Log, Replica
from tests.support.broker_znodes import encode_log_dir_event, log_dir_event_notification_prefix

if TYPE_CHECKING:
    from tests.simulation.world import World

UNKNOWN_SERVER_ERROR = -1
NONE = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
STALE_CONTROLLER_EPOCH = 11
KAFKA_STORAGE_ERROR = 56
FENCED_LEADER_EPOCH = 74
STALE_BROKER_EPOCH = 77
INCONSISTENT_TOPIC_ID = 103

ASKS_SINCE = (2, 7)
"""inter.broker.protocol.version from which leaders ask the controller for ISR changes (KIP-497)."""
_PARTITION_EPOCHS_SINCE = (3, 3)
"""The same from which what has a lower partition epoch than is known is skipped (KAFKA-13790)."""

# A set: bytes raise an error at the question whether -1 is in them.
_NOTHING_FOLLOWS = frozenset(NOTHING_FOLLOWS)


class SimulatedBroker:
    """One broker.

    Attributes:
        is_running: Whether the process is alive, registered or not.
        epoch: Own broker epoch, the czxid of the last registration; -1 before the first.
        failed: Partitions on a log directory that has failed since the start.
        unseen: Contents of a log directory that had failed before the start.
        refuses: Partitions that it does not lead, follow or delete any more, until it is restarted.
        refuses_whole_requests: Whether the answer about one of them is an error of the whole
            request, of which then nothing is done.
        fails_halfway: Whether it has then taken the leader epochs over, and follows nobody.
        changed_isrs: ISR changes that nobody was notified of yet.
        upgrade_to: The protocol that it has after its next start.
        announced_id: Who was announced there besides brokers: the controller itself; or -1.
        was_away: Whether it has been taken for dead since it was started: what was announced
            meanwhile has passed it by.
    """

    def __init__(self, world: World, broker_id: int) -> None:
        self._world = world
        self.broker_id = broker_id
        self.name = f"broker-{broker_id}"
        self.logs: dict[TopicPartition, Log] = {}
        self.unseen: dict[TopicPartition, Log] = {}
        self.is_running = False
        self.is_paused = False
        self.client: InMemoryClient | None = None
        self.protocol = self.upgrade_to = world.swarm.protocol
        self._port = 9092
        self._forget()

    def _forget(self) -> None:
        self.epoch = -1
        self.controller_id = -1
        self.controller_epoch = 0
        self.announced_controller_id = self.announced_id = -1
        self.requests = ControllerChannel(self._world, self)
        self.failed: dict[TopicPartition, None] = {}
        self.refuses: dict[TopicPartition, None] = {}
        self.refuses_whole_requests = self.fails_halfway = False
        self.replicas: dict[TopicPartition, Replica] = {}
        self.metadata: dict[TopicPartition, LeaderAndIsr] = {}
        self.known_brokers: dict[int, Broker] = {}
        self.changed_isrs: dict[TopicPartition, None] = {}
        self.was_away = False
        self._registered_at: tuple[int, int] | None = None  # session and zxid

    def __repr__(self) -> str:
        return self.name

    @property
    def asks_for_isr_changes(self) -> bool:
        """Whether it does not write partition states itself."""
        return self._world.swarm.leaders_ask and self.protocol >= ASKS_SINCE

    @property
    def is_responsive(self) -> bool:
        return self.is_running and not self.is_paused

    # Life

    def start(self) -> bool:
        """Start the process. It gives up if an earlier life of it is still registered."""
        if self.is_running or self._world.zookeeper.get(paths.broker_id(self.broker_id)):
            return False
        self._forget()
        self.is_running = True
        self.protocol = self.upgrade_to
        self.client = self._world.connect(self.name)
        self._world.trace.line(self.name, "starts", f"protocol={self.protocol}")
        self.register()
        self._world.notice_upgrades()
        return True

    def register(self) -> bool:
        """Create the registration, if there is none of this session."""
        client = self.client
        if not self.is_running or client is None or not client.is_connected:
            return False
        looked_at = (client.session_id, self._world.zookeeper.zxid)
        if looked_at == self._registered_at:
            return False
        path = paths.broker_id(self.broker_id)
        (node,) = client.get_data([path])
        if node is not None:
            if node.ephemeral_owner == client.session_id:
                self._registered_at = looked_at
                return False
            # Left by the previous session of this very process (KAFKA-7165).
            client.multi([Delete(path, node.version)])
        results = client.multi(
            [Create(path, ephemeral=True), SetData(path, self._registration(), version=0)]
        )
        assert all(isinstance(result, Written) for result in results), results
        (node,) = client.get_data([path])
        assert node is not None
        self.epoch = node.czxid
        self._world.trace.line(self.name, "registers", f"epoch={self.epoch}")
        return True

    def _registration(self) -> bytes:
        endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", f"host{self.broker_id}", self._port)
        # Version 5 says: leaders ask for ISR changes.
        version = 5 if self.asks_for_isr_changes else 4
        broker = Broker(self.broker_id, 0, (endpoint,), registration_version=version)
        return encode_broker(broker, timestamp_ms=self._world.clock.now_ms())

    def move_listener(self) -> bool:
        """Rewrite the registration with another port."""
        if self.client is None or not self.client.is_connected:
            return False
        self._port += 1
        path = paths.broker_id(self.broker_id)
        (result,) = self.client.multi([SetData(path, self._registration())])
        self._world.trace.line(self.name, "moves its listener", self._port)
        return isinstance(result, Written)

    def crash(self) -> None:
        """The process dies; its session outlives it for a while."""
        assert self.client is not None
        self._world.trace.line(self.name, "crashes")
        self.is_running = False
        self.is_paused = False
        self._world.abandon(self.client)
        self._forget()

    def stop(self) -> None:
        """The process ends in order: its registration vanishes at once."""
        assert self.client is not None
        self._world.trace.line(self.name, "stops")
        self.is_running = False
        self.is_paused = False
        self.client.close()
        self._forget()

    def pause(self) -> None:
        """Nothing moves until :meth:`resume`; ZooKeeper may end the session meanwhile."""
        assert self.client is not None
        self._world.trace.line(self.name, "pauses")
        self.is_paused = True
        self.was_away = True
        self._world.lost_contact(self.client)

    def resume(self) -> None:
        """Go on as if no time had passed."""
        if not self.is_paused:
            return
        self._world.trace.line(self.name, "resumes")
        self.is_paused = False
        if self.is_running and self.client is not None:
            self._world.found_contact(self.client)

    def reconnect(self) -> bool:
        """Find ZooKeeper again after the session was expired."""
        client = self.client
        if not self.is_running or client is None or client.is_connected:
            return False
        client.reconnect()
        client.events.clear()
        self._world.owns(client, self.name)
        self._world.trace.line(self.name, "reconnects", f"session={client.session_id}")
        return True

    def fail_log_dir(self, partitions: list[TopicPartition]) -> None:
        """Lose the log directory that holds some partitions, until the next start."""
        assert self.client is not None
        self._world.trace.line(self.name, "loses a log dir", [str(tp) for tp in partitions])
        for tp in partitions:
            self.failed[tp] = None
            self.replicas.pop(tp, None)
        event = encode_log_dir_event(self.broker_id)
        self.client.multi([Create(log_dir_event_notification_prefix(), event, sequential=True)])

    # Requests of the controller

    def _refusal(self, header: ControlHeader) -> int:
        """Top-level error: the checks come in this order, and a request that passes is obeyed."""
        if header.broker_epoch < self.epoch:
            return STALE_BROKER_EPOCH
        if header.controller_epoch < self.controller_epoch:
            return STALE_CONTROLLER_EPOCH
        self._world.safety.requests.obeyed(self, header)
        self.controller_epoch = header.controller_epoch
        self.controller_id = header.controller_id
        return NONE

    def handle(self, request: ControlRequest) -> ControlResponse:
        """The answer to a request."""
        match request:
            case LeaderAndIsrRequest():
                self._world.safety.requests.leadership_arrives(request)
                return self.leader_and_isr(request)
            case UpdateMetadataRequest():
                return self.update_metadata(request)
            case DescribeLogDirsRequest():
                return self.describe_log_dirs(request)
        return self.stop_replica(request)

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Become leader or follower of the named partitions."""
        named = request.partitions
        refusal = self._refusal(request.header)
        errors: dict[TopicPartition, int] = {}
        if not refusal and self.refuses_whole_requests and any(tp in self.refuses for tp in named):
            refusal = UNKNOWN_SERVER_ERROR
            if self.fails_halfway:
                self._begin_to_follow(request)
        if not refusal:
            for tp, is_new in named.items():
                topic_id = request.topic_ids.get(tp.topic)
                code = self._become(tp, request.states[tp], topic_id, is_new=is_new)
                if code not in _NOTHING_FOLLOWS:
                    errors[tp] = code
        return LeaderAndIsrResponse(
            self.broker_id, refusal, errors, named, *_epochs_of(request.header)
        )

    def _become(
        self,
        tp: TopicPartition,
        announced: PartitionState,
        topic_id: uuid.UUID | None,
        *,
        is_new: bool,
    ) -> int:
        if tp in self.failed:
            return KAFKA_STORAGE_ERROR
        if tp in self.refuses:
            return UNKNOWN_SERVER_ERROR
        log, replica = self.logs.get(tp), self.replicas.get(tp)
        if log is not None and None not in (log.topic_id, topic_id) and log.topic_id != topic_id:
            return INCONSISTENT_TOPIC_ID
        state, assignment = announced.leader_and_isr, announced.assignment
        if replica is not None and state.leader_epoch <= replica.state.leader_epoch:
            if state.leader_epoch == replica.state.leader_epoch and topic_id is not None:
                replica.log.topic_id = topic_id
            return STALE_CONTROLLER_EPOCH
        if self.broker_id not in assignment.replicas:
            return UNKNOWN_TOPIC_OR_PARTITION
        if log is None and self.unseen and not is_new:  # its log may be there
            self.failed[tp] = None
            return KAFKA_STORAGE_ERROR
        if log is None:
            log = self.logs[tp] = Log(topic_id)
        elif topic_id is not None:
            log.topic_id = topic_id
        self._follow_or_lead(tp, log, announced)
        return NONE

    def _follow_or_lead(self, tp: TopicPartition, log: Log, announced: PartitionState) -> None:
        state, assignment = announced.leader_and_isr, announced.assignment
        replica = self.replicas.get(tp)
        if (
            replica is not None
            and self.protocol >= _PARTITION_EPOCHS_SINCE
            and state.partition_epoch < replica.state.partition_epoch
        ):
            self._world.trace.line(self.name, "skips", f"{tp} {state}")
            return
        is_leader = state.leader == self.broker_id
        if is_leader or state.leader in self.known_brokers:
            self._world.safety.requests.accepted_leadership(self, tp, state)
            self.replicas[tp] = Replica(
                log=log,
                state=state,
                replicas=assignment.replicas,
                is_leader=is_leader,
                is_fetching=not is_leader,
            )
        # Else everything stays as it is: a follower needs a leader that it knows to be alive.

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Replace the list of live brokers, merge the partitions."""
        refusal = self._refusal(request.header)
        updates = request.updates
        if not refusal:
            self.known_brokers = dict(request.brokers.brokers)
            controller = request.brokers.announced
            self.announced_id = -1 if controller is None else controller.broker_id
            self.announced_controller_id = request.header.controller_id
            for tp, announced in updates.partitions.items():
                if tp in updates.deleted:
                    self.metadata.pop(tp, None)
                else:
                    state = announced.leader_and_isr
                    assert state.leader != LEADER_DURING_DELETE
                    self.metadata[tp] = state
        return UpdateMetadataResponse(self.broker_id, refusal, *_epochs_of(request.header))

    def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop fetching, or delete replicas altogether."""
        named = request.partitions
        refusal = self._refusal(request.header)
        errors: dict[TopicPartition, int] = {}
        if not refusal:
            for tp, (leader_epoch, delete) in named.items():
                replica = self.replicas.get(tp)
                if tp in self.failed:
                    errors[tp] = KAFKA_STORAGE_ERROR
                elif replica and 0 <= leader_epoch < replica.state.leader_epoch:
                    errors[tp] = FENCED_LEADER_EPOCH
                elif delete and tp in self.refuses:
                    errors[tp] = UNKNOWN_SERVER_ERROR
                elif delete:
                    self.replicas.pop(tp, None)
                    self.logs.pop(tp, None)
                elif replica:
                    replica.is_fetching = False
        return StopReplicaResponse(
            self.broker_id, refusal, errors, named, *_epochs_of(request.header)
        )

    def _begin_to_follow(self, request: LeaderAndIsrRequest) -> None:
        for tp in request.partitions:
            replica, state = self.replicas.get(tp), request.states[tp].leader_and_isr
            is_newer = replica is not None and state.leader_epoch > replica.state.leader_epoch
            if replica is not None and is_newer and state.leader != self.broker_id:
                replica.state = state
                replica.is_leader = replica.is_fetching = False
                replica.pending = None

    def describe_log_dirs(self, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        """Which of two log directories is offline."""
        code = KAFKA_STORAGE_ERROR if self.failed or self.unseen else NONE
        log_dirs = {"/data-0": NONE, "/data-1": code}
        return DescribeLogDirsResponse(self.broker_id, NONE, log_dirs, *_epochs_of(request.header))

    def lose_disk(self, partitions: list[TopicPartition]) -> None:
        """While it is down: the log directory with these partitions fails until it is mended."""
        assert not self.is_running
        self._world.trace.line(self.name, "loses a disk", [str(tp) for tp in partitions])
        self.unseen |= {tp: self.logs.pop(tp) for tp in partitions if tp in self.logs}

    def mend_disk(self) -> None:
        """While it is down: what was on the failed log directory is there again."""
        assert not self.is_running
        self._world.trace.line(self.name, "has its disk again")
        self.logs |= self.unseen
        self.unseen = {}


def _epochs_of(header: ControlHeader) -> tuple[int, int]:
    """What the controller's end of the channel notes with the answer."""
    return header.controller_epoch, header.broker_epoch
