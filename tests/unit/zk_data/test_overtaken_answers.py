"""Notes about answers that a higher leader epoch may have overtaken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.errors import MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.zk_data.overtaken_answers import (
    decode_begun_terms,
    decode_overtaken_answer,
    encode_begun_terms,
    encode_overtaken_answer,
    overtaken_answer,
    partition_of_note,
)


def test_content() -> None:
    assert encode_overtaken_answer(7) == b'{"version":1,"leaderEpoch":7}'
    assert decode_overtaken_answer("/n", b'{"version":2,"leaderEpoch":7,"more":1}') == 7


def test_path() -> None:
    path = overtaken_answer(TopicPartition("a-topic", 12))
    assert path == "/regent/overtaken_answers/a-topic-12"


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True), st.integers(0, 2**31 - 1))
def test_the_name_tells_the_partition(topic: str, partition: int) -> None:
    name = overtaken_answer(TopicPartition(topic, partition)).rpartition("/")[2]
    assert partition_of_note(name) == TopicPartition(topic, partition)


@pytest.mark.parametrize(
    "name", ["", "t", "t-", "-1", "t-x", "t-²", "t-2147483648", "t-99999999999"]
)
def test_other_names(name: str) -> None:
    assert partition_of_note(name) is None


def test_terms_that_have_begun() -> None:
    assert encode_begun_terms([4, 6]) == b'{"version":1,"terms":[4,6]}'
    assert decode_begun_terms(b'{"version":1,"terms":[4,6]}') == (4, 6)
    with pytest.raises(MalformedZNodeError):
        decode_begun_terms(b'{"version":1,"terms":[-1]}')


@pytest.mark.parametrize("data", [b"", b"?", b"{}", b'{"leaderEpoch":-1}', b'{"leaderEpoch":"1"}'])
def test_what_does_not_decode(data: bytes) -> None:
    with pytest.raises(MalformedZNodeError) as raised:
        decode_overtaken_answer("/n", data)
    assert raised.value.path == "/n"
