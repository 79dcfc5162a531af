from __future__ import annotations

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.errors import MalformedZNodeError
from regent.model.partition import LeaderAndIsr, ReplicaAssignment
from regent.zk_data.decoding import EPOCH_MAX
from regent.zk_data.operations import ZNode
from regent.zk_data.topics import (
    TopicZNode,
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
    partition_state_decoder,
)

STATE_PATH = "/brokers/topics/t/partitions/0/state"
TOPIC_ID = uuid.UUID("9e0b58f3-5ed8-4f3a-9c0a-0d3e2a3c6f11")
TOPIC_ID_TEXT = "ngtY817YTzqcCg0-KjxvEQ"


def znode(data: bytes, *, version: int = 4) -> ZNode:
    return ZNode(data=data, version=version, czxid=1, mzxid=2)


BROKER_LISTS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True).map(tuple)
STATES = st.builds(
    LeaderAndIsr,
    leader=st.integers(-1, 2**31 - 1),
    leader_epoch=st.integers(0, EPOCH_MAX),
    isr=st.lists(st.integers(0, 2**31 - 1), max_size=5, unique=True).map(tuple),
    controller_epoch=st.integers(0, 2**31 - 1),
    partition_epoch=st.integers(0, 2**31 - 1),
    leader_recovery_state=st.sampled_from([0, 1]),
)
ASSIGNMENTS = st.builds(
    ReplicaAssignment,
    replicas=BROKER_LISTS,
    adding_replicas=st.lists(st.integers(0, 9), max_size=2, unique=True).map(tuple),
    removing_replicas=st.lists(st.integers(0, 9), max_size=2, unique=True).map(tuple),
)
TOPICS = st.builds(
    TopicZNode,
    topic_id=st.none() | st.uuids(),
    assignments=st.dictionaries(st.integers(0, 2**31 - 1), ASSIGNMENTS, max_size=5),
)


@pytest.mark.parametrize("behind", [b"\x00", b"\x00\n", b" }", b"{}", b"\xff"])
def test_what_is_behind_the_json_is_ignored_as_in_kafka(behind: bytes) -> None:
    state = b' {"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2]}'
    assert decode_partition_state(STATE_PATH, znode(state + behind)) == LeaderAndIsr(
        2, 0, (2,), 1, 4
    )
    topic = b'{"version":1,"partitions":{"0":[1,2]}}'
    assert decode_topic("t", topic + behind) == decode_topic("t", topic)


@given(STATES)
def test_a_state_survives_the_round_trip(state: LeaderAndIsr) -> None:
    data = encode_partition_state(state)
    assert decode_partition_state(STATE_PATH, znode(data, version=state.partition_epoch)) == state


def test_a_state_as_kafka_wrote_it() -> None:
    data = b'{"controller_epoch":12,"leader":2,"version":1,"leader_epoch":33,"isr":[2,0,1]}'
    state = LeaderAndIsr(2, 33, (2, 0, 1), 12, 4, 0)
    assert decode_partition_state(STATE_PATH, znode(data)) == state
    assert encode_partition_state(state) == data


def state_json(**changes: object) -> bytes:
    members: dict[str, object] = {
        "version": 1,
        "leader": 1,
        "leader_epoch": 0,
        "controller_epoch": 1,
        "isr": [1],
    }
    members.update(changes)
    return json.dumps({k: v for k, v in members.items() if v is not ...}).encode()


@pytest.mark.parametrize(
    "data",
    [
        state_json(leader=...),
        state_json(leader_epoch=...),
        state_json(controller_epoch=...),
        state_json(isr=...),
        state_json(leader="1"),
        state_json(leader=-2),
        state_json(leader=2**31),
        state_json(leader_epoch=-1),
        pytest.param(state_json(leader_epoch=EPOCH_MAX + 1), id="an epoch that is soon used up"),
        state_json(leader_epoch=10**30),
        state_json(isr=None),
        state_json(isr=[1, 1]),
        state_json(isr=[-1]),
        state_json(isr=[1.5]),
        state_json(isr={"1": 1}),
        state_json(leader_recovery_state=2),
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        state_json()[:-1],
    ],
)
def test_malformed_states(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError) as caught:
        decode_partition_state(STATE_PATH, znode(data))
    assert caught.value.path == STATE_PATH
    assert caught.value.reason


@given(TOPICS)
def test_a_topic_survives_the_round_trip(topic: TopicZNode) -> None:
    decoded = decode_topic("t", encode_topic(topic))
    assert decoded == topic
    assert list(decoded.assignments) == sorted(topic.assignments)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(
            b'{"version":1,"partitions":{"1":[2,0],"0":[1,2]}}',
            TopicZNode(None, {0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((2, 0))}),
            id="v1",
        ),
        pytest.param(
            b'{"version":2,"partitions":{"0":[1,2,3]},"adding_replicas":{"0":[3]},'
            b'"removing_replicas":{"0":[1]}}',
            TopicZNode(None, {0: ReplicaAssignment((1, 2, 3), (3,), (1,))}),
            id="v2, reassigning",
        ),
        pytest.param(
            b'{"removing_replicas":{},"partitions":{"0":[1]},"topic_id":"%b",'
            b'"adding_replicas":{},"version":3}' % TOPIC_ID_TEXT.encode(),
            TopicZNode(TOPIC_ID, {0: ReplicaAssignment((1,))}),
            id="v3",
        ),
        pytest.param(
            b'{"version":4,"partitions":{"0":[1]},"adding_replicas":null,"new":[{}]}',
            TopicZNode(None, {0: ReplicaAssignment((1,))}),
            id="a version of the future",
        ),
        pytest.param(b'{"version":1}', TopicZNode(None, {}), id="no partitions"),
    ],
)
def test_real_topics(data: bytes, expected: TopicZNode) -> None:
    assert decode_topic("t", data) == expected


