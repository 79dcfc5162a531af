"""Two sequences that are a mapping."""

from __future__ import annotations

import pytest

from regent.model.partition import TopicPartition
from regent.model.partition_columns import PartitionColumns

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_columns_are_like_a_dictionary() -> None:
    columns = PartitionColumns([B0, A0], ["x", "y"])
    same = {B0: "x", A0: "y"}
    assert columns == same
    assert len(columns) == 2
    assert list(columns) == list(same)
    assert list(columns.items()) == list(same.items())
    assert list(columns.values()) == ["x", "y"]
    assert dict(columns) == same
    assert columns[A0] == "y"
    assert columns.get(A1) is None
    assert A0 in columns
    assert A1 not in columns
    assert (A0, "y") in columns.items()
    assert (A0, "x") not in columns.items()
    with pytest.raises(KeyError):
        columns[A1]


def test_there_may_be_none() -> None:
    assert not PartitionColumns([], [])
    assert PartitionColumns([], []) == {}
    assert list(PartitionColumns([], []).in_parts(1)) == []


def test_they_are_those_of_a_mapping_whatever_becomes_of_that() -> None:
    mapping = {A0: 1, B0: 2}
    columns = PartitionColumns.of(mapping)
    mapping[A1] = 3
    assert columns == {A0: 1, B0: 2}


def test_parts_have_all_of_them_once_in_their_order() -> None:
    columns = PartitionColumns([A0, A1, B0], [1, 2, 3])
    parts = list(columns.in_parts(2))
    assert [list(part.items()) for part in parts] == [[(A0, 1), (A1, 2)], [(B0, 3)]]
    assert [B0 in part for part in parts] == [False, True]
