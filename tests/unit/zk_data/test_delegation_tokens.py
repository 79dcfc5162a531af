"""Delegation tokens as brokers of all versions write them."""

from __future__ import annotations

import pytest

from regent.model.errors import MalformedZNodeError
from regent.zk_data.delegation_tokens import (
    TokenTimes,
    decode_delegation_token,
    delegation_token,
    encode_token_change,
    token_change_prefix,
)
from regent.zk_data.paths import DELEGATION_TOKENS
from tests.support.broker_znodes import encode_delegation_token

TOKEN_ID = "MqUe1vj9SSS4kbPwkjLsrg"
PATH = delegation_token(TOKEN_ID)
OF_KAFKA_1_1 = (
    b'{"version":1,"owner":"User:alice","renewers":["User:bob"],"issueTimestamp":1700000000000,'
    b'"maxTimestamp":1700604800000,"expiryTimestamp":1700086400000,'
    b'"tokenId":"MqUe1vj9SSS4kbPwkjLsrg"}'
)


def test_the_paths_are_those_of_kafka() -> None:
    assert DELEGATION_TOKENS == "/delegation_token/tokens"
    assert PATH == "/delegation_token/tokens/MqUe1vj9SSS4kbPwkjLsrg"
    assert token_change_prefix() == "/delegation_token/token_changes/token_change_"
    assert encode_token_change(TOKEN_ID) == b"MqUe1vj9SSS4kbPwkjLsrg"


def test_every_version_of_a_token_says_when_it_ends() -> None:
    times = TokenTimes(expiry_ms=1_700_086_400_000, max_ms=1_700_604_800_000)
    newest = encode_delegation_token(
        TOKEN_ID, issued_ms=1_700_000_000_000, expiry_ms=times.expiry_ms, max_ms=times.max_ms
    )
    for content in (OF_KAFKA_1_1, OF_KAFKA_1_1.replace(b":1,", b":2,", 1), newest):
        assert decode_delegation_token(PATH, content) == times


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"version":1}',
        OF_KAFKA_1_1.replace(b":1,", b":4,", 1),
        OF_KAFKA_1_1.replace(b":1,", b":0,", 1),
        OF_KAFKA_1_1.replace(b"1700086400000", b'"soon"'),
    ],
)
def test_anything_else_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedZNodeError) as raised:
        decode_delegation_token(PATH, content)
    assert raised.value.path == PATH


@pytest.mark.parametrize(("expiry", "maximum"), [(9, 99), (99, 9), (9, 9)])
def test_whichever_end_comes_first_counts(expiry: int, maximum: int) -> None:
    times = TokenTimes(expiry_ms=expiry, max_ms=maximum)
    assert not times.are_over(9)
    assert times.are_over(10)
