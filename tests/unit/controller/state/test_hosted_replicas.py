"""Partitions of a broker, as a LeaderAndIsr names them."""

from __future__ import annotations

import pytest

from regent.controller.state.hosted_replicas import NoneIsNew
from regent.model.partition import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_replicas_none_of_which_is_new_are_like_a_dictionary_that_says_so() -> None:
    named = NoneIsNew([B0, A0])
    same = {B0: False, A0: False}
    assert named == same
    assert len(named) == 2
    assert list(named) == list(same)
    assert list(named.items()) == list(same.items())
    assert list(named.values()) == [False, False]
    assert dict(named) == same
    assert named[A0] is False
    assert named.get(A1) is None
    assert A0 in named
    assert A1 not in named
    with pytest.raises(KeyError):
        named[A1]


def test_there_may_be_none() -> None:
    assert not NoneIsNew([])
    assert NoneIsNew([]) == {}
