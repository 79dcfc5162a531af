"""Topics: no partition is lost, moved or deleted but as it was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regent.controller.reassignment.algebra import origin_of, reassign_to
from regent.model.cluster import DRAWN_CONTROLLER_IDS
from regent.model.errors import MalformedZNodeError
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.zk_data import paths
from regent.zk_data.deletion_marker import decode_deletion_marker
from regent.zk_data.operations import Create, Delete, Operation, SetData
from regent.zk_data.stray_replicas import decode_stray_replicas, strays_of
from regent.zk_data.topics import decode_topic
from tests.simulation.checkers.observed import BY_HAND, Observed
from tests.simulation.trace import require

if TYPE_CHECKING:
    from tests.simulation.world import World


class TopicChecker:
    """Follows topic nodes and marks of deletion."""

    def __init__(self, world: World, seen: Observed) -> None:
        self._world = world
        self._seen = seen

    def topic_written(
        self,
        writer: str,
        topic: str,
        operation: Operation,
        *,
        deleted: Sequence[str],
        is_controller: bool,
    ) -> None:
        """Somebody, or the fenced controller, creates, changes or deletes a topic's node."""
        if isinstance(operation, Delete):
            self._deleted(writer, topic, deleted, is_controller=is_controller)
            return
        if isinstance(operation, Create):
            self._forget_topic(topic)
            self._seen.ever_created[topic] = None
            if self._world.zookeeper.get(paths.delete_topic(topic)) is not None:
                self._world.ledger.strike_off_topic(topic)
            if self._seen.deleted_under.get(topic) != BY_HAND:  # else the replicas are still there
                self._world.ledger.topic_created(topic)
        assert isinstance(operation, Create | SetData)
        try:
            znode = decode_topic(topic, operation.data)
        except MalformedZNodeError:
            return
        is_marked = self._world.zookeeper.get(paths.delete_topic(topic)) is not None
        removed = topic in self._seen.removed_by_hand
        for tp in self._seen.partitions_of(topic):
            if tp.partition not in znode.assignments:
                # The version of a node that was created again may be that of the former one.
                require(is_marked or removed, f"{writer} loses {tp}")
                del self._seen.assignments[tp]
        for partition, assignment in znode.assignments.items():
            tp = TopicPartition(topic, partition)
            before = self._seen.assignments.get(tp, assignment)
            if before != assignment and writer != "admin":  # who may break what is right
                require(is_controller, f"{writer} moves {tp} from {before} to {assignment}")
                self._moved(writer, tp, before, assignment)
            self._seen.assignments[tp] = assignment

    def _moved(
        self, writer: str, tp: TopicPartition, before: ReplicaAssignment, after: ReplicaAssignment
    ) -> None:
        """A reassignment begins, gets another target, is cancelled as a whole, or has arrived."""
        target = after.target_replicas
        if any(replica in DRAWN_CONTROLLER_IDS for replica in before.replicas):
            self._corrected(writer, tp, before, after)
        elif after != ReplicaAssignment(before.target_replicas):
            require(
                after == reassign_to(before, target),
                f"{writer} takes {tp} from {before} to {after}, which is no reassignment",
            )
            require(
                target in self._world.workload.targets.get(tp, ())
                or sorted(target) == sorted(origin_of(before)),
                f"{writer} moves {tp} to {target}, which nobody has asked for",
            )
        history = self._seen.history.get(tp)
        # Of a topic that was created again by hand, and found the former one's states, members of
        # ISRs are no replicas: nobody removes those.
        removed = set(before.replicas) - set(after.replicas)
        # Who led the former one may take the new one's state for its own, and overwrite it.
        is_overwritten = self._world.removals.has_unknown_epochs(tp.topic)
        require(
            not history or is_overwritten or removed.isdisjoint(history[-1].isr),
            f"{writer} removes replicas of {tp} that are in sync: {before} to {after}",
        )
        for broker_id in before.replicas:
            if broker_id not in after.replicas:
                if any(process.name == writer for process in self._world.regents):
                    self._seen.left.pop((broker_id, tp), None)
                else:
                    self._seen.left[broker_id, tp] = None

    def _corrected(
        self, writer: str, tp: TopicPartition, before: ReplicaAssignment, after: ReplicaAssignment
    ) -> None:
        """A Regent is replaced: at once if the partition is not born, else by a reassignment."""
        brokers = [r for r in before.replicas if r not in DRAWN_CONTROLLER_IDS]
        added = [r for r in after.replicas if r not in brokers]
        require(
            [r for r in after.replicas if r in brokers] == brokers
            and len(after.replicas) <= len(before.replicas)
            and not any(r in DRAWN_CONTROLLER_IDS for r in added),
            f"{writer} corrects {tp} from {before} to {after}",
        )
        is_born = bool(self._seen.history.get(tp))
        require(
            after == ReplicaAssignment(after.replicas, tuple(added) if is_born else ()),
            f"{writer} corrects {tp}, born: {is_born}, from {before} to {after}",
        )
        self._world.workload.targets.setdefault(tp, {})[after.target_replicas] = None

    def marker_written(self, writer: str, topic: str, operation: Operation) -> None:
        """Take in that somebody marks a topic as to be deleted, or removes the mark."""
        if isinstance(operation, Delete):
            node = self._world.zookeeper.get(paths.topic(topic))
            meant = self._seen.meant_by_marker.pop(topic, 0)
            require(
                node is None or meant not in (0, node.czxid),
                f"{writer} removes the mark of {topic}, which still exists",
            )
        else:
            assert isinstance(operation, Create | SetData)
            self._seen.meant_by_marker[topic] = decode_deletion_marker(operation.data)
            self._world.ledger.strike_off_topic(topic)  # its records may go, one by one

    def _deleted(
        self, writer: str, topic: str, deleted: Sequence[str], *, is_controller: bool
    ) -> None:
        if is_controller:
            require(
                paths.delete_topic(topic) in deleted or topic in self._seen.removed_by_hand,
                f"{writer} deletes {topic}, but not in one transaction with its marker",
            )
            require(
                self._world.zookeeper.get(paths.topic_config(topic)) is None,
                f"{writer} deletes {topic}, but not its configuration",
            )
            # Answers about a topic of that name whose deletion somebody has cut short count, too.
            removed = topic in self._seen.removed_by_hand
            for tp in () if removed else self._seen.partitions_of(topic):
                kept = [
                    b
                    for b in self._seen.assignments[tp].replicas
                    if tp in self._world.brokers[b].logs and not self._is_noted(b, tp)
                ]
                require(not kept, f"{writer} deletes {tp} while brokers {kept} still have it")
        # What goes without the controller's doing stays in the caches of brokers forever.
        if is_controller:
            self._world.removals.deleted(topic)
        else:
            self._seen.removed_by_hand[topic] = None
            for tp, history in self._seen.history.items():
                if tp.topic == topic:
                    self._seen.set_back_from[tp] = history[-1].partition_epoch + 20
        self._seen.deleted_under[topic] = self._seen.epoch if is_controller else BY_HAND
        self._forget_topic(topic)

    def _is_noted(self, broker_id: int, tp: TopicPartition) -> bool:
        """Whether a broker is to delete its replica of a topic that is gone."""
        path = strays_of(broker_id, tp.topic)
        node = self._world.zookeeper.get(path)
        return node is not None and tp.partition in decode_stray_replicas(path, node.data)

    def _forget_topic(self, topic: str) -> None:
        self._seen.forget_topic(topic)
        self._world.ledger.forget_topic(topic)
