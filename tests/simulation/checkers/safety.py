"""Follows everything that happens, and has it checked by subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regent.model.cluster import DRAWN_CONTROLLER_IDS
from regent.model.partition import TopicPartition
from regent.simulation.zookeeper import AppliedTransaction
from regent.zk_data import paths
from regent.zk_data.operations import ANY_VERSION, Check, Delete, Operation
from tests.simulation.checkers.broker_requests import BrokerRequestChecker
from tests.simulation.checkers.contexts import ContextChecker
from tests.simulation.checkers.leadership import LeadershipChecker
from tests.simulation.checkers.observed import Observed
from tests.simulation.checkers.requests import RequestChecker
from tests.simulation.checkers.terms import TermChecker
from tests.simulation.checkers.topics import TopicChecker
from tests.simulation.checkers.unclean import UncleanElections
from tests.simulation.elector import is_place
from tests.simulation.trace import require

if TYPE_CHECKING:
    from regent.model.partition import LeaderAndIsr
    from tests.simulation.broker import SimulatedBroker
    from tests.simulation.world import World


class SafetyChecker:
    """The checkers to which the world reports, and what it asks about the past."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.seen = Observed()
        self.unclean = UncleanElections(world, self.seen)
        self._terms = TermChecker(world, self.seen)
        self._topics = TopicChecker(world, self.seen)
        self.broker_requests = BrokerRequestChecker(world, self.seen)
        self._leadership = LeadershipChecker(world, self.seen, self.unclean, self.broker_requests)
        self.requests = RequestChecker(world, self.seen)
        self.contexts = ContextChecker(world)
        world.zookeeper.on_transaction(self._transaction)

    # What others ask

    @property
    def epoch(self) -> int:
        """The present controller epoch."""
        return self.seen.epoch

    @property
    def last_zxid(self) -> int:
        """The last transaction that changed anything."""
        return self.seen.last_zxid

    @property
    def partitions(self) -> list[TopicPartition]:
        """All that have, or had, a state; of topics that there are."""
        return list(self.seen.history)

    def was_ever_created(self, topic: str) -> bool:
        return topic in self.seen.ever_created

    def was_ever_written(self, tp: TopicPartition, state: LeaderAndIsr) -> bool:
        """Whether that was the state of the partition since its topic was created."""
        return state in reversed(self.seen.history.get(tp, []))

    def was_led_by_preferred(self, tp: TopicPartition) -> bool:
        """Whether the first replica of the present assignment has ever led; True for a partition
        that is gone by now."""
        replicas = self.seen.replicas(tp)
        history = self.seen.history.get(tp, ())
        return not replicas or any(state.leader == replicas[0] for state in history)

    def may_keep(self, broker: SimulatedBroker, tp: TopicPartition) -> bool:
        """Whether a broker may keep a replica that it lost by a reassignment under another
        controller, which does not wait for the answer, and remembers nothing."""
        return (broker.broker_id, tp) in self.seen.left

    # ZooKeeper

    def _transaction(self, applied: AppliedTransaction) -> None:
        self.seen.last_zxid = applied.zxid
        writer = self._world.owner_of(applied.session_id)
        writes = [op for op in applied.operations if not isinstance(op, Check)]
        raises_epoch = any(op.path == paths.CONTROLLER_EPOCH for op in writes)
        if raises_epoch:
            self._terms.epoch_raised(writer, writes, applied.session_id)
        is_fenced = _is_fenced(applied.operations)
        is_alive = self._world.zookeeper.is_alive(applied.session_id)
        if writer.startswith("regent") and is_alive and not raises_epoch:
            require(
                is_fenced or _is_withdrawal(writes) or is_place(writes),
                f"{writer} writes without the fence: {writes}",
            )
        if is_fenced and not raises_epoch:
            self._terms.fenced_write(writer, applied.session_id)
        deleted = [op.path for op in writes if isinstance(op, Delete)]
        for operation in writes:
            self._write(writer, operation, deleted=deleted, is_controller=is_fenced)

    def _write(
        self, writer: str, operation: Operation, *, deleted: Sequence[str], is_controller: bool
    ) -> None:
        path = operation.path
        tp = paths.partition_of_state(path)
        topic = paths.topic_of(path)
        if tp is not None:
            self._leadership.state_written(writer, tp, operation, is_controller=is_controller)
        elif topic is not None and path == paths.topic(topic):
            self._topics.topic_written(
                writer, topic, operation, deleted=deleted, is_controller=is_controller
            )
        elif path.startswith(paths.DELETE_TOPICS + "/"):
            self._topics.marker_written(writer, path.rpartition("/")[2], operation)
        elif path.startswith(paths.TOPIC_CONFIGS + "/"):
            self.seen.configured_at[path.rpartition("/")[2]] = self._world.trace.count
        elif path == paths.broker_config():
            self.seen.default_configured_at = self._world.trace.count


def _is_fenced(operations: Sequence[Operation]) -> bool:
    """Whether a transaction holds only in the epoch in which it was prepared."""
    guard = next((op for op in operations if isinstance(op, Check)), None)
    return (
        guard is not None and guard.path == paths.CONTROLLER_EPOCH and guard.version != ANY_VERSION
    )


def _is_withdrawal(writes: Sequence[Operation]) -> bool:
    """Whether a Regent that another controller has deposed deletes its own registration."""
    return all(
        isinstance(op, Delete) and paths.broker_of(op.path) in DRAWN_CONTROLLER_IDS for op in writes
    )