def test_encoding_as_kafka_does() -> None:
    topic = TopicZNode(None, {0: ReplicaAssignment((1, 2), (2,), ()), 1: ReplicaAssignment((1,))})
    assert encode_topic(topic) == (
        b'{"version":2,"partitions":{"0":[1,2],"1":[1]},"adding_replicas":{"0":[2]},'
        b'"removing_replicas":{}}'
    )
    with_id = TopicZNode(TOPIC_ID, {})
    assert encode_topic(with_id) == (
        b'{"version":3,"partitions":{},"adding_replicas":{},"removing_replicas":{},'
        b'"topic_id":"%b"}' % TOPIC_ID_TEXT.encode()
    )


@pytest.mark.parametrize(
    ("key", "replicas"),
    [
        ("1", [2, 2]),
        ("1", []),
        ("1", [-1]),
        ("1", [2**31]),
        ("1", "2"),
        ("1", None),
        ("one", [1]),
        ("-1", [1]),
        ("²", [1]),
        ("", [1]),
        ("99999999999", [1]),
        ("2147483648", [1]),
        ("00", [1]),
    ],
)
def test_one_malformed_partition_spares_the_others(key: str, replicas: object) -> None:
    data = json.dumps({"version": 2, "partitions": {"0": [1, 2], key: replicas}}).encode()
    topic = decode_topic("t", data)
    assert topic.assignments == {0: ReplicaAssignment((1, 2))}
    assert list(topic.problems) == [key]
    with pytest.raises(ValueError, match="must not be written back"):
        encode_topic(topic)


@pytest.mark.parametrize("malformed", [1, 5, 6, 7, 3_000])
def test_what_is_wrong_with_a_few_partitions_is_described(malformed: int) -> None:
    partitions = {"0": [1, 2]} | {str(number + 1): [-1] for number in range(malformed)}
    described = decode_topic(
        "t", json.dumps({"partitions": partitions}).encode()
    ).described_problems
    assert described is not None
    assert described.count("partition ") == min(malformed, 5)
    assert described.endswith(f"; and {malformed - 5:,} more") == (malformed > 5)


@pytest.mark.parametrize(("key", "replicas"), [("9" * 100_000, [1]), ("1", [1] * 100_000)])
def test_what_is_wrong_is_described_in_a_few_words(key: str, replicas: list[int]) -> None:
    data = json.dumps({"partitions": {"0": [1, 2], key: replicas}}).encode()
    described = decode_topic("t", data).described_problems
    assert described is not None
    assert described.startswith(f"partition {key[:100]}")
    assert len(described) < 500


def test_a_long_isr_is_not_quoted_as_a_whole() -> None:
    data = json.dumps({"leader": 1, "leader_epoch": 0, "isr": [1] * 100_000, "controller_epoch": 1})
    with pytest.raises(MalformedZNodeError, match="a broker is twice in the ISR") as raised:
        decode_partition_state("/p", ZNode(data.encode(), 0, 0, 0))
    assert len(raised.value.reason) < 500


def test_malformed_adding_replicas_spare_the_other_partitions() -> None:
    data = b'{"partitions":{"0":[1],"1":[2]},"adding_replicas":{"1":["x"]},"removing_replicas":{}}'
    topic = decode_topic("t", data)
    assert topic.assignments == {0: ReplicaAssignment((1,))}
    assert list(topic.problems) == ["1"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff",
        b'{"partitions":[]}',
        b'{"partitions":{},"adding_replicas":3}',
        b'{"partitions":{},"topic_id":7}',
        b'{"partitions":{},"topic_id":"short"}',
        b'{"partitions":{},"topic_id":"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"}',
        b"[" * 100_000,
    ],
)
def test_malformed_topics(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError) as caught:
        decode_topic("t", data)
    assert caught.value.path == "/brokers/topics/t"


@pytest.mark.parametrize("name", ["two words", "t\nu", "\u00e4", "a:b", "x" * 250])
def test_a_name_that_kafka_does_not_allow_is_no_topic(name: str) -> None:
    """With a blank in it, a broker could not read its checkpoints any more."""
    with pytest.raises(MalformedZNodeError, match="the topic name"):
        decode_topic(name, b'{"version":1,"partitions":{"0":[1]}}')


@given(st.lists(STATES, max_size=20))
def test_states_decoded_together_are_those_decoded_alone(states: list[LeaderAndIsr]) -> None:
    decode = partition_state_decoder()
    nodes = [znode(encode_partition_state(s), version=s.partition_epoch) for s in states]
    assert [decode(STATE_PATH, node) for node in nodes + nodes] == states + states


def test_equal_states_are_decoded_once_and_each_malformed_one_names_its_path() -> None:
    decode = partition_state_decoder()
    data = encode_partition_state(LeaderAndIsr(1, 2, (1, 3), 4, 5))
    assert decode("/a", znode(data)) is decode("/b", znode(data))
    assert decode("/a", znode(data)) != decode("/a", znode(data, version=6))
    for path in ("/a", "/b"):
        with pytest.raises(MalformedZNodeError, match=path):
            decode(path, znode(b"{"))
