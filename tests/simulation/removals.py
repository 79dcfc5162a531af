"""What people take away from ZooKeeper behind the controller's back, and what they put there.

Advice of this kind is found: ``rmr /brokers/topics/T`` for a topic that does not go, and ``rmr
/controller`` after it.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING

from regent.controller.state.context import ControllerContext
from regent.model.errors import MalformedZNodeError
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.zk_data import paths
from regent.zk_data.controller import encode_controller_epoch
from regent.zk_data.operations import Create, Delete, SetData
from regent.zk_data.topics import TopicZNode, decode_topic, encode_topic
from tests.simulation.replicated_log import Record

if TYPE_CHECKING:
    from tests.simulation.world import World


class Removals:
    """Removes nodes, and creates some of them again at once.

    Only what Regent knows is expected of it: a controller that was elected later begins a topic of
    a former name at epochs that brokers ignore, until they are restarted. Until then a leader of
    the former topic may write its ISR to the new one's state, if the versions happen to be equal.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._known_to: list[ControllerContext | None] = []
        self._stateless: dict[TopicPartition, None] = {}
        self._former: dict[TopicPartition, tuple[LeaderAndIsr, list[Record]]] = {}

    def remove_topic(self) -> bool:
        """A topic's nodes go; mostly there is another one of that name at once."""
        rng, workload = self._world.rng, self._world.workload
        topics = [
            t for t in self._world.zookeeper.children(paths.BROKER_TOPICS) if t.startswith("t")
        ]
        if not topics:
            return False
        topic = rng.choice(topics)
        node = self._world.zookeeper.get(paths.topic(topic))
        assert node is not None
        try:
            znode = decode_topic(topic, node.data)
        except MalformedZNodeError:
            return False
        self._note_who_knows(topic)
        again = self._another(znode)
        workload.delete_recursively(paths.topic(topic))
        if rng.random() < 0.3:
            workload.multi(Delete(paths.topic_config(topic)))
        if rng.random() < 0.3:
            workload.multi(Delete(paths.delete_topic(topic)))
        if rng.random() < 0.6:
            workload.multi(Create(paths.topic(topic), encode_topic(again)))
        else:
            delay_ms = rng.randint(10, 5_000)
            create = Create(paths.topic(topic), encode_topic(again))
            self._world.clock.after(delay_ms, partial(self._create_later, create))
        return True

    def _create_later(self, operation: Create) -> None:
        if self._world.is_turbulent:
            self._world.workload.multi(operation)

    def _context(self) -> ControllerContext | None:
        """That of the controller, who learns of what is removed now, if it stays so."""
        active = [p.controller.active for p in self._world.regents if p.is_alive]
        epoch = self._world.safety.epoch  # one that was deposed may not know it yet
        return next(
            (a.context for a in active if a is not None and a.context.term.epoch == epoch), None
        )

    def _note_who_knows(self, topic: str) -> None:
        context = self._context()
        if context is not None and not context.cluster.has_topic(topic):
            context = None
        self._known_to.append(context)
        for tp in self._world.safety.seen.partitions_of(topic):
            self._former.pop(tp, None)
            self._stateless.pop(tp, None)
            history = self._world.safety.seen.history.get(tp)
            if (
                context is not None
                and history
                and context.cluster.leadership.get(tp) == history[-1]
                and not context.is_topic_queued_for_deletion(topic)
                and self._world.zookeeper.get(paths.delete_topic(topic)) is None
            ):
                self._former[tp] = history[-1], self._world.ledger.committed(tp)

    @property
    def are_known(self) -> bool:
        """Whether who led at each removal still leads. Else brokers know epochs that no controller
        knows."""
        now = self._context()
        return all(context is not None and context is now for context in self._known_to)

    def has_unknown_epochs(self, topic: str) -> bool:
        """Whether brokers may know epochs of a topic's name that no controller knows."""
        return topic in self._world.safety.seen.removed_by_hand and not self.are_known

    def deleted(self, topic: str) -> None:
        """A controller has deleted a topic, and its replicas."""
        self._former = {tp: was for tp, was in self._former.items() if tp.topic != topic}

    def born(self, tp: TopicPartition) -> None:
        """A partition has its first state. If there was one of that name whose replicas are there
        still, what was committed to that is committed."""
        if tp in self._stateless:
            del self._stateless[tp]
            if not self.are_known:
                self._world.ledger.strike_off(tp)
            return
        former, context = self._former.pop(tp, None), self._context()
        if former is None or context is None or not self.are_known:
            return
        if self._world.zookeeper.get(paths.delete_topic(tp.topic)) is not None:
            return
        state, records = former
        replicas = context.cluster.replicas(tp)
        if any(r in replicas and context.is_replica_online(r, tp) for r in state.isr):
            self._world.ledger.committed_before(tp, records)

    def mend(self) -> bool:
        """Brokers know epochs of topics that were removed while nobody led who still leads, and
        ids of topics that have another one: they are restarted, without the replicas of those. So
        they are if states are missing, which nobody needs before that. Whether it was necessary."""
        if self.are_known and not self._has_other_ids() and not self._stateless:
            return False
        seen = self._world.safety.seen
        for tp in () if self.are_known else self._stateless:
            self._world.ledger.strike_off(tp)
        seen.announced = {
            k: v for k, v in seen.announced.items() if k[0].topic not in seen.removed_by_hand
        }
        self._known_to.clear()
        self._former.clear()
        self._stateless.clear()
        for broker in self._world.brokers.values():
            if broker.is_running:
                broker.stop()
            for tp, log in list(broker.logs.items()):
                if tp.topic not in seen.removed_by_hand:
                    continue
                if self._id_of(tp.topic) != log.topic_id:
                    del broker.logs[tp]
                    self._world.ledger.strike_off(tp)
        return True

    def _has_other_ids(self) -> bool:
        """Whether brokers host a topic under another id than its node has."""
        removed = self._world.safety.seen.removed_by_hand
        return any(
            tp.topic in removed and self._id_of(tp.topic) not in (None, log.topic_id)
            for broker in self._world.brokers.values()
            for tp, log in broker.logs.items()
        )

    def _id_of(self, topic: str) -> uuid.UUID | None:
        node = self._world.zookeeper.get(paths.topic(topic))
        return None if node is None else decode_topic(topic, node.data).topic_id

    def _another(self, znode: TopicZNode) -> TopicZNode:
        """The same, or fewer, or more partitions, or elsewhere."""
        rng, brokers = self._world.rng, list(self._world.brokers)
        kind = rng.choice(("same", "same", "elsewhere", "fewer", "more"))
        assignments = {
            p: ReplicaAssignment(assignment.replicas) for p, assignment in znode.assignments.items()
        }
        if kind == "elsewhere":
            assignments = {
                p: ReplicaAssignment(tuple(rng.sample(brokers, rng.randint(1, 3))))
                for p in assignments
            }
        elif kind == "fewer":
            assignments = {p: a for p, a in assignments.items() if not p}
        elif kind == "more":
            assignments |= {
                len(assignments): ReplicaAssignment(tuple(rng.sample(brokers, rng.randint(1, 3))))
            }
        return TopicZNode(znode.topic_id, assignments)

    def remove_states(self) -> bool:
        """Of all partitions of a topic, or of one. The controller creates them again where they are
        needed; if it learns of it, that is: another one takes all live replicas for in sync."""
        rng, seen = self._world.rng, self._world.safety.seen
        known = [tp for tp in self._world.safety.partitions if self._has_state(tp)]
        if not known:
            return False
        tp = rng.choice(known)
        path = rng.choice(
            (paths.topic_partitions(tp.topic), paths.topic_partition(tp), paths.partition_state(tp))
        )
        lost = [other for other in known if paths.partition_state(other).startswith(path)]
        context = self._context()
        seen.removed_by_hand[tp.topic] = None
        for each in lost:
            last = seen.history[each][-1]
            seen.set_back_from[each] = last.partition_epoch + 20
            is_known = context is not None and context.cluster.leadership.get(each) == last
            self._known_to.append(context if is_known else None)
            self._stateless[each] = None
            if not is_known:
                self._world.ledger.strike_off(each)
        self._world.workload.delete_recursively(path)
        return True

    def _has_state(self, tp: TopicPartition) -> bool:
        return self._world.zookeeper.get(paths.partition_state(tp)) is not None

    def rewrite_controller_epoch(self) -> bool:
        """As after a restore of a part, or by a tool: it is higher or lower than before."""
        rng, workload = self._world.rng, self._world.workload
        epoch = self._world.safety.epoch
        if not epoch:
            return False
        path, kind = paths.CONTROLLER_EPOCH, rng.choice(("higher", "lower", "again"))
        wanted = epoch if kind == "again" else epoch + rng.randint(1, 4)
        if kind == "lower":
            wanted = rng.randrange(epoch)
        data = encode_controller_epoch(wanted)
        if kind != "again":
            return workload.multi(SetData(path, data))
        return workload.multi(Delete(path), Create(path, data))

    def remove_registration(self) -> bool:
        """Of a broker that lives, and registers again under the same session."""
        brokers = [b for b in self._world.brokers.values() if b.is_responsive]
        if not brokers:
            return False
        broker = self._world.rng.choice(brokers)
        broker.was_away = True
        self._world.safety.seen.unregistered_by_hand[broker.broker_id] = None
        return self._world.workload.multi(Delete(paths.broker_id(broker.broker_id)))
