"""What must hold after every step.

Every transaction that changes ZooKeeper, every batch that a controller sends, every request that a
broker obeys and every end of an event is looked at when it happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from regent.controller.commands import ElectionType, ElectLeaders
from regent.controller.events import CommandsReceived, LeaderAndIsrResponseReceived
from regent.controller.reassignment.algebra import origin_of, reassign_to
from regent.controller.state.context import ControllerContext
from regent.controller.state.leader_balance import has_preferred_leader
from regent.controller.state.states import PartitionState
from regent.model.errors import MalformedZNodeError
from regent.model.partition import (
    NO_LEADER,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from regent.protocol.control_requests import ControlHeader, ControlRequests, LeaderAndIsrResponse
from regent.zk_data import paths
from regent.zk_data.config import decode_entity_config
from regent.zk_data.controller import decode_controller_epoch
from regent.zk_data.operations import ANY_VERSION, Check, Create, Delete, Operation, SetData, ZNode
from regent.zk_data.stray_replicas import decode_stray_replicas, strays_of
from regent.zk_data.topics import decode_partition_state, decode_topic
from tests.simulation.broker import UNKNOWN_SERVER_ERROR
from tests.simulation.driver import RegentProcess
from tests.simulation.trace import InvariantViolatedError
from tests.simulation.trail_checker import TrailChecker
from tests.simulation.workload import UNCLEAN
from tests.simulation.zookeeper import AppliedTransaction

if TYPE_CHECKING:
    from tests.simulation.broker import SimulatedBroker
    from tests.simulation.world import World

_BROKERS_MAY_CREATE = (
    paths.ISR_CHANGE_NOTIFICATION,
    paths.LOG_DIR_EVENT_NOTIFICATION,
    paths.BROKER_IDS,
)


def require(condition: object, message: str) -> None:
    """Raise if an invariant does not hold."""
    if not condition:
        raise InvariantViolatedError(message)


class SafetyChecker:
    """Follows everything and compares.

    Attributes:
        epoch: The present controller epoch.
        last_zxid: The last transaction that changed anything.
        deleted_under: Topic -> controller epoch under which its node was deleted.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.last_zxid = 0
        self.deleted_under: dict[str, int] = {}
        self.epoch = 0
        self._controller_of_epoch: dict[int, int] = {}
        self._replicas: dict[TopicPartition, tuple[int, ...]] = {}
        self._assignments: dict[TopicPartition, ReplicaAssignment] = {}
        self._left: dict[tuple[int, TopicPartition], None] = {}
        self._ever_created: dict[str, None] = {}
        self._history: dict[TopicPartition, list[LeaderAndIsr]] = {}
        self._announced: dict[tuple[TopicPartition, int], int] = {}
        self._configured_at: dict[str, int] = {}
        self._unmarked: list[str] = []
        self._trails = TrailChecker(world)
        world.zookeeper.on_transaction(self._transaction)

    def was_ever_created(self, topic: str) -> bool:
        return topic in self._ever_created

    def was_led_by_preferred(self, tp: TopicPartition) -> bool:
        """Whether the first replica of the present assignment has ever led; True for a partition
        that is gone by now."""
        replicas = self._replicas.get(tp)
        history = self._history.get(tp, ())
        return not replicas or any(state.leader == replicas[0] for state in history)

    @property
    def partitions(self) -> list[TopicPartition]:
        """All that ever had a state."""
        return list(self._history)

    def may_keep(self, broker: SimulatedBroker, tp: TopicPartition) -> bool:
        """Whether a broker may keep a replica that it lost by a reassignment under another
        controller, which does not wait for the answer, and remembers nothing."""
        return (broker.broker_id, tp) in self._left

    # ZooKeeper

    def _transaction(self, applied: AppliedTransaction) -> None:
        self.last_zxid = applied.zxid
        writer = self._world.owner_of(applied.session_id)
        writes = [op for op in applied.operations if not isinstance(op, Check)]
        guard = next((op for op in applied.operations if isinstance(op, Check)), None)
        raises_epoch = any(op.path == paths.CONTROLLER_EPOCH for op in writes)
        if raises_epoch:
            self._elected(writer, writes)
        is_fenced = (
            guard is not None
            and guard.path == paths.CONTROLLER_EPOCH
            and guard.version != ANY_VERSION
        )
        is_alive = self._world.zookeeper.is_alive(applied.session_id)
        if writer.startswith("regent") and is_alive and not raises_epoch:
            require(is_fenced, f"{writer} writes without the fence: {writes}")
        if is_fenced and not raises_epoch:
            self._fenced_write(writer, applied.session_id)
        self._unmarked = [op.path for op in writes if isinstance(op, Delete)]
        for operation in writes:
            self._write(writer, operation, is_controller=is_fenced)

    def _elected(self, writer: str, writes: Sequence[Operation]) -> None:
        (raised,) = (op for op in writes if op.path == paths.CONTROLLER_EPOCH)
        assert isinstance(raised, Create | SetData)
        epoch = decode_controller_epoch(raised.data)
        if isinstance(raised, Create):
            require(epoch == 0, f"{writer} creates the controller epoch as {epoch}")
            return
        require(epoch == self.epoch + 1, f"{writer}: controller epoch {self.epoch} -> {epoch}")
        taken = any(isinstance(op, Create) and op.path == paths.CONTROLLER for op in writes)
        require(taken, f"{writer} raises the controller epoch without becoming the controller")
        self.epoch = epoch
        self._world.trace.line(writer, "wins", f"epoch={epoch}")

    def _fenced_write(self, writer: str, session_id: int) -> None:
        """Only the controller of the present epoch may have passed the fence."""
        if not writer.startswith("regent"):
            # A controller in another thread is no rival: what it takes for its epoch is not known.
            for rival in self._world.rivals:
                if writer == rival.broker_name:
                    require(rival.epoch == self.epoch, f"{writer} writes under epoch {rival.epoch}")
            return
        process = self._world.regent_of(session_id)
        require(process is not None, f"{writer} writes after its death")
        assert process is not None
        active = process.controller.active
        # A controller that hands over has resigned already when it deletes its node.
        epoch = self.epoch if active is None else active.context.term.epoch
        require(
            epoch == self.epoch,
            f"{writer} writes under epoch {epoch}, the present one is {self.epoch}",
        )

    def _write(self, writer: str, operation: Operation, *, is_controller: bool) -> None:
        path = operation.path
        tp = paths.partition_of_state(path)
        if tp is not None:
            self._state_write(writer, tp, operation, is_controller=is_controller)
        elif path.startswith(paths.BROKER_TOPICS + "/"):
            topic = paths.topic_of(path)
            if topic is not None and path == paths.topic(topic):
                self._topic_write(writer, topic, operation, is_controller=is_controller)
        elif path.startswith(paths.DELETE_TOPICS + "/"):
            self._marker_write(writer, path.rpartition("/")[2], operation)
        elif path.startswith(paths.TOPIC_CONFIGS + "/"):
            self._configured_at[path.rpartition("/")[2]] = self._world.trace.count

    # Topics

    def _topic_write(
        self, writer: str, topic: str, operation: Operation, *, is_controller: bool
    ) -> None:
        if isinstance(operation, Delete):
            self._topic_deleted(writer, topic, is_controller=is_controller)
            return
        if isinstance(operation, Create):
            self._forget_topic(topic)
            self._ever_created[topic] = None
        assert isinstance(operation, Create | SetData)
        try:
            znode = decode_topic(topic, operation.data)
        except MalformedZNodeError:
            return
        decoded = {TopicPartition(topic, p): a.replicas for p, a in znode.assignments.items()}
        for tp in [tp for tp in self._replicas if tp.topic == topic]:
            require(
                tp in decoded or self._world.zookeeper.get(paths.delete_topic(topic)) is not None,
                f"{writer} loses {tp}",
            )
            if tp not in decoded:
                del self._replicas[tp]
        self._replicas |= decoded
        for partition, assignment in znode.assignments.items():
            tp = TopicPartition(topic, partition)
            before = self._assignments.get(tp, assignment)
            if before != assignment and writer != "admin":  # who may break what is right
                require(is_controller, f"{writer} moves {tp} from {before} to {assignment}")
                self._moved(writer, tp, before, assignment)
            self._assignments[tp] = assignment

    def _moved(
        self, writer: str, tp: TopicPartition, before: ReplicaAssignment, after: ReplicaAssignment
    ) -> None:
        """A reassignment begins, gets another target, is cancelled as a whole, or has arrived."""
        target = after.target_replicas
        if after != ReplicaAssignment(before.target_replicas):
            require(
                after == reassign_to(before, target),
                f"{writer} takes {tp} from {before} to {after}, which is no reassignment",
            )
            require(
                target in self._world.workload.targets.get(tp, ())
                or sorted(target) == sorted(origin_of(before)),
                f"{writer} moves {tp} to {target}, which nobody has asked for",
            )
        history = self._history.get(tp)
        require(
            not history or set(history[-1].isr) <= set(after.replicas),
            f"{writer} removes replicas of {tp} that are in sync: {before} to {after}",
        )
        for broker_id in before.replicas:
            if broker_id not in after.replicas:
                if any(process.name == writer for process in self._world.regents):
                    self._left.pop((broker_id, tp), None)
                else:
                    self._left[broker_id, tp] = None

    def _marker_write(self, writer: str, topic: str, operation: Operation) -> None:
        if isinstance(operation, Delete):
            gone = self._world.zookeeper.get(paths.topic(topic)) is None
            require(gone, f"{writer} removes the mark of {topic}, which still exists")
        else:
            self._world.ledger.strike_off_topic(topic)  # its records may go, one by one

    def _topic_deleted(self, writer: str, topic: str, *, is_controller: bool) -> None:
        if is_controller:
            require(
                paths.delete_topic(topic) in self._unmarked,
                f"{writer} deletes {topic}, but not in one transaction with its marker",
            )
            require(
                self._world.zookeeper.get(paths.topic_config(topic)) is None,
                f"{writer} deletes {topic}, but not its configuration",
            )
            for tp in [tp for tp in self._replicas if tp.topic == topic]:
                kept = [
                    b
                    for b in self._replicas[tp]
                    if tp in self._world.brokers[b].logs and not self._is_noted(b, tp)
                ]
                require(not kept, f"{writer} deletes {tp} while brokers {kept} still have it")
        # What goes without the controller's doing stays in the caches of brokers forever.
        self.deleted_under[topic] = self.epoch if is_controller else -1
        self._forget_topic(topic)

    def _is_noted(self, broker_id: int, tp: TopicPartition) -> bool:
        """Whether a broker is to delete its replica of a topic that is gone."""
        path = strays_of(broker_id, tp.topic)
        node = self._world.zookeeper.get(path)
        return node is not None and tp.partition in decode_stray_replicas(path, node.data)

    def _forget_topic(self, topic: str) -> None:
        for kept in (self._replicas, self._history, self._assignments):
            for tp in [tp for tp in kept if tp.topic == topic]:
                del kept[tp]
        self._announced = {k: v for k, v in self._announced.items() if k[0].topic != topic}
        self._world.ledger.forget_topic(topic)

    # Partition states

    def _state_write(
        self, writer: str, tp: TopicPartition, operation: Operation, *, is_controller: bool
    ) -> None:
        if isinstance(operation, Delete):
            marked = self._world.zookeeper.get(paths.delete_topic(tp.topic)) is not None
            require(marked or writer == "admin", f"{writer} deletes the state of {tp}")
            return
        assert isinstance(operation, Create | SetData)
        node = self._world.zookeeper.get(operation.path)
        assert node is not None
        if writer == "admin":
            history = self._history[tp]  # damaged, or corrected
            history.append(msgspec.structs.replace(history[-1], partition_epoch=len(history)))
            return
        # The data of this operation: the node may have been written twice in one transaction.
        version = len(self._history.get(tp, ())) if isinstance(operation, SetData) else 0
        state = decode_partition_state(
            operation.path, ZNode(operation.data, version, node.czxid, node.mzxid)
        )
        self._check_shape(writer, tp, state)
        history = self._history.setdefault(tp, [])
        if isinstance(operation, Create):
            history.clear()
            require(is_controller, f"{writer} creates the state of {tp}")
            require(state.leader_epoch == 0, f"{tp} is born with epoch {state.leader_epoch}")
        else:
            self._check_successor(writer, tp, history[-1], state, is_controller=is_controller)
        if is_controller:
            require(
                state.controller_epoch == self.epoch,
                f"{writer} signs {tp} with epoch {state.controller_epoch}, not {self.epoch}",
            )
        history.append(state)
        self._check_members_have_what_is_committed(tp, state)

    def _check_shape(self, writer: str, tp: TopicPartition, state: LeaderAndIsr) -> None:
        require(state.isr, f"{writer} empties the ISR of {tp}")
        require(len(set(state.isr)) == len(state.isr), f"{writer}: ISR of {tp} is {state.isr}")
        require(
            state.leader == NO_LEADER or state.leader in state.isr,
            f"{writer} makes {state.leader} lead {tp} from outside the ISR {state.isr}",
        )
        replicas = self._replicas.get(tp)
        require(replicas is not None, f"{writer} writes the state of unknown {tp}")
        assert replicas is not None
        require(
            set(state.isr) <= set(replicas),
            f"{writer}: ISR {state.isr} of {tp} is not within {replicas}",
        )

    def _check_successor(
        self,
        writer: str,
        tp: TopicPartition,
        before: LeaderAndIsr,
        state: LeaderAndIsr,
        *,
        is_controller: bool,
    ) -> None:
        if not is_controller:
            require(
                writer == f"broker-{state.leader}"
                and state.leader == before.leader
                and state.leader_epoch == before.leader_epoch
                and state.controller_epoch == before.controller_epoch,
                f"{writer} changes {tp} from {before} to {state}",
            )
            return
        require(
            state.leader_epoch == before.leader_epoch + 1,
            f"{writer}: leader epoch of {tp} {before.leader_epoch} -> {state.leader_epoch}",
        )
        require(
            state.controller_epoch >= before.controller_epoch,
            f"{writer}: controller epoch of {tp} falls to {state.controller_epoch}",
        )
        if state.leader not in (NO_LEADER, *before.isr):
            require(
                self._may_be_unclean(writer, tp),
                f"{writer} elects {state.leader} for {tp} from outside the ISR {before.isr}",
            )
            require(state.isr == (state.leader,), f"{tp}: ISR {state.isr} after unclean election")
            self._world.ledger.strike_off(tp)
            self._world.trace.line("checker", "unclean", tp)
        else:
            require(
                set(state.isr) <= set(before.isr),
                f"{writer} takes {state.isr} into the ISR {before.isr} of {tp}",
            )

    def _check_members_have_what_is_committed(
        self, tp: TopicPartition, state: LeaderAndIsr
    ) -> None:
        for member in state.isr:
            missing = self._world.ledger.missing(tp, self._world.brokers[member].logs.get(tp))
            require(not missing, f"{tp}: broker {member} is in sync without {missing}")

    # Unclean elections

    def is_unclean_enabled(self, topic: str) -> bool:
        """Whether an unclean election is allowed now. A topic's own word counts most."""
        own = self._configured(paths.topic_config(topic))
        if own is None:
            own = self._configured(paths.broker_config())
        return self._world.swarm.unclean_default if own is None else own

    def _configured(self, path: str) -> bool | None:
        node = self._world.zookeeper.get(path)
        try:
            value = None if node is None else decode_entity_config(path, node.data).get(UNCLEAN)
        except MalformedZNodeError:
            return None
        return None if value is None else value == "true"

    def _may_be_unclean(self, writer: str, tp: TopicPartition) -> bool:
        """Whether it is asked for by a command that is being carried out, or allowed, or was at
        some time while the event was being processed.

        Of the cluster-wide default a controller learns by notification: what counts is what it
        knows, and that this is true in the end is another check's business.
        """
        process = next((p for p in self._world.regents if p.name == writer and p.is_alive), None)
        active = None if process is None else process.controller.active
        if process is None or active is None:
            return False
        own = self._configured(paths.topic_config(tp.topic))
        allowed = active.context.cluster.unclean_leader_election_default if own is None else own
        return (
            allowed
            or self._configured_at.get(tp.topic, -1) >= process.event_began
            or _asks_for_unclean_election(process, tp)
        )

    # Requests

    def sent(self, sender: str, batch: ControlRequests) -> None:
        """A controller hands a batch to its channels."""
        for receiver, named in batch.leader_and_isr.items():
            require(receiver in batch.brokers, f"{sender}: no broker {receiver} to send to")
            for tp in named:
                require(tp in batch.partitions, f"{sender} sends {tp} without its state")
                replicas = batch.partitions[tp].assignment.replicas
                require(
                    receiver in replicas,
                    f"{sender} tells {receiver} to host {tp}, which is assigned to {replicas}",
                )
        for tp, state in batch.partitions.items():
            if tp not in batch.deleted_partitions:
                self._check_announced(sender, tp, state.leader_and_isr)
        for receiver in (*batch.update_metadata_receivers, *batch.stop_replica):
            require(receiver in batch.brokers, f"{sender}: no broker {receiver} to send to")

    def _check_announced(self, sender: str, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """What is announced has been written: that version, with that content."""
        history = self._history.get(tp, [])
        written = state.partition_epoch < len(history) and history[state.partition_epoch]
        if not history and not self._world.zookeeper.get(paths.topic(tp.topic)):
            return  # the topic has been deleted meanwhile
        require(written == state, f"{sender} announces {tp} as {state}, written was {written}")

    def obeyed(self, broker: SimulatedBroker, header: ControlHeader) -> None:
        """A broker accepts a request as coming from the controller."""
        epoch, controller = header.controller_epoch, header.controller_id
        require(epoch >= broker.controller_epoch, f"{broker} obeys {controller} of the past")
        require(epoch <= self.epoch, f"{broker} obeys epoch {epoch}, which nobody has won")
        known = self._controller_of_epoch.setdefault(epoch, controller)
        require(known == controller, f"{known} and {controller} both reign in epoch {epoch}")

    def accepted_leadership(
        self, broker: SimulatedBroker, tp: TopicPartition, state: LeaderAndIsr
    ) -> None:
        """A broker takes a LeaderAndIsr to heart: per leader epoch there is one leader."""
        known = self._announced.setdefault((tp, state.leader_epoch), state.leader)
        require(
            known == state.leader,
            f"{broker} follows {state.leader} in epoch {state.leader_epoch} of {tp}; "
            f"others follow {known}",
        )

    # The core's own view

    def event_ended(self, process: RegentProcess) -> None:
        """Between two events the context is consistent in itself."""
        active = process.controller.active
        if active is None:
            return
        context = active.context
        offline = imbalanced = 0
        for tp in context.cluster.all_partitions():
            state, leadership = context.partition_state(tp), context.cluster.leadership.get(tp)
            being_deleted = context.is_topic_queued_for_deletion(tp.topic)
            if state is PartitionState.OFFLINE and not being_deleted:
                offline += 1
            if state is PartitionState.ONLINE and not being_deleted:
                require(
                    leadership is not None
                    and context.is_replica_online(
                        leadership.leader, tp, include_shutting_down=True
                    ),
                    f"{process} holds {tp} to be online under {leadership}",
                )
            if leadership is not None:
                replicas = context.cluster.replicas(tp)
                require(set(leadership.isr) <= set(replicas), f"{process}: {tp} {leadership}")
            assignment = context.cluster.assignment(tp)
            if assignment and leadership and not being_deleted:
                imbalanced += not has_preferred_leader(assignment, leadership)
        require(
            offline == context.offline_partition_count,
            f"{process} counts {context.offline_partition_count} offline, there are {offline}",
        )
        require(
            imbalanced == context.balance.imbalance_count,
            f"{process} counts {context.balance.imbalance_count} imbalanced, not {imbalanced}",
        )
        self._check_refusals(process, context)
        self._trails.event_ended(process, context)
        self._world.orderly_stops.event_ended(process, context)

    def _check_refusals(self, process: RegentProcess, context: ControllerContext) -> None:
        """A refusal is kept from the answer on, and only of replicas that there are."""
        for topic, partition, broker_id, error in context.refusals.sample(limit=1_000):
            tp = TopicPartition(topic, partition)
            require(
                broker_id in context.cluster.brokers and broker_id in context.cluster.replicas(tp),
                f"{process} keeps a refusal of broker {broker_id}: {tp} {error}",
            )
        event = process.event
        if isinstance(event, LeaderAndIsrResponseReceived):
            # Of several answers of one broker the last counts.
            for answer in {a.broker_id: a for a in event.responses}.values():
                _check_answer_is_kept(process, context, answer)


def _asks_for_unclean_election(process: RegentProcess, tp: TopicPartition) -> bool:
    """Whether a command that the process is carrying out asks for it."""
    return isinstance(process.event, CommandsReceived) and any(
        isinstance(command, ElectLeaders)
        and command.election_type is ElectionType.UNCLEAN
        and (command.partitions is None or tp in command.partitions)
        for command in process.event.commands
    )


def _check_answer_is_kept(
    process: RegentProcess, context: ControllerContext, answer: LeaderAndIsrResponse
) -> None:
    broker = context.cluster.brokers.get(answer.broker_id)
    asked_as = (answer.controller_epoch, answer.broker_epoch)
    if broker is None or asked_as != (context.term.epoch, broker.epoch):
        return
    whole = answer.error_code == UNKNOWN_SERVER_ERROR
    for tp in answer.partitions:
        refused = whole or answer.partition_errors.get(tp) == UNKNOWN_SERVER_ERROR
        if refused and answer.broker_id in context.cluster.replicas(tp):
            known = tp in context.refusals.on_broker(answer.broker_id)
            require(known, f"{process} has no refusal of broker {answer.broker_id}: {tp}")
