"""Names and contents of the nodes in which topic ids are remembered."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.errors import MalformedZNodeError
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
def test_what_is_written_is_read(topic: str, czxid: int, topic_id: uuid.UUID) -> None:
    incarnation = TopicIncarnation(topic, czxid)
    assert incarnation_of(topic_id_name(incarnation)) == incarnation
    if topic_id.int:
        assert decode_topic_id("/n", encode_topic_id(topic_id)) == topic_id


def test_the_name_has_the_czxid_as_zookeepers_tools_show_it() -> None:
    path = topic_id_path(TopicIncarnation("orders", 0x10000002A))
    assert path == "/regent/topic_ids/orders,10000002a"
    assert encode_topic_id(uuid.UUID(int=77)) == (
        b'{"version":1,"topic_id":"AAAAAAAAAAAAAAAAAAAATQ"}'
    )


@pytest.mark.parametrize("name", ["orders", "orders,", ",12", "orders,x y", ""])
def test_other_names_are_none_of_ours(name: str) -> None:
    assert incarnation_of(name) is None


@pytest.mark.parametrize("data", [b"", b"{}", b'{"topic_id":1}', b'{"topic_id":"?"}'])
def test_a_malformed_node_says_so(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError):
        decode_topic_id("/n", data)
