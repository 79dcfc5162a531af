"""kazoo's exceptions and ZooKeeper's error codes, mapped in one place to the project's errors."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from kazoo.exceptions import (
    AuthFailedError,
    KazooException,
    SessionExpiredError,
    ZookeeperError,
)

from regent.model import errors
from regent.zk_data.operations import ZkError

NO_NODE: Final = -101

EXPECTED: Final[Mapping[int, ZkError]] = {
    -101: ZkError.NO_NODE,
    -103: ZkError.BAD_VERSION,
    -108: ZkError.NO_CHILDREN_FOR_EPHEMERALS,
    -110: ZkError.NODE_EXISTS,
    -111: ZkError.NOT_EMPTY,
}
"""Codes that the caller of a write handles."""

NO_AUTH: Final = -102
_QUOTA_EXCEEDED: Final = -125

REFUSALS: Final[Mapping[int, ZkError]] = {
    NO_AUTH: ZkError.NO_AUTH,
    _QUOTA_EXCEEDED: ZkError.QUOTA_EXCEEDED,
}
"""Codes that speak of one znode: a right is missing, a quota is used up. In a set of independent
writes that is the result of one; nobody expects it of a transaction."""

NO_WATCHER: Final = -121
UNIMPLEMENTED: Final = -6
CONNECTION_LOSS: Final = -4

_REPEATABLE: Final = frozenset(
    {
        CONNECTION_LOSS,
        -7,  # OPERATIONTIMEOUT
        -118,  # SESSIONMOVED: the request reached a server that the session has left
        -122,  # REQUESTTIMEOUT
        -127,  # THROTTLEDOP
    }
)

_NAMES: Final[Mapping[int, str]] = {
    -1: "SYSTEMERROR",
    -2: "RUNTIMEINCONSISTENCY",
    -3: "DATAINCONSISTENCY",
    -4: "CONNECTIONLOSS",
    -5: "MARSHALLINGERROR",
    -6: "UNIMPLEMENTED",
    -7: "OPERATIONTIMEOUT",
    -8: "BADARGUMENTS",
    NO_AUTH: "NOAUTH",
    -112: "SESSIONEXPIRED",
    -114: "INVALIDACL",
    -115: "AUTHFAILED",
    -118: "SESSIONMOVED",
    -119: "NOTREADONLY",
    -120: "EPHEMERALONLOCALSESSION",
    NO_WATCHER: "NOWATCHER",
    -122: "REQUESTTIMEOUT",
    -124: "SESSIONCLOSEDREQUIRESASLAUTH",
    _QUOTA_EXCEEDED: "QUOTAEXCEEDED",
    -127: "THROTTLEDOP",
}


class Failure(enum.Enum):
    """What a failed request means for the one who sent it."""

    REPEATABLE = enum.auto()
    """No answer, or "not now": wait for the connection and ask again."""
    SESSION_OVER = enum.auto()
    """The session is gone."""
    ANSWER = enum.auto()
    """The server has answered, with an error code."""


def failure_of(error: Exception) -> Failure:
    """Classify what kazoo reports for a request.

    Raises:
        Exception: ``error`` itself, if it is none of kazoo's: a bug, not an answer.
    """
    if isinstance(error, (SessionExpiredError, AuthFailedError)):  # ConnectionClosedError included
        return Failure.SESSION_OVER
    if isinstance(error, ZookeeperError):
        return Failure.REPEATABLE if error.code in _REPEATABLE else Failure.ANSWER
    if isinstance(error, KazooException):
        return Failure.REPEATABLE
    raise error


def code_of(error: Exception) -> int:
    """ZooKeeper's error code of an answer."""
    return error.code if isinstance(error, ZookeeperError) else CONNECTION_LOSS


def unexpected(code: int, path: str) -> errors.UnexpectedZooKeeperError:
    """The error for an answer that no caller expects."""
    name = EXPECTED[code].value if code in EXPECTED else _NAMES.get(code, f"error {code}")
    return errors.UnexpectedZooKeeperError(name, path)
