"""What Kafka's tools leave in ``/admin/reassign_partitions``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.partition import TopicPartition
from regent.zk_data.reassign_partitions import (
    ReassignPartitionsZNode,
    decode_reassign_partitions,
    encode_reassign_partitions,
)

A0, B7 = TopicPartition("a", 0), TopicPartition("b", 7)
PARTITIONS = st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1))
REPLICAS = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)


def test_what_kafkas_tool_writes() -> None:
    data = (
        b'{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2]},'
        b'{"topic":"b","partition":7,"replicas":[3]}]}'
    )
    assert decode_reassign_partitions(data) == ReassignPartitionsZNode({A0: (1, 2), B7: (3,)})
    assert encode_reassign_partitions({A0: (1, 2), B7: (3,)}) == data


@given(st.dictionaries(PARTITIONS, REPLICAS, max_size=5))
def test_what_is_encoded_decodes(targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    data = encode_reassign_partitions(targets)
    assert decode_reassign_partitions(data) == ReassignPartitionsZNode(targets)


def test_of_two_entries_for_one_partition_the_last_counts() -> None:
    data = b"""{"partitions":[{"topic":"a","partition":0,"replicas":[1]},
        {"topic":"a","partition":0,"replicas":[2]}]}"""
    assert decode_reassign_partitions(data).targets == {A0: (2,)}


@pytest.mark.parametrize(
    "entry",
    [
        b'{"topic":"b","partition":7}',
        b'{"topic":"b","partition":-1,"replicas":[1]}',
        b'{"topic":"b","partition":7,"replicas":[-1]}',
        b'{"topic":"b","partition":7,"replicas":["1"]}',
        b"null",
        b"[]",
    ],
)
def test_a_malformed_entry_harms_only_itself(entry: bytes) -> None:
    data = b'{"partitions":[%b,{"topic":"a","partition":0,"replicas":[1]}]}' % entry
    decoded = decode_reassign_partitions(data)
    assert decoded.targets == {A0: (1,)}
    assert len(decoded.problems) == 1
