"""Delegation tokens (KIP-48): ``/delegation_token/tokens/<id>``, and the notifications about them.

Brokers create these paths when they accept tokens (delegation.token.secret.key). What a token is
worth is not in its node: the secret is computed from its id and the brokers' key.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec

from regent.zk_data.decoding import json_decoder
from regent.zk_data.paths import DELEGATION_TOKENS

_CHANGE_PREFIX: Final = "/delegation_token/token_changes/token_change_"
_NEWEST_VERSION: Final = 3


class TokenTimes(NamedTuple):
    """When a token ends, in milliseconds since the epoch by the clock of the broker that wrote it.

    Attributes:
        expiry_ms: Unless it is renewed before.
        max_ms: In any case.
    """

    expiry_ms: int
    max_ms: int

    def are_over(self, now_ms: int) -> bool:
        """Whether the token has expired. In the millisecond in which it ends it has not."""
        return min(self) < now_ms


class _Token(msgspec.Struct):
    version: Annotated[int, msgspec.Meta(ge=1, le=_NEWEST_VERSION)]
    expiry: int = msgspec.field(name="expiryTimestamp")
    maximum: int = msgspec.field(name="maxTimestamp")


_decode = json_decoder(_Token)


def delegation_token(token_id: str) -> str:
    """The node of one token."""
    return f"{DELEGATION_TOKENS}/{token_id}"


def token_change_prefix() -> str:
    """To be created as a sequential node whose content is :func:`encode_token_change`."""
    return _CHANGE_PREFIX


def encode_token_change(token_id: str) -> bytes:
    """Content of a notification: brokers read the token of that id again, and drop it if it is
    gone. They remove the notification, too."""
    return token_id.encode()


def decode_delegation_token(path: str, data: bytes) -> TokenTimes:
    """When a token ends, from a node of version 1 to 3.

    Raises:
        MalformedZNodeError: If the node does not decode.
    """
    token = _decode(path, data)
    return TokenTimes(token.expiry, token.maximum)
