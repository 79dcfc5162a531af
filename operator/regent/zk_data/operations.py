"""ZooKeeper operations and their results as plain values.

The controller core asks for them, the kazoo-backed client and the in-memory ZooKeeper of the
simulation carry them out.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import msgspec

DEFAULT_JUTE_MAX_BUFFER: Final = 0xFFFFF
"""ZooKeeper's own default of ``jute.maxbuffer``, in bytes: a server ends the connection of a client
that sends it more in one request."""

ANY_VERSION: Final = -1
"""Matches every dataVersion."""


class ZNode(NamedTuple):
    """Data of a znode with the parts of its stat that the controller uses.

    Attributes:
        data: The content.
        version: dataVersion, the expected version of a conditional write.
        czxid: Transaction that created the node.
        mzxid: Transaction that last changed the data.
        ephemeral_owner: Session id of the owner, 0 for a persistent node.
    """

    data: bytes
    version: int
    czxid: int
    mzxid: int
    ephemeral_owner: int = 0


class DatedZNode(NamedTuple):
    """A znode with the times of its stat, in milliseconds since the epoch by ZooKeeper's clock.

    Attributes:
        created_ms: ctime.
        modified_ms: mtime, the time of the last change of its data.
    """

    node: ZNode
    created_ms: int
    modified_ms: int


class Create(msgspec.Struct, frozen=True, gc=False):
    """Create a node.

    Attributes:
        exist_ok: An existing node counts as success and is left as it is.
    """

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False
    exist_ok: bool = False


class SetData(msgspec.Struct, frozen=True, gc=False):
    """Set a node's data, conditionally on its dataVersion unless that is :data:`ANY_VERSION`."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(msgspec.Struct, frozen=True, gc=False):
    """Delete a node, conditionally on its dataVersion unless that is :data:`ANY_VERSION`.

    Attributes:
        missing_ok: A missing node counts as success.
    """

    path: str
    version: int = ANY_VERSION
    missing_ok: bool = False


class Check(msgspec.Struct, frozen=True, gc=False):
    """Require a node to have a dataVersion."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check

_WITH_DATA: Final = (Create, SetData)


def operation_size(operation: Operation) -> int:
    """Bytes of an operation's path and data."""
    path = operation.path
    size = len(path) if path.isascii() else len(path.encode())
    if isinstance(operation, _WITH_DATA):
        size += len(operation.data)
    return size


class ZkError(enum.Enum):
    """Errors that the caller of a write is expected to handle, named as in ZooKeeper."""

    NO_NODE = "NONODE"
    NODE_EXISTS = "NODEEXISTS"
    BAD_VERSION = "BADVERSION"
    NOT_EMPTY = "NOTEMPTY"
    NO_CHILDREN_FOR_EPHEMERALS = "NOCHILDRENFOREPHEMERALS"
    NO_AUTH = "NOAUTH"
    """The access control list does not allow the operation. Only writes of single operations answer
    it; a transaction raises it."""
    QUOTA_EXCEEDED = "QUOTAEXCEEDED"
    """A quota of ZooKeeper that its servers enforce does not allow it. As ``NO_AUTH`` in a
    transaction."""
    TOO_LARGE = "TOOLARGE"
    """Ours: the request would exceed ``jute.maxbuffer`` and was not sent. In a multi that is too
    large as a whole the largest operation has this error."""
    ROLLED_BACK = "RUNTIMEINCONSISTENCY"
    """In a multi: another operation of the same multi failed."""


class Written(NamedTuple):
    """A write that succeeded.

    Attributes:
        version: The node's dataVersion after a :class:`SetData`; 0 after a :class:`Create`; -1
            where there is none (delete, check, or a node that existed already).
        path: The created path of a :class:`Create` (a sequential node gets its number), else "".
    """

    version: int
    path: str = ""


WriteResult = Written | ZkError
"""Outcome of one operation. For a Create with ``exist_ok`` or a Delete with ``missing_ok`` the
forgiven error is reported as ``Written(-1)``."""


class WatchedEventType(enum.Enum):
    """What a one-shot watch reports, named as in ZooKeeper."""

    NODE_CREATED = "CREATED"
    NODE_DELETED = "DELETED"
    NODE_DATA_CHANGED = "CHANGED"
    NODE_CHILDREN_CHANGED = "CHILD"


class WatchedEvent(NamedTuple):
    """A one-shot watch has fired and is gone; the next read with ``watch=True`` sets it again."""

    type: WatchedEventType
    path: str


class SessionState(enum.Enum):
    """State of the session as seen by its client."""

    CONNECTED = "connected"
    """A new session was established. No watch and no ephemeral of an older one exists."""
    RECONNECTED = "reconnected"
    """The same session found a server again. Watches may have been lost: read everything again."""
    SUSPENDED = "suspended"
    """No connection; the session may still be alive."""
    EXPIRED = "expired"
    """The session is gone. A new one is being established and will be reported as CONNECTED."""
