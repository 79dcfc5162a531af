"""Brokers that are stopped in order (SIGTERM): they ask the controller first, up to three times.

Source: ``KafkaServer.controlledShutdown``. What Regent does for them is checked here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regent.admin.commands import Accepted, Outcome
from regent.controller.commands import ControlledShutdown, ControlledShutdownResult
from regent.controller.events import ControlledShutdownReceived, IsrChangesMade
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState
from regent.model.errors import MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.broker_notes import (
    SHUTTING_DOWN,
    encode_broker_note,
)
from regent.zk_data.topics import decode_partition_state
from tests.simulation.broker import SimulatedBroker
from tests.simulation.trace import InvariantViolatedError

if TYPE_CHECKING:
    from tests.simulation.driver import RegentProcess
    from tests.simulation.world import World

TRIES = 3
BACKOFF_MS = 5_000
LOOK_IN_METADATA_SINCE = (3, 0)
"""Before, a broker that stops finds the controller by ``/controller``."""


_RELEASING = (ControlledShutdownReceived, IsrChangesMade)
"""Events after which nobody leads who stops, where another could."""


def require(condition: object, message: str) -> None:
    """Raise if an invariant does not hold."""
    if not condition:
        raise InvariantViolatedError(message)


class OrderlyStop:
    """One broker on its way to its end. If it is given up, the process lives on after its last
    request; a slow one ends without closing its session.
    """

    def __init__(
        self, world: World, broker: SimulatedBroker, *, is_given_up: bool, is_slow: bool
    ) -> None:
        self._world = world
        self._broker = broker
        self._epoch = broker.epoch
        self._tries = 0
        self._is_over = False
        self.is_given_up = is_given_up
        self.is_slow = is_slow

    def ask(self) -> None:
        """Ask the controller, again and again until it says that nothing remains."""
        if self._is_over or not self._is_alive:
            return
        if self._tries == TRIES:
            self._end()
            return
        self._tries += 1
        self._world.clock.after(BACKOFF_MS, self.ask)
        endpoint = self._world.endpoint
        if self._broker.protocol >= LOOK_IN_METADATA_SINCE:
            controller = endpoint.controller_by_metadata(self._broker)
        else:
            controller = endpoint.controller_by_zookeeper()
        if controller is None:
            return
        endpoint.call(
            self._broker,
            controller,
            ControlledShutdown(self._broker.broker_id, self._epoch),
            answered=self._answered,
            closed=lambda: None,
        )

    @property
    def _is_alive(self) -> bool:
        return self._broker.is_running and self._broker.epoch == self._epoch

    def _answered(self, outcomes: tuple[Outcome, ...]) -> None:
        (outcome,) = outcomes
        if isinstance(outcome, Accepted) and not self._is_over and self._is_alive:
            result: ControlledShutdownResult = outcome.result
            if result.error_code == 0 and not result.remaining_partitions:
                self._end()

    def _end(self) -> None:
        self._is_over = True
        if self.is_given_up:
            self._world.trace.line(self._broker.name, "lives on")
            return
        if self.is_slow:
            self._broker.crash()
        else:
            self._broker.stop()
        self._world.start_broker_after(self._broker, self._world.rng.randint(1, 5_000))


class OrderlyStops:
    """All brokers that were ever stopped in order, and what must hold for them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stops: dict[tuple[int, int], OrderlyStop] = {}

    def begin(
        self, broker: SimulatedBroker, *, is_given_up: bool = False, is_slow: bool = False
    ) -> bool:
        """Stop a broker in order, unless it is being stopped."""
        life = (broker.broker_id, broker.epoch)
        if not broker.is_running or life in self._stops:
            return False
        self._world.trace.line(broker.name, "is to stop")
        stop = OrderlyStop(self._world, broker, is_given_up=is_given_up, is_slow=is_slow)
        self._stops[life] = stop
        stop.ask()
        return True

    def check_answer(
        self, process: RegentProcess, command: ControlledShutdown, outcome: Outcome
    ) -> None:
        """A request is answered: what the answer says is so, and is durable."""
        if isinstance(outcome, Accepted):
            self._check_answer(process, command, outcome.result)

    def _check_answer(
        self,
        process: RegentProcess,
        command: ControlledShutdown,
        result: ControlledShutdownResult,
    ) -> None:
        active = process.controller.active
        if result.error_code or active is None:
            return
        if active.context.term.epoch != self._world.safety.epoch:
            return  # deposed, and has yet to find out
        broker_id, epoch = command.broker_id, command.broker_epoch
        node = self._world.zookeeper.get(SHUTTING_DOWN.path(broker_id))
        require(
            node is not None and node.data == encode_broker_note(epoch),
            f"{process} shuts broker {broker_id} down, which is not noted",
        )
        for tp in active.context.cluster.leadership:
            if (
                self._leader(tp) == broker_id
                and len(active.context.cluster.replicas(tp)) > 1
                and not active.context.is_topic_queued_for_deletion(tp.topic)
            ):
                require(
                    tp in result.remaining_partitions,
                    f"{process} says that broker {broker_id} is free, but it leads {tp}",
                )

    def _leader(self, tp: TopicPartition) -> int | None:
        """Who leads a partition by its state znode; None if that cannot be read."""
        path = paths.partition_state(tp)
        node = self._world.zookeeper.get(path)
        try:
            return None if node is None else decode_partition_state(path, node).leader
        except MalformedZNodeError:
            return None

    def event_ended(self, process: RegentProcess, context: ControllerContext) -> None:
        """Between two events."""
        leaving = context.shutting_down_broker_ids
        dead = [broker_id for broker_id in leaving if broker_id not in context.cluster.brokers]
        require(not dead, f"{process} holds {dead} to be shutting down, which are gone")
        for tp in context.cluster.all_partitions():
            if not context.is_topic_queued_for_deletion(tp.topic):
                wrong = self._leader_problem(process, context, tp)
                if wrong is not None:
                    require(self._leader(tp) is None, f"{process} leaves {tp} {wrong}")

    def _leader_problem(
        self, process: RegentProcess, context: ControllerContext, tp: TopicPartition
    ) -> str | None:
        state = context.cluster.leadership.get(tp)
        misplaced = tp in self._world.safety.seen.misplaced
        if state is None or misplaced or tp in context.elections_to_repeat:
            return None
        leaving = context.shutting_down_broker_ids
        is_offline = context.partition_state(tp) is PartitionState.OFFLINE
        # ISR changes that wait are of other partitions: an event came between theirs.
        is_released = (
            state.leader in leaving
            and isinstance(process.event, _RELEASING)
            and not process.has_isr_changes_to_process
        )
        if not (is_offline or is_released):
            return None
        online = [
            member
            for member in state.isr
            if context.is_replica_online(member, tp, include_shutting_down=True)
        ]
        if online and is_offline:
            return f"without a leader, {online} are live: {state}"
        staying = [member for member in online if member not in leaving]
        if staying and is_released:
            return f"with {state.leader}, which stops, {staying} stay: {state}"
        return None

    def check_converged(self) -> None:
        """Nothing is left of those that have stopped, and of those that have not."""
        children = self._world.zookeeper.children(SHUTTING_DOWN.parent)
        require(not children, f"brokers {children} are noted as shutting down for ever")
