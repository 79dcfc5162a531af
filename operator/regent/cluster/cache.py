"""A copy of the cluster as ZooKeeper has it, with the versions of its nodes.

A reducer without I/O: events make nodes dirty, what was read of them makes them clean. What is read
replaces what is known, whatever that is: so the copy is what the server has whose events and
answers come in, as soon as nothing is dirty. Nothing is derived from events but where to look.

A node is dirty from its event to the reading that begins after it. A change that takes place while
its node is read is either in the answer, or its event comes after the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from regent.cluster.facts import ClusterFacts
from regent.cluster.reads import DirtyNodes, Listing, Reads
from regent.model.cluster import Broker
from regent.model.errors import MalformedZNodeError
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import paths
from regent.zk_data.brokers import decode_broker, is_controller_registration
from regent.zk_data.cluster import decode_cluster_id
from regent.zk_data.operations import ZNode
from regent.zk_data.topics import TopicZNode, decode_topic, partition_state_decoder

_NEVER: Final = -2
"""mzxid of what has not been read (-1: it could not be)."""

ClusterT = TypeVar("ClusterT", bound=ClusterFacts)


class NodeVersion(NamedTuple):
    """Which content of which node: of a node created again the czxid is another one."""

    version: int
    czxid: int
    mzxid: int

    @classmethod
    def of(cls, node: ZNode) -> NodeVersion:
        """That of a node as it was read."""
        return cls(node.version, node.czxid, node.mzxid)


class ClusterCache(Generic[ClusterT]):
    """Brokers, topics, assignments and leadership as ZooKeeper has them.

    Attributes:
        cluster: The copy. Nobody else changes it.
        malformed: What could not be decoded, path -> why. It is left out of ``cluster``, as in a
            failover that reads everything.

    Args:
        cluster: Knows nothing yet.
    """

    def __init__(self, cluster: ClusterT) -> None:
        self.cluster = cluster
        self.malformed: dict[str, str] = {}
        self._dirty = DirtyNodes()
        self._broker_versions: dict[int, NodeVersion] = {}
        self._topic_versions: dict[str, NodeVersion] = {}
        self._state_mzxids: dict[TopicPartition, int] = {}
        self._decode_state = partition_state_decoder()

    @property
    def dirty_count(self) -> int:
        """Nodes that have to be read before the copy is what ZooKeeper has."""
        return len(self._dirty)

    @property
    def znode_count(self) -> int:
        """Nodes that the copy was made of."""
        below_brokers = len(self._broker_versions) + len(self._topic_versions)
        has_id = self.cluster.cluster_id is not None
        return below_brokers + len(self._state_mzxids) + has_id

    @property
    def broker_ids(self) -> KeysView[int]:
        """Of all registrations, also those that are left out of ``cluster``."""
        return self._broker_versions.keys()

    @property
    def topics(self) -> KeysView[str]:
        """Names of all topic nodes, also those that are left out of ``cluster``."""
        return self._topic_versions.keys()

    def broker_version(self, broker_id: int) -> NodeVersion | None:
        """Of a registration as it was read, None if there is none."""
        return self._broker_versions.get(broker_id)

    def topic_version(self, topic: str) -> NodeVersion | None:
        """Of a topic node as it was read, None if there is none."""
        return self._topic_versions.get(topic)

    def state_mzxid(self, tp: TopicPartition) -> int | None:
        """Of a state node as it was read, None if there is none. Its dataVersion is the partition
        epoch."""
        return self._state_mzxids.get(tp)

    # What is to be read

    def observe(self, touched: Iterable[str]) -> None:
        """Events have come for the nodes at these paths."""
        self._dirty.add(touched)

    def expect_anything(self, listing: Listing) -> None:
        """Events may have been lost: all that there is, and all that is known, has to be read.

        Args:
            listing: Read after the watches were set. What comes later has events.
        """
        dirty = self._dirty
        dirty.cluster_id = True
        for broker_ids in (listing.broker_ids, self._broker_versions):
            dirty.broker_ids.update(dict.fromkeys(broker_ids))
        for topics in (listing.topics, self._topic_versions):
            dirty.topics.update(dict.fromkeys(topics))
        dirty.states.update(dict.fromkeys(self.cluster.all_partitions()))

    def next_reads(self, most: int) -> Reads:
        """Dirty nodes to be read together; they are clean once :meth:`apply` has what was read.

        Args:
            most: How many topics and states.
        """
        return self._dirty.take(most)

    def put_back(self, reads: Reads) -> None:
        """What :meth:`next_reads` has returned could not be read: it is dirty still."""
        self._dirty.put_back(reads)

    def is_dirty(self, path: str) -> bool:
        """Whether the node at a path is to be read again, or belongs to a topic that is."""
        touched = DirtyNodes()
        touched.add((path,))
        dirty = self._dirty
        return (
            (touched.cluster_id and dirty.cluster_id)
            or any(broker_id in dirty.broker_ids for broker_id in touched.broker_ids)
            or any(topic in dirty.topics for topic in touched.topics)
            or any(tp in dirty.states or tp.topic in dirty.topics for tp in touched.states)
        )

    def expect_corrections(self) -> None:
        """What is left out has to be read again: the right to read it may have come back, which
        changes no node and so is no event."""
        self._dirty.add(tuple(self.malformed))

    # What was read

    def apply(self, reads: Reads, nodes: Sequence[ZNode | None]) -> None:
        """Take over what was read.

        Args:
            nodes: Of ``reads.paths``, in this order.
        """
        remaining = iter(nodes)
        if reads.cluster_id:
            self._apply_cluster_id(next(remaining))
        for broker_id in reads.broker_ids:
            self._apply_broker(broker_id, next(remaining))
        for topic in reads.topics:
            self._apply_topic(topic, next(remaining))
        self._apply_states(zip(reads.states, remaining, strict=True))
        if not len(self._dirty):
            self._decode_state = partition_state_decoder()  # it remembers all that it has decoded

    def _apply_cluster_id(self, node: ZNode | None) -> None:
        self.malformed.pop(paths.CLUSTER_ID, None)
        self.cluster.cluster_id = None
        if node is not None:
            try:
                self.cluster.cluster_id = decode_cluster_id(node.data)
            except MalformedZNodeError as error:
                self.malformed[error.path] = error.reason

    def _apply_broker(self, broker_id: int, node: ZNode | None) -> None:
        path = paths.broker_id(broker_id)
        version = None if node is None else NodeVersion.of(node)
        if version == self._broker_versions.get(broker_id):
            return
        self.malformed.pop(path, None)
        self._broker_versions.pop(broker_id, None)
        broker: Broker | None = None
        if node is not None and version is not None:
            self._broker_versions[broker_id] = version
            try:
                broker = registered_broker(broker_id, node)
            except MalformedZNodeError as error:
                self.malformed[path] = error.reason
        if broker is not None:
            self.cluster.add_brokers([broker])
        elif broker_id in self.cluster.brokers:
            self.cluster.remove_brokers([broker_id])

    def _apply_topic(self, topic: str, node: ZNode | None) -> None:
        version = None if node is None else NodeVersion.of(node)
        known = self._topic_versions.get(topic)
        if version == known:
            return
        path = paths.topic(topic)
        self.malformed.pop(path, None)
        if node is None or version is None:
            self._forget_topic(topic)
            return
        try:
            znode = decode_topic(topic, node.data, czxid=node.czxid)
        except MalformedZNodeError as error:
            self._forget_topic(topic)
            self._topic_versions[topic] = version
            self.malformed[path] = error.reason
            self.cluster.note_unreadable({topic: error.reason})
            return
        if known is not None and not self._has_only_grown(topic, znode):
            self._forget_topic(topic)
        self._topic_versions[topic] = version
        problems = znode.described_problems
        if problems is not None:
            self.malformed[path] = problems
        self.cluster.note_unreadable({topic: problems})
        self._add_partitions(topic, znode)

    def _has_only_grown(self, topic: str, znode: TopicZNode) -> bool:
        """Whether a topic is the one that is known, and has its partitions still."""
        cluster = self.cluster
        return (
            cluster.topic_czxids.get(topic) == znode.czxid
            and cluster.topic_ids.get(topic) == znode.topic_id
            and all(tp.partition in znode.assignments for tp in cluster.partitions_of(topic))
        )

    def _add_partitions(self, topic: str, znode: TopicZNode) -> None:
        """Take a topic over, which may be known. States of partitions that are new have to be read:
        nobody was interested in their events."""
        known = self.cluster.partitions_of(topic)
        changed = {}
        for partition, assignment in znode.assignments.items():
            tp = TopicPartition(topic, partition)
            before = known.get(tp)
            if before is None:
                self._dirty.states[tp] = None
            if assignment != before:
                changed[tp] = assignment
        self.cluster.add_topic(topic, znode.topic_id, znode.czxid)
        self.cluster.set_assignments(topic, changed)

    def _forget_topic(self, topic: str) -> None:
        self._topic_versions.pop(topic, None)
        for tp in self.cluster.remove_topic(topic):
            if self._state_mzxids.pop(tp, None) is not None and self.malformed:
                self.malformed.pop(paths.partition_state(tp), None)

    def _apply_states(self, read: Iterable[tuple[TopicPartition, ZNode | None]]) -> None:
        cluster, mzxids, decode = self.cluster, self._state_mzxids, self._decode_state
        known_mzxid = mzxids.get
        changed: dict[TopicPartition, LeaderAndIsr] = {}
        for tp, node in read:
            if cluster.assignment(tp) is None:
                continue  # read when there is such a partition
            if node is None:
                self._forget_state(tp)
            elif node.mzxid != known_mzxid(tp, _NEVER):
                if self.malformed:
                    self.malformed.pop(paths.partition_state(tp), None)
                try:
                    changed[tp] = decode(paths.partition_state(tp), node)
                except MalformedZNodeError as error:
                    self._forget_state(tp)
                    self.malformed[error.path] = error.reason
                mzxids[tp] = node.mzxid
        cluster.load_leadership(changed)

    def _forget_state(self, tp: TopicPartition) -> None:
        if self._state_mzxids.pop(tp, None) is not None:
            self.malformed.pop(paths.partition_state(tp), None)
            self.cluster.forget_leadership(tp)


AnyClusterCache = ClusterCache[Any]
"""A cache, whatever somebody adds to the facts."""


def registered_broker(broker_id: int, node: ZNode) -> Broker | None:
    """The broker that a registration names; None if it is a Regent's.

    Raises:
        MalformedZNodeError: If it does not decode.
    """
    return None if is_controller_registration(node) else decode_broker(broker_id, node)
