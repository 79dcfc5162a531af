"""Compares a copy with ZooKeeper. A difference is a bug, of Regent or of a watch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from regent.cluster.cache import AnyClusterCache, NodeVersion, registered_broker
from regent.cluster.reads import Listing, Reads
from regent.model.errors import MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.cluster import decode_cluster_id
from regent.zk_data.operations import ZNode
from regent.zk_data.topics import decode_partition_state, decode_topic


class Difference(NamedTuple):
    """A node of which the copy has something else.

    Attributes:
        cached: The content in the copy, for people.
        stored: The content in ZooKeeper, for people.
    """

    path: str
    cached: str
    stored: str


def reads_to_compare(cache: AnyClusterCache, listing: Listing, *, most: int) -> Iterator[Reads]:
    """All nodes that are known or exist, in parts: first the cluster, brokers and topics, then the
    states. The parts are made lazily: a node
    that is created or deleted meanwhile may be missing."""
    broker_ids = dict.fromkeys((*listing.broker_ids, *cache.broker_ids))
    yield Reads(True, tuple(broker_ids), (), ())
    topics = iter(dict.fromkeys((*listing.topics, *cache.topics)))
    while some := tuple(islice(topics, most)):
        yield Reads(False, (), some, ())
        states = iter([tp for topic in some for tp in cache.cluster.partitions_of(topic)])
        while part := tuple(islice(states, most)):
            yield Reads(False, (), (), part)


def compare(
    cache: AnyClusterCache, reads: Reads, nodes: Sequence[ZNode | None]
) -> list[Difference]:
    """Differences between the copy and what was read just now.

    Args:
        cache: As it was before the reading, but it has observed all events that came before the
            answer. Dirty nodes are left out: the copy does not claim to have them.
        nodes: Of ``reads.paths``, in this order.
    """
    remaining = iter(nodes)
    found: list[tuple[str, object, object]] = []
    if reads.cluster_id:
        found.append((paths.CLUSTER_ID, _cached_cluster_id(cache), _cluster_id(next(remaining))))
    for broker_id in reads.broker_ids:
        path = paths.broker_id(broker_id)
        found.append((path, _cached_broker(cache, broker_id), _broker(broker_id, next(remaining))))
    found += [
        (paths.topic(topic), _cached_topic(cache, topic), _topic(topic, next(remaining)))
        for topic in reads.topics
    ]
    for tp in reads.states:
        node = next(remaining)
        if cache.cluster.assignment(tp) is not None:
            path = paths.partition_state(tp)
            found.append((path, _cached_state(cache, tp, path), _state(path, node)))
    return [
        Difference(path, str(cached), str(stored))
        for path, cached, stored in found
        if cached != stored and not cache.is_dirty(path)
    ]


def _cached_cluster_id(cache: AnyClusterCache) -> object:
    return cache.malformed.get(paths.CLUSTER_ID, cache.cluster.cluster_id)


def _cluster_id(node: ZNode | None) -> object:
    try:
        return None if node is None else decode_cluster_id(node.data)
    except MalformedZNodeError as error:
        return error.reason


def _cached_broker(cache: AnyClusterCache, broker_id: int) -> object:
    known = cache.malformed.get(paths.broker_id(broker_id), cache.cluster.brokers.get(broker_id))
    return cache.broker_version(broker_id), known


def _broker(broker_id: int, node: ZNode | None) -> object:
    if node is None:
        return None, None
    try:
        return NodeVersion.of(node), registered_broker(broker_id, node)
    except MalformedZNodeError as error:
        return NodeVersion.of(node), error.reason


def _cached_topic(cache: AnyClusterCache, topic: str) -> object:
    cluster = cache.cluster
    version, problem = cache.topic_version(topic), cache.malformed.get(paths.topic(topic))
    if not cluster.has_topic(topic):
        return version, problem
    assignments = {tp.partition: a for tp, a in cluster.partitions_of(topic).items()}
    return version, problem, cluster.topic_ids.get(topic), assignments


def _topic(topic: str, node: ZNode | None) -> object:
    if node is None:
        return None, None
    version = NodeVersion.of(node)
    try:
        znode = decode_topic(topic, node.data, czxid=node.czxid)
    except MalformedZNodeError as error:
        return version, error.reason
    return version, znode.described_problems, znode.topic_id, znode.assignments


def _cached_state(cache: AnyClusterCache, tp: TopicPartition, path: str) -> object:
    state = cache.cluster.leadership.get(tp)
    return cache.state_mzxid(tp), cache.malformed.get(path, state) if cache.malformed else state


def _state(path: str, node: ZNode | None) -> object:
    if node is None:
        return None, None
    try:
        return node.mzxid, decode_partition_state(path, node)
    except MalformedZNodeError as error:
        return node.mzxid, error.reason
