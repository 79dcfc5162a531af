"""Notes about throttles: what is written is read again, and nonsense is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.errors import MalformedZNodeError
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

RATES = st.integers(1, 2**63 - 1)
IDS = st.integers(0, 2**31 - 1)
BROKER_IDS = st.lists(IDS, max_size=3).map(tuple)
ENTRIES = st.lists(st.builds(lambda p, b: f"{p}:{b}", IDS, IDS), max_size=3).map(tuple)


@given(
    st.builds(
        TopicThrottle,
        st.integers(0, 2**62),
        st.dictionaries(
            IDS, st.builds(PartitionThrottle, RATES, BROKER_IDS, BROKER_IDS), max_size=3
        ),
        ENTRIES,
        ENTRIES,
    )
)
def test_a_note_about_a_topic_is_read_as_it_was_written(throttle: TopicThrottle) -> None:
    path = throttled_topic("t")
    assert decode_topic_throttle(path, encode_topic_throttle(throttle)) == throttle


@given(st.builds(BrokerThrottle, st.none() | RATES, st.none() | RATES))
def test_a_note_about_a_broker_is_read_as_it_was_written(throttle: BrokerThrottle) -> None:
    path = throttled_broker(3)
    assert decode_broker_throttle(path, encode_broker_throttle(throttle)) == throttle


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"version":1}',
        b'{"czxid":0,"partitions":{"x":{}},"leader_replicas":[],"follower_replicas":[]}',
        b'{"czxid":0,"partitions":{"0":{"rate":0,"leaders":[],"followers":[]}},'
        b'"leader_replicas":[],"follower_replicas":[]}',
    ],
)
def test_a_malformed_note_about_a_topic_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError, match="/regent/throttles/topics/t"):
        decode_topic_throttle(throttled_topic("t"), data)


@pytest.mark.parametrize("data", [b"", b"7", b'{"leader_rate":"fast"}', b'{"leader_rate":0}'])
def test_a_malformed_note_about_a_broker_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError, match="/regent/throttles/brokers/3"):
        decode_broker_throttle(throttled_broker(3), data)
