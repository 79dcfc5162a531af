"""Many watches in one request: ZooKeeper's SetWatches, which kazoo does not have.

Java's client restores its watches with it after a reconnection. Here it makes reading thousands of
nodes *with* watches cheap: MultiRead reads them, and this leaves the watches. The request carries a
transaction id; a node that has changed since then fires at once instead of being watched, so that
nothing gets lost between the reading and the watching.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from kazoo.client import KazooClient
from kazoo.protocol.states import WatchedEvent

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_NO_PATHS: Final = _INT.pack(0)


class SetWatches:
    """A request object for kazoo: watch the data of ``paths``.

    Args:
        client: Whose watches they are.
        paths: Absolute paths (with the chroot) of existing nodes.
        since_zxid: A transaction before the nodes were read.
        watcher: Called once per path, like that of a ``GetData``.
    """

    type: ClassVar[int] = 101
    __slots__ = ("_client", "_paths", "_since_zxid", "_watcher")

    def __init__(
        self,
        client: KazooClient,
        paths: Sequence[str],
        *,
        since_zxid: int,
        watcher: Callable[[WatchedEvent], None],
    ) -> None:
        self._client = client
        self._paths = paths
        self._since_zxid = since_zxid
        self._watcher = watcher

    def __repr__(self) -> str:
        return f"SetWatches({len(self._paths)} paths)"

    def serialize(self) -> bytes:
        """The body of the request.

        kazoo calls this in its connection thread just before it sends the request: the time to
        register the watcher, since an event can arrive before the answer does.
        """
        parts = [_LONG.pack(self._since_zxid), _INT.pack(len(self._paths))]
        for path in self._paths:
            self._client._data_watchers[path].add(self._watcher)
            encoded = path.encode()
            parts += (_INT.pack(len(encoded)), encoded)
        parts += (_NO_PATHS, _NO_PATHS)  # exist watches, child watches
        return b"".join(parts)

    def deserialize(self, data: bytes, offset: int) -> bool:
        """The answer has no body."""
        return True
