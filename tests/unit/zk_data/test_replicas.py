"""Where the replicas of a Regent are found in ZooKeeper."""

from __future__ import annotations

import pytest

from regent.model.cluster import Address
from regent.model.errors import MalformedZNodeError
from regent.model.replica import ReplicaPresence
from regent.zk_data.replicas import (
    decode_presence,
    encode_presence,
    presence_node,
    presence_path,
    queue_order,
)

PRESENCE = ReplicaPresence("a-b", 1_000_000_001, Address("10.0.0.7", 9096))


def test_what_is_written_is_read() -> None:
    data = encode_presence(PRESENCE)
    assert data == (
        b'{"version":1,"instance":"a-b","controllerId":1000000001,"host":"10.0.0.7","port":9096}'
    )
    assert decode_presence("/x", data) == PRESENCE


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"instance":"a","controllerId":1,"host":"h","port":0}',
        b'{"instance":"a","controllerId":1,"host":"h","port":65536}',
        b'{"instance":"","controllerId":1,"host":"h","port":1}',
        b'{"instance":"a","controllerId":1,"host":"","port":1}',
    ],
)
def test_anything_else_is_refused_with_its_path(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError, match="/x"):
        decode_presence("/x", data)


def test_replicas_are_beside_their_queue_each_by_its_session() -> None:
    assert presence_path("/regent/election") == "/regent/election-presence"
    assert presence_node("/e", 0x1A2B) == "/e-presence/0000000000001a2b"
    assert presence_node("/e", -1) == "/e-presence/ffffffffffffffff"


def test_the_queue_is_in_the_order_of_the_numbers() -> None:
    names = ("a__lock__0000000012", "b__lock__0000000003", "c__lock__0000000007", "junk")
    assert queue_order(names) == [names[1], names[2], names[0]]
