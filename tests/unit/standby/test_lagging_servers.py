"""The cache is what its server has, whatever lags, is lost, or comes in between."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.cluster.reads import Listing
from regent.model.cluster import Broker, EndPoint
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.simulation.broker_znodes import encode_broker, encode_cluster_id
from regent.standby.cache import StandbyCache
from regent.zk_data import paths
from regent.zk_data.brokers import encode_controller_registration
from regent.zk_data.operations import Create, Delete, Operation, SetData
from regent.zk_data.topics import TopicZNode, encode_partition_state, encode_topic
from tests.support.examples import scaled_examples
from tests.unit.standby.lagging_zookeeper import CacheClient, Ensemble, cold

SERVERS = 3
TOPICS = ("a", "b")
IDS = (uuid.UUID(int=7), uuid.UUID(int=8), None)

ROOTS: list[Operation] = [
    Create(path) for path in (paths.BROKERS, paths.BROKER_IDS, paths.BROKER_TOPICS, paths.CLUSTER)
]


def registration(broker_id: int, port: int) -> bytes:
    endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "host", port)
    broker = Broker(broker_id, 0, (endpoint,), None, 5, {}, 0)
    return encode_broker(broker, timestamp_ms=0)


def own_registration(broker_id: int) -> bytes:
    endpoint = EndPoint("PLAINTEXT", "PLAINTEXT", "host", 1)
    broker = Broker(broker_id, 0, (endpoint,), None, 4, {}, 0)
    return encode_controller_registration(broker, 0)


def topic_data(assignments: dict[int, tuple[int, ...]], topic_id: uuid.UUID | None) -> bytes:
    return encode_topic(
        TopicZNode(topic_id, {p: ReplicaAssignment(r) for p, r in assignments.items()})
    )


BROKER_IDS = st.sampled_from([1, 2])
REGISTRATIONS = st.one_of(
    st.builds(registration, st.just(1), st.sampled_from([1, 2])),
    st.builds(own_registration, st.just(1)),
    st.just(b"no registration"),
)
TOPIC_DATA = st.one_of(
    st.builds(
        topic_data,
        st.dictionaries(
            st.integers(0, 2), st.sampled_from([(1,), (1, 2), (2, 1)]), min_size=1, max_size=3
        ),
        st.sampled_from(IDS),
    ),
    st.sampled_from(
        [b"no topic", b'{"version":2,"partitions":{"0":[1],"1":[1,1],"x":[1]}}', b"{}"]
    ),
)
STATES = st.one_of(
    st.builds(
        lambda leader, epoch: encode_partition_state(LeaderAndIsr(leader, epoch, (1, 2), 3, 0)),
        st.sampled_from([1, 2, -1]),
        st.integers(0, 3),
    ),
    st.just(b"no state"),
)
TOPIC = st.sampled_from(TOPICS)
PARTITION = st.builds(TopicPartition, TOPIC, st.sampled_from([0, 0, 1, 2]))


def create_state(tp: TopicPartition, data: bytes) -> list[Operation]:
    return [Create(paths.topic_partition(tp)), Create(paths.partition_state(tp), data)]


def create_topic(topic: str, data: bytes, states: int, state: bytes) -> list[Operation]:
    created: list[Operation] = [
        Create(paths.topic(topic), data),
        Create(paths.topic_partitions(topic)),
    ]
    for partition in range(states):
        created += create_state(TopicPartition(topic, partition), state)
    return created


def delete_partition(tp: TopicPartition) -> list[Operation]:
    return [Delete(paths.partition_state(tp)), Delete(paths.topic_partition(tp))]


def delete_topic(topic: str, states: int) -> list[Operation]:
    deleted: list[Operation] = []
    for partition in range(states):
        deleted += delete_partition(TopicPartition(topic, partition))
    return [*deleted, Delete(paths.topic_partitions(topic)), Delete(paths.topic(topic))]


CREATIONS = st.builds(create_topic, TOPIC, TOPIC_DATA, st.integers(0, 3), STATES)
DELETIONS = st.builds(delete_topic, TOPIC, st.integers(0, 3))
TRANSACTIONS = st.one_of(
    st.builds(lambda i, d: [Create(paths.broker_id(i), d)], BROKER_IDS, REGISTRATIONS),
    st.builds(lambda i, d: [SetData(paths.broker_id(i), d)], BROKER_IDS, REGISTRATIONS),
    st.builds(lambda i: [Delete(paths.broker_id(i))], BROKER_IDS),
    CREATIONS,
    DELETIONS,
    st.builds(
        lambda topic, n, data, m, state: (
            delete_topic(topic, n) + create_topic(topic, data, m, state)
        ),
        *(TOPIC, st.integers(0, 3), TOPIC_DATA, st.integers(0, 3), STATES),
    ),
    st.builds(lambda topic, data: [SetData(paths.topic(topic), data)], TOPIC, TOPIC_DATA),
    st.builds(create_state, PARTITION, STATES),
    st.builds(delete_partition, PARTITION),
    st.builds(
        lambda tps, data: [SetData(paths.partition_state(tp), data) for tp in tps],
        *(st.lists(PARTITION, min_size=1, max_size=2), STATES),
    ),
    st.builds(lambda i: [Create(paths.CLUSTER_ID, encode_cluster_id(i))], st.sampled_from("xy")),
    st.builds(lambda: [SetData(paths.CLUSTER_ID, b"no id")]),
    st.builds(lambda: [Delete(paths.CLUSTER_ID)]),
    st.just([Create(paths.broker_id(1) + "/odd")]),
    st.just([Create(paths.BROKERS + "/seqid")]),
)
SERVER = st.integers(0, SERVERS - 1)
STEPS = st.one_of(
    st.tuples(st.just("commit"), TRANSACTIONS),
    st.tuples(st.just("commit"), TRANSACTIONS),
    st.tuples(st.just("advance"), SERVER),
    st.tuples(st.just("advance"), SERVER),
    st.tuples(st.just("serve"), st.integers(1, 4)),
    st.tuples(st.just("receive"), st.integers(1, 6)),
    st.tuples(st.just("receive"), st.integers(1, 6)),
    st.tuples(st.just("reconnect"), SERVER),
    st.tuples(st.just("expire"), SERVER),
    st.tuples(st.just("disconnect"), st.just(0)),
    st.tuples(st.just("rest"), st.just(0)),
    st.tuples(st.just("rest"), st.just(0)),
)


def content(cache: StandbyCache) -> object:
    """All that a controller would see of a cache."""
    cluster = cache.cluster
    return {
        "cluster id": cluster.cluster_id,
        "brokers": cluster.brokers,
        "topics": {
            topic: (cluster.topic_ids.get(topic), cluster.topic_czxids.get(topic))
            for topic in sorted(cluster.topics)
        },
        "assignments": {tp: cluster.assignment(tp) for tp in sorted(cluster.all_partitions())},
        "partitions": cluster.partition_count,
        "leadership": dict(sorted(cluster.leadership.items())),
        "malformed": dict(sorted(cache.malformed.items())),
        "versions": (
            {b: cache.broker_version(b) for b in sorted(cache.broker_ids)},
            {t: cache.topic_version(t) for t in sorted(cache.topics)},
            {tp: cache.state_mzxid(tp) for tp in sorted(cluster.all_partitions())},
        ),
        "znodes": cache.znode_count,
    }


def make_step(ensemble: Ensemble, client: CacheClient, kind: str, argument: Any) -> None:
    """Make a step, if it is possible."""
    server = client.server
    match kind:
        case "commit":
            ensemble.commit(argument)
        case "advance":
            ensemble.advance(ensemble.servers[argument])
        case "reconnect" | "expire":
            client.connect(ensemble.servers[argument], is_new_session=kind == "expire")
        case "disconnect":
            client.disconnect()
        case "rest":
            come_to_rest(ensemble, client)
        case "serve" if server is not None:
            for _ in range(min(argument, len(server.requests))):
                server.serve()
        case "receive" if server is not None:
            for _ in range(min(argument, len(server.sent))):
                assert client.receive() == []


def come_to_rest(ensemble: Ensemble, client: CacheClient) -> None:
    """Nothing is lost any more, and the client's server catches up."""
    if client.server is None:
        client.connect(ensemble.servers[0], is_new_session=True)
    server = client.server
    assert server is not None
    while ensemble.advance(server) or server.requests or server.sent or not client.is_settled:
        if server.requests:
            server.serve()
        while server.sent:
            assert client.receive() == []
        client.read()


