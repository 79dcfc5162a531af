"""Regent's own znodes: topic ids, presences, overtaken answers and throttles."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.cluster import Address
from regent.model.partition import TopicPartition
from regent.model.replica import ReplicaPresence
from regent.zk_data.overtaken_answers import (
    decode_begun_terms,
    decode_overtaken_answer,
    encode_begun_terms,
    encode_overtaken_answer,
    overtaken_answer,
    partition_of_note,
)
from regent.zk_data.replicas import (
    decode_presence,
    encode_presence,
    presence_node,
    presence_path,
    queue_order,
)
from regent.zk_data.throttles import (
    BrokerThrottle,
    PartitionThrottle,
    TopicThrottle,
    decode_broker_throttle,
    decode_topic_throttle,
    encode_broker_throttle,
    encode_topic_throttle,
    throttled_broker,
    throttled_topic,
)
from regent.zk_data.topic_ids import (
    TopicIncarnation,
    decode_topic_id,
    encode_topic_id,
    incarnation_of,
    topic_id_name,
    topic_id_path,
)


@given(
    topic=st.text("abc._-", min_size=1, max_size=249),
    czxid=st.integers(0, 2**63 - 1),
    topic_id=st.uuids(),
)
def test_topic_id_is_read_as_written(topic: str, czxid: int, topic_id: uuid.UUID) -> None:
    incarnation = TopicIncarnation(topic, czxid)
    assert incarnation_of(topic_id_name(incarnation)) == incarnation
    if topic_id.int:
        assert decode_topic_id("/n", encode_topic_id(topic_id)) == topic_id


def test_topic_id_path_has_the_czxid_in_hexadecimal() -> None:
    path = topic_id_path(TopicIncarnation("orders", 0x10000002A))
    assert path == "/regent/topic_ids/orders,10000002a"
    assert encode_topic_id(uuid.UUID(int=77)) == (
        b'{"version":1,"topic_id":"AAAAAAAAAAAAAAAAAAAATQ"}'
    )


@pytest.mark.parametrize("name", ["orders", "orders,", ",12", "orders,x y", ""])
def test_other_names_have_no_topic_id(name: str) -> None:
    assert incarnation_of(name) is None


PRESENCE = ReplicaPresence("a-b", 1_000_000_001, Address("10.0.0.7", 9096))


def test_presence_is_read_as_written() -> None:
    data = encode_presence(PRESENCE)
    assert data == (
        b'{"version":1,"instance":"a-b","controllerId":1000000001,"host":"10.0.0.7","port":9096}'
    )
    assert decode_presence("/x", data) == PRESENCE


def test_presence_is_beside_the_queue_by_session() -> None:
    assert presence_path("/regent/election") == "/regent/election-presence"
    assert presence_node("/e", 0x1A2B) == "/e-presence/0000000000001a2b"
    assert presence_node("/e", -1) == "/e-presence/ffffffffffffffff"


def test_queue_order_is_that_of_the_numbers() -> None:
    names = ("a__lock__0000000012", "b__lock__0000000003", "c__lock__0000000007", "junk")
    assert queue_order(names) == [names[1], names[2], names[0]]


def test_overtaken_answer() -> None:
    assert encode_overtaken_answer(7) == b'{"version":1,"leaderEpoch":7}'
    assert decode_overtaken_answer("/n", b'{"version":2,"leaderEpoch":7,"more":1}') == 7


def test_path_of_an_overtaken_answer() -> None:
    path = overtaken_answer(TopicPartition("a-topic", 12))
    assert path == "/regent/overtaken_answers/a-topic-12"


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True), st.integers(0, 2**31 - 1))
def test_name_of_a_note_tells_its_partition(topic: str, partition: int) -> None:
    name = overtaken_answer(TopicPartition(topic, partition)).rpartition("/")[2]
    assert partition_of_note(name) == TopicPartition(topic, partition)


@pytest.mark.parametrize(
    "name", ["", "t", "t-", "-1", "t-x", "t-²", "t-2147483648", "t-99999999999"]
)
def test_other_names_are_no_notes(name: str) -> None:
    assert partition_of_note(name) is None


def test_begun_terms() -> None:
    assert encode_begun_terms([4, 6]) == b'{"version":1,"terms":[4,6]}'
    assert decode_begun_terms(b'{"version":1,"terms":[4,6]}') == (4, 6)


RATES = st.integers(1, 2**63 - 1)
INTS = st.integers(0, 2**31 - 1)
BROKER_IDS = st.lists(INTS, max_size=3).map(tuple)
ENTRIES = st.lists(st.builds(lambda p, b: f"{p}:{b}", INTS, INTS), max_size=3).map(tuple)


@given(
    st.builds(
        TopicThrottle,
        st.integers(0, 2**62),
        st.dictionaries(
            INTS, st.builds(PartitionThrottle, RATES, BROKER_IDS, BROKER_IDS), max_size=3
        ),
        ENTRIES,
        ENTRIES,
    )
)
def test_topic_throttle_is_read_as_written(throttle: TopicThrottle) -> None:
    path = throttled_topic("t")
    assert decode_topic_throttle(path, encode_topic_throttle(throttle)) == throttle


@given(st.builds(BrokerThrottle, st.none() | RATES, st.none() | RATES))
def test_broker_throttle_is_read_as_written(throttle: BrokerThrottle) -> None:
    path = throttled_broker(3)
    assert decode_broker_throttle(path, encode_broker_throttle(throttle)) == throttle
