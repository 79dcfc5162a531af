"""A copy of the cluster as ZooKeeper has it, with the versions of its nodes.

A reducer without I/O: an event makes a node dirty, and a reading of the node makes it clean. The
reading replaces the known content. So the copy equals the server's content as soon as no node is
dirty. An event says only where to look.

A node is dirty from its event to the reading that begins after the event. If a node changes during
its reading, either the answer contains the change, or the event follows the answer.
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
"""mzxid of a node that was not read yet (-1: the reading failed)."""

ClusterT = TypeVar("ClusterT", bound=ClusterFacts)


class NodeVersion(NamedTuple):
    """The content of a node: a node that was created again has a different czxid."""

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
        cluster: The copy. Only the cache changes it.
        malformed: Paths of nodes that do not decode, with the reasons. ``cluster`` lacks them, as
            after a failover that reads everything.

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
        """Number of nodes that the copy must read before it equals ZooKeeper."""
        return len(self._dirty)

    @property
    def znode_count(self) -> int:
        """Nodes that the copy was made of."""
        below_brokers = len(self._broker_versions) + len(self._topic_versions)
        has_id = self.cluster.cluster_id is not None
        return below_brokers + len(self._state_mzxids) + has_id

    @property
    def broker_ids(self) -> KeysView[int]:
        """Ids of all registrations, also of those that ``cluster`` lacks."""
        return self._broker_versions.keys()

    @property
    def topics(self) -> KeysView[str]:
        """Names of all topic nodes, also of those that ``cluster`` lacks."""
        return self._topic_versions.keys()

    def broker_version(self, broker_id: int) -> NodeVersion | None:
        """Return the version of a registration, None if there is no registration."""
        return self._broker_versions.get(broker_id)

    def topic_version(self, topic: str) -> NodeVersion | None:
        """Return the version of a topic node, None if there is no such node."""
        return self._topic_versions.get(topic)

    def state_mzxid(self, tp: TopicPartition) -> int | None:
        """Return the mzxid of a state node, None if there is no such node. The dataVersion of the
        node is the partition epoch."""
        return self._state_mzxids.get(tp)

    # Readings

    def observe(self, touched: Iterable[str]) -> None:
        """Events have come for the nodes at these paths."""
        self._dirty.add(touched)

    def expect_anything(self, listing: Listing) -> None:
        """Mark all listed and all known nodes as dirty: events may have been lost.

        Args:
            listing: Read after the watches were set, so that later changes cause events.
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
        """Mark nodes as dirty again: their reading failed."""
        self._dirty.put_back(reads)

    def is_dirty(self, path: str) -> bool:
        """Return whether the node at a path, or its topic, is dirty."""
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
        """Mark the malformed nodes as dirty: a new permission, which causes no event, may help."""
        self._dirty.add(tuple(self.malformed))

    # Answers

    def apply(self, reads: Reads, nodes: Sequence[ZNode | None]) -> None:
        """Take in nodes that were read.

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
        """Take in a topic, which may be known. Mark the states of its new partitions as dirty, as
        earlier events of these states were left out."""
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
"""A cache with any kind of facts."""


def registered_broker(broker_id: int, node: ZNode) -> Broker | None:
    """The broker that a registration names; None if it is a Regent's.

    Raises:
        MalformedZNodeError: If it does not decode.
    """
    return None if is_controller_registration(node) else decode_broker(broker_id, node)
