"""How a leader at inter.broker.protocol.version 2.7 or newer changes ISRs: by AlterPartition.

One request is in flight per broker, with all changes that wait. What an answer means for a change:

- success: the state in the answer is the partition's;
- INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED: back to the ISR before, perhaps to ask again later;
- an error that says that the leader is out of date: the change stays pending, and nothing is asked
  for until a LeaderAndIsr with a higher leader epoch arrives;
- any other error, or none at all for the partition: the change is sent again.

NOT_CONTROLLER of any partition has the whole request sent again, to the controller of then.
Before Kafka 3.1 each other error of a partition means one of the last two, and sending again does
not succeed: the change that is answered is taken from the waiting ones only afterwards, so the same
change is not accepted. It stays pending as if the leader were out of date. Before 3.0 a higher
leader epoch drops the change that waits, and an answer takes away the one that waits by then.

While a change is pending the high watermark waits for the members of both ISRs.

Source: ``AlterPartitionManager``, ``Partition.handleAlterPartitionError`` and ``...Update``,
``BrokerToControllerRequestThread.handleResponse``; for the releases before 3.1
``DefaultAlterIsrManager.handleAlterIsrResponse`` and ``Partition.sendAlterIsrRequest``.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regent.controller.broker_requests import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrChange,
    IsrChangeResult,
)
from regent.model.errors import MalformedZNodeError
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.error_codes import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NONE,
    NOT_CONTROLLER,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from regent.zk_data import paths
from regent.zk_data.topics import decode_partition_state

if TYPE_CHECKING:
    from tests.simulation.broker import SimulatedBroker
    from tests.simulation.controller_channel import ControllerChannel
    from tests.simulation.replicated_log import Replica
    from tests.simulation.world import World

BACK_TO_COMMITTED = frozenset({INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED})
STUCK = frozenset(
    {
        UNKNOWN_TOPIC_OR_PARTITION,
        UNKNOWN_TOPIC_ID,
        INVALID_REQUEST,
        FENCED_LEADER_EPOCH,
        INVALID_UPDATE_VERSION,
    }
)
RESEND_MS = 50
ASK_AGAIN_MS = 500
"""replica.fetch.wait.max.ms: at a follower's fetch the leader tries again."""

SENDS_AGAIN_SINCE = (3, 1)
"""Before, whatever is refused stays pending."""
KEEPS_CHANGES_SINCE = (3, 0)
"""Before, a higher leader epoch drops a change that waits."""
TOPIC_IDS_SINCE = (3, 2)
BROKER_EPOCHS_SINCE = (3, 5)
EQUAL_VERSION_SINCE = (3, 0)
"""Before, a leader ignores success with the partition epoch that it has."""


@dataclass(eq=False, slots=True)
class PendingChange:
    """An ISR that a leader has asked for."""

    tp: TopicPartition
    replica: Replica
    isr: tuple[int, ...]


_Key = tuple[str | uuid.UUID, int]


