"""Persistent recursive watches on the wire: requests of ZooKeeper 3.6 that kazoo does not have.

Such a watch stands on a path and reports what happens to that node and to every node below it:
created, deleted, data changed; never that children have changed. It stays until it is removed or
the connection ends (ZOOKEEPER-1416).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import ClassVar, Final

from kazoo.exceptions import UnimplementedError

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")

_PERSISTENT_RECURSIVE: Final = _INT.pack(1)
_ANY_WATCHER: Final = _INT.pack(3)
_NO_PATHS: Final = _INT.pack(0)


def is_unknown(answer: object) -> bool:
    """Whether a server answers so to one of these requests as it does not know it."""
    return answer is False or isinstance(answer, UnimplementedError)


class AddWatch:
    """A request object for kazoo: watch ``path`` (absolute, with the chroot) and all below it.

    Asking again for the same path changes nothing.
    """

    type: ClassVar[int] = 106
    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"AddWatch({self._path})"

    def serialize(self) -> bytes:
        """The body of the request."""
        return _string(self._path) + _PERSISTENT_RECURSIVE

    def deserialize(self, data: bytes, offset: int) -> bool:
        """Whether the server knows the request: older ones answer success and no body."""
        return offset < len(data)


class SetWatches2:
    """A request object for kazoo: set the recursive watches of ``paths`` again, after a
    reconnection.

    Unlike one-shot watches they report nothing of what has happened in between: the request carries
    the number of the last transaction that was seen, and the server compares it for the others only
    (``DataTree.setWatches``).
    """

    type: ClassVar[int] = 105
    __slots__ = ("_paths",)

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def __repr__(self) -> str:
        return f"SetWatches2({len(self._paths)} paths)"

    def serialize(self) -> bytes:
        """The body of the request: no watches of the four other kinds."""
        return b"".join(
            [
                _LONG.pack(0),
                _NO_PATHS * 4,
                _INT.pack(len(self._paths)),
                *map(_string, self._paths),
            ]
        )

    def deserialize(self, data: bytes, offset: int) -> bool:
        """The answer has no body."""
        return True


class RemoveWatches:
    """A request object for kazoo: remove every watch that this session has on ``path`` itself."""

    type: ClassVar[int] = 18
    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __repr__(self) -> str:
        return f"RemoveWatches({self._path})"

    def serialize(self) -> bytes:
        """The body of the request."""
        return _string(self._path) + _ANY_WATCHER

    def deserialize(self, data: bytes, offset: int) -> bool:
        """The answer has no body."""
        return True


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _INT.pack(len(encoded)) + encoded