@scaled_examples(4)
@given(steps=st.lists(STEPS, min_size=10, max_size=60), most=st.sampled_from([1, 3, 1_000]))
def test_a_cache_at_rest_is_what_a_cold_read_finds(steps: list[tuple[str, Any]], most: int) -> None:
    """On the way, too: what is not dirty is as it was at the server when the answer left it."""
    ensemble = Ensemble(SERVERS)
    assert ensemble.commit(ROOTS)
    client = CacheClient(ensemble, most=most)
    client.connect(ensemble.servers[0], is_new_session=True)
    for kind, argument in steps:
        make_step(ensemble, client, kind, argument)
    come_to_rest(ensemble, client)
    truth = ensemble.leader.dump()
    assert client.checked
    assert client.differences(truth) == []
    assert content(client.cache) == content(cold(truth))


@given(
    before=st.lists(TRANSACTIONS, min_size=5, max_size=20),
    after=st.lists(TRANSACTIONS, min_size=1, max_size=10),
)
def test_self_check_finds_all(before: list[list[Operation]], after: list[list[Operation]]) -> None:
    """Without a single event: each node that differs is named, and nothing else."""
    ensemble = Ensemble(1)
    assert ensemble.commit(ROOTS)
    for operations in before:
        ensemble.commit(operations)
    while ensemble.advance(ensemble.servers[0]):
        pass
    tree = ensemble.servers[0].dump()
    client = CacheClient(ensemble, most=10)
    client.cache = cold(tree)
    assert client.differences(tree) == []
    for operations in after:
        ensemble.commit(operations)
    while ensemble.advance(ensemble.servers[0]):
        pass
    truth = ensemble.servers[0].dump()
    found = client.differences(truth)
    assert bool(found) == (content(client.cache) != content(cold(truth)))
    client.cache.observe(difference.path for difference in found)
    assert client.differences(truth) == [], "what is dirty is no difference"


@pytest.mark.parametrize("path", [paths.BROKER_IDS, paths.topic_partitions("a"), "/brokers/x/y"])
def test_events_of_nodes_that_nobody_reads_cost_nothing(path: str) -> None:
    cache = StandbyCache()
    cache.observe([path])
    assert not cache.dirty_count


def test_what_could_not_be_read_is_dirty_still() -> None:
    cache = StandbyCache()
    cache.expect_anything(Listing((1,), ("a", "b")))
    reads = cache.next_reads(1)
    assert (reads.broker_ids, reads.topics, len(reads), cache.dirty_count) == ((1,), ("a",), 3, 1)
    cache.put_back(reads)
    assert cache.dirty_count == 4
    assert [cache.is_dirty(path) for path in reads.paths] == [True] * 3
    assert set(cache.next_reads(10).topics) == {"a", "b"}