class IsrChangeRequests:
    """The changes that one life of a broker wants."""

    def __init__(self, world: World, broker: SimulatedBroker, channel: ControllerChannel) -> None:
        self._world = world
        self._broker = broker
        self._channel = channel
        self._wanted: dict[TopicPartition, PendingChange] = {}
        self._sent: dict[_Key, PendingChange] | None = None

    @property
    def is_idle(self) -> bool:
        return not self._wanted and self._sent is None

    def submit(self, tp: TopicPartition, replica: Replica, isr: tuple[int, ...]) -> bool:
        """Ask for an ISR, unless the last answer about the partition is still awaited."""
        if tp in self._wanted and not self._is_dropped(self._wanted[tp]):
            return False
        change = self._wanted[tp] = PendingChange(tp, replica, isr)
        replica.pending = change
        self._world.trace.line(self._broker.name, "wants ISR", f"{tp} {isr}")
        self._send()
        return True

    def _is_dropped(self, change: PendingChange) -> bool:
        """Whether a LeaderAndIsr has come that took the change from those that wait."""
        return self._broker.protocol < KEEPS_CHANGES_SINCE and self._is_obsolete(change)

    def _is_obsolete(self, change: PendingChange) -> bool:
        """Whether a LeaderAndIsr has come since the change was asked for."""
        replica = change.replica
        return self._broker.replicas.get(change.tp) is not replica or replica.pending is not change

    def _send(self) -> None:
        if self._sent is not None:
            return
        for tp in [tp for tp, each in self._wanted.items() if self._is_dropped(each)]:
            del self._wanted[tp]
        if not self._wanted:
            return
        topics = [self._broker.logs[tp].topic_id for tp in self._wanted if tp in self._broker.logs]
        by_id = self._broker.protocol >= TOPIC_IDS_SINCE and None not in topics
        self._sent = {}
        changes: list[IsrChange] = []
        for tp, pending in self._wanted.items():
            change = self._change(pending, by_id=by_id)
            self._sent[change.topic, change.partition] = pending
            changes.append(change)
            self._world.safety.broker_requests.asked(self._broker.broker_id, tp, change)
        request = AlterPartitionRequest(self._broker.broker_id, self._broker.epoch, tuple(changes))
        self._channel.send(request, self._answered)

    def _change(self, pending: PendingChange, *, by_id: bool) -> IsrChange:
        state = pending.replica.state
        topic_id = pending.replica.log.topic_id if by_id else None
        knows_epochs = self._broker.protocol >= BROKER_EPOCHS_SINCE
        return IsrChange(
            topic=pending.tp.topic if topic_id is None else topic_id,
            partition=pending.tp.partition,
            leader_epoch=state.leader_epoch,
            isr=pending.isr,
            partition_epoch=state.partition_epoch,
            broker_epochs=dict(pending.replica.epochs) if knows_epochs else {},
        )

    def _answered(self, answer: AlterPartitionResponse) -> None:
        sent, results = self._sent, {(r.topic, r.partition): r for r in answer.results}
        assert sent is not None
        codes = {answer.error_code, *(result.error_code for result in answer.results)}
        if answer.error_code != NONE or NOT_CONTROLLER in codes:
            self._sent = None
            self._world.clock.after(RESEND_MS, self._send)
            return
        for key, change in sent.items():
            result = results.get(key)
            if result is not None:
                self._wanted.pop(change.tp, None)
                self._take(change, result)
        self._sent = None
        self._send()

    def _take(self, change: PendingChange, result: IsrChangeResult) -> None:
        replica = change.replica
        if self._is_obsolete(change):
            return
        code = result.error_code
        if code == NONE:
            assert result.state is not None
            self._commit(change, result.state)
        elif self._broker.protocol < SENDS_AGAIN_SINCE:
            return
        elif code in BACK_TO_COMMITTED:
            replica.pending = None
            replica.may_ask_at_ms = self._world.clock.now_ms() + ASK_AGAIN_MS
            self._world.clock.after(ASK_AGAIN_MS, lambda: None)  # time must not end before
        elif code not in STUCK:
            self.submit(change.tp, replica, change.isr)

    def _commit(self, change: PendingChange, state: LeaderAndIsr) -> None:
        replica = change.replica
        known = replica.state.partition_epoch
        is_news = state.partition_epoch > known or (
            state.partition_epoch == known and self._broker.protocol >= EQUAL_VERSION_SINCE
        )
        if state.leader_epoch != replica.state.leader_epoch or not is_news:
            return
        replica.pending, replica.state = None, state
        self._world.trace.line(
            self._broker.name, "changes ISR", f"{change.tp} {state.isr} {state.partition_epoch}"
        )
        self._world.replication.commit(self._broker.broker_id, change.tp, replica)


def presume(world: World, broker: SimulatedBroker, tp: TopicPartition) -> bool:
    """A broker asks for the ISR of a partition that another one leads. Whether it could."""
    controller = world.endpoint.controller_by_metadata(broker)
    path = paths.partition_state(tp)
    node = world.zookeeper.get(path)
    try:
        state = None if node is None else decode_partition_state(path, node)
    except MalformedZNodeError:
        return False
    if state is None or controller is None or state.leader == broker.broker_id:
        return False
    change = IsrChange(
        topic=tp.topic,
        partition=tp.partition,
        leader_epoch=state.leader_epoch,
        isr=world.rng.choice(((broker.broker_id,), state.isr, state.isr[:1])),
        partition_epoch=state.partition_epoch,
    )
    request = AlterPartitionRequest(broker.broker_id, broker.epoch, (change,))
    world.endpoint.call(broker, controller, request, answered=lambda _: None, closed=lambda: None)
    return True
