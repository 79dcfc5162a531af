"""What brokers do among themselves: produce, fetch, shrink and expand the ISR.

Below inter.broker.protocol.version 2.7 the leader writes the ISR to ZooKeeper, conditionally on the
version that it knows, and notifies the controller afterwards. From then on it asks the controller
(:mod:`isr_change_requests`). In a rolling upgrade each broker does as its own version says.

Simplified: a leader learns a follower's position from its fetch; truncation finds the end of the
common prefix at once; a follower is in sync when it has everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from regent.model.errors import MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.operations import Create, SetData, Written
from regent.zk_data.topics import decode_partition_state, encode_partition_state
from tests.simulation.broker import SimulatedBroker
from tests.simulation.replicated_log import Record, Replica, common_prefix
from tests.simulation.turns import rotated
from tests.support.broker_znodes import (
    encode_isr_change_notification,
    isr_change_notification_prefix,
)

if TYPE_CHECKING:
    from tests.simulation.world import World

RECORDS_PER_FETCH = 3
PATIENCE_MS = 10_000
"""replica.lag.time.max.ms: usually the controller is faster to notice that a broker is gone."""


class Replication:
    """The brokers' own activity. Each call of :meth:`act` is one step of one broker."""

    def __init__(self, world: World) -> None:
        self._world = world

    def act(self) -> bool:
        """Some broker does something that it has to do. Whether there was anything."""
        brokers = rotated(self._world.rng, list(self._world.brokers.values()))
        return any(self._act_of(broker) for broker in brokers if broker.is_responsive)

    def _act_of(self, broker: SimulatedBroker) -> bool:
        if broker.reconnect() or broker.register() or broker.requests.act():
            return True
        if broker.changed_isrs and self._world.rng.random() < 0.5:
            return self._notify(broker)
        if not broker.replicas:
            return False
        for tp, replica in rotated(self._world.rng, list(broker.replicas.items())):
            if replica.is_fetching and self._fetch(broker, tp, replica):
                return True
            if replica.is_leader and self._lead(broker, tp, replica):
                return True
        return self._notify(broker) if broker.changed_isrs else False

    # The follower

    def _leader_of(
        self, broker: SimulatedBroker, tp: TopicPartition, replica: Replica
    ) -> Replica | None:
        """The leader's replica, if it is alive and both agree about the leader epoch."""
        leader = self._world.brokers.get(replica.state.leader)
        if leader is None or not leader.is_responsive or leader is broker:
            return None
        led = leader.replicas.get(tp)
        if led is None or not led.is_leader:
            return None
        return led if led.state.leader_epoch == replica.state.leader_epoch else None

    def _fetch(self, broker: SimulatedBroker, tp: TopicPartition, replica: Replica) -> bool:
        led = self._leader_of(broker, tp, replica)
        if led is None or broker.broker_id not in led.replicas:
            return False
        own, source = replica.log, led.log
        if (
            led.ends.get(broker.broker_id) == len(source.records)
            and led.epochs.get(broker.broker_id) == broker.epoch
            and own.records == source.records
            and own.high_watermark == source.high_watermark
        ):
            return False
        del own.records[common_prefix(own.records, source.records) :]
        led.ends[broker.broker_id] = len(own.records)
        led.epochs[broker.broker_id] = broker.epoch
        self.commit(replica.state.leader, tp, led)
        own.records += source.records[len(own.records) :][:RECORDS_PER_FETCH]
        own.high_watermark = min(source.high_watermark, len(own.records))
        return True

    # The leader

    def produce(self, broker: SimulatedBroker, tp: TopicPartition) -> None:
        """A client appends a record to what it takes for the leader."""
        replica = broker.replicas[tp]
        number = self._world.ledger.next_number()
        replica.log.records.append(Record(replica.state.leader_epoch, number))
        self.commit(broker.broker_id, tp, replica)

    def commit(self, leader: int, tp: TopicPartition, replica: Replica) -> None:
        """What all in-sync replicas of a leader have is committed.

        Who leads a partition of a topic that was deleted meanwhile, as nobody could tell the
        broker, commits nothing of the topic that has its name now."""
        if not replica.advance_high_watermark(leader):
            return
        if self._world.safety.was_ever_written(tp, replica.state):
            self._world.ledger.commit(tp, replica.log.records[: replica.log.high_watermark])

    def _lead(self, broker: SimulatedBroker, tp: TopicPartition, replica: Replica) -> bool:
        if replica.pending is not None or self._world.clock.now_ms() < replica.may_ask_at_ms:
            return False
        isr = self._in_sync(broker, tp, replica)
        if isr == replica.state.isr:
            return False
        if broker.asks_for_isr_changes:
            return broker.requests.isr_changes.submit(tp, replica, _next(replica.state.isr, isr))
        return self._change_isr(broker, tp, replica, isr)

    def _in_sync(
        self, broker: SimulatedBroker, tp: TopicPartition, replica: Replica
    ) -> tuple[int, ...]:
        """The ISR as it ought to be: without those who have stopped, with those who caught up.

        While faults happen a leader may also lose patience at once, or with a follower that merely
        lags, or hear of its followers too late.
        """
        end = len(replica.log.records)
        impatience = self._world.swarm.impatience
        silent = self._world.is_turbulent and self._world.rng.random() < self._world.swarm.silence
        impatient = self._world.is_turbulent and self._world.rng.random() < impatience
        isr = [
            member
            for member in replica.state.isr
            if member == broker.broker_id
            or not (
                self._is_missed(tp, replica, member)
                or silent
                or (impatient and (self._is_gone(tp, member) or replica.ends.get(member) != end))
            )
        ]
        for member in replica.replicas:
            if member not in replica.state.isr and replica.ends.get(member) == end:
                follower = self._world.brokers.get(member)
                hosted = None if follower is None else follower.replicas.get(tp)
                if (
                    follower is not None
                    and follower.is_responsive
                    and hosted is not None
                    and hosted.is_fetching
                    and hosted.state.leader_epoch == replica.state.leader_epoch
                ):
                    isr.append(member)
        return tuple(isr)

    def _is_gone(self, tp: TopicPartition, member: int) -> bool:
        follower = self._world.brokers.get(member)
        return follower is None or not follower.is_responsive or tp in follower.failed

    def _has_a_former_topic(self, tp: TopicPartition, replica: Replica, member: int) -> bool:
        """Whether a follower does not fetch, since what it has is of another topic."""
        held = self._world.brokers[member].logs.get(tp)
        ids = (replica.log.topic_id, None if held is None else held.topic_id)
        return None not in ids and ids[0] != ids[1]

    def _is_missed(self, tp: TopicPartition, replica: Replica, member: int) -> bool:
        """Whether a follower has been gone for so long that the leader gives it up."""
        if not (self._is_gone(tp, member) or self._has_a_former_topic(tp, replica, member)):
            replica.missed_since_ms.pop(member, None)
            return False
        now_ms = self._world.clock.now_ms()
        if member not in replica.missed_since_ms:
            replica.missed_since_ms[member] = now_ms
            self._world.clock.after(PATIENCE_MS, lambda: None)  # time must not end before
        return now_ms - replica.missed_since_ms[member] >= PATIENCE_MS

    def _change_isr(
        self, broker: SimulatedBroker, tp: TopicPartition, replica: Replica, isr: tuple[int, ...]
    ) -> bool:
        """Write the ISR on condition that nobody has changed the state since we heard of it."""
        client = broker.client
        if client is None or not client.is_connected:
            return False
        path = paths.partition_state(tp)
        state = msgspec.structs.replace(replica.state, isr=isr)
        (result,) = client.multi(
            [SetData(path, encode_partition_state(state), replica.state.partition_epoch)]
        )
        if not isinstance(result, Written):
            return self._is_outrun(broker, tp, replica)
        replica.state = msgspec.structs.replace(state, partition_epoch=result.version)
        broker.changed_isrs[tp] = None
        self._world.trace.line(broker.name, "changes ISR", f"{tp} {isr} version={result.version}")
        self.commit(broker.broker_id, tp, replica)
        return True

    def _is_outrun(self, broker: SimulatedBroker, tp: TopicPartition, replica: Replica) -> bool:
        """Someone has written: only a LeaderAndIsr helps. Trying is no progress, so no step."""
        node = self._world.zookeeper.get(paths.partition_state(tp))
        if node is not None:
            try:
                stored = decode_partition_state(paths.partition_state(tp), node)
            except MalformedZNodeError:
                return False
            assert (
                stored.partition_epoch >= replica.state.partition_epoch
                or (stored.leader_epoch == 0)
                or tp.topic in self._world.safety.seen.removed_by_hand
            ), f"{broker.name} knows a version of {tp} that never was"
        return False

    def _notify(self, broker: SimulatedBroker) -> bool:
        client = broker.client
        if client is None or not client.is_connected:
            return False
        content = encode_isr_change_notification(broker.changed_isrs)
        client.multi([Create(isr_change_notification_prefix(), content, sequential=True)])
        self._world.trace.line(
            broker.name, "notifies", " ".join(str(tp) for tp in broker.changed_isrs)
        )
        broker.changed_isrs.clear()
        return True


def _next(isr: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...]:
    """A leader that asks either shrinks an ISR or adds one member to it."""
    kept = tuple(member for member in isr if member in wanted)
    return kept if kept != isr else wanted[: len(isr) + 1]
