"""Many reads in one request: ZooKeeper's MultiRead, which kazoo does not have.

Opcode 22, servers from 3.6 on (ZOOKEEPER-3402). It carries getData and getChildren, reports errors
per path, and cannot leave watches. One request of 500 paths costs little more than one of a single
path, which makes a hundred thousand reads a matter of tenths of a second.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import ClassVar, Final, Literal

from regent.zk_data.operations import ZNode

GET_DATA: Final = 4
GET_CHILDREN: Final = 8
_ERROR: Final = -1

_HEADER: Final = struct.Struct(">iBi")
_INT: Final = struct.Struct(">i")
_STAT: Final = struct.Struct(">qq16xi8xq16x")
"""czxid, mzxid, (ctime, mtime), version, (cversion, aversion), ephemeralOwner, (the rest)."""
_END: Final = _HEADER.pack(-1, 1, -1)
_NO_WATCH: Final = b"\0"

ReadAnswer = ZNode | tuple[str, ...] | int
"""What one path has: its node, its sorted children, or ZooKeeper's error code (below zero)."""


class MultiRead:
    """A request object for kazoo: read ``paths``, all of them in the same way.

    Args:
        paths: Absolute paths (with the chroot).
        opcode: :data:`GET_DATA` or :data:`GET_CHILDREN`.
    """

    type: ClassVar[int] = 22
    __slots__ = ("opcode", "paths")

    def __init__(self, paths: Sequence[str], opcode: Literal[4, 8]) -> None:
        self.paths = paths
        self.opcode = opcode

    def __repr__(self) -> str:
        return f"MultiRead({len(self.paths)} paths)"

    def serialize(self) -> bytes:
        """The body of the request."""
        header = _HEADER.pack(self.opcode, 0, -1)
        parts: list[bytes] = []
        for path in self.paths:
            encoded = path.encode()
            parts += (header, _INT.pack(len(encoded)), encoded, _NO_WATCH)
        parts.append(_END)
        return b"".join(parts)

    def deserialize(self, data: bytes, offset: int) -> list[ReadAnswer] | None:
        """Answers in the order of the paths; None if the server does not know the request.

        Servers before 3.6 answer an unknown opcode with success and no body.
        """
        if offset >= len(data):
            return None
        answers: list[ReadAnswer] = []
        unpack_int, unpack_header = _INT.unpack_from, _HEADER.unpack_from
        kind, done, _ = unpack_header(data, offset)
        offset += _HEADER.size
        while not done:
            if kind == GET_DATA:
                node, offset = _read_node(data, offset)
                answers.append(node)
            elif kind == GET_CHILDREN:
                children, offset = _read_children(data, offset)
                answers.append(children)
            elif kind == _ERROR:
                answers.append(unpack_int(data, offset)[0])
                offset += 4
            else:
                raise ValueError(f"unknown operation {kind} in the answer to a MultiRead")
            kind, done, _ = unpack_header(data, offset)
            offset += _HEADER.size
        return answers


def _read_node(data: bytes, offset: int) -> tuple[ZNode, int]:
    (size,) = _INT.unpack_from(data, offset)
    offset += 4
    end = offset + size if size > 0 else offset  # -1 is a node without data, Java's null
    czxid, mzxid, version, owner = _STAT.unpack_from(data, end)
    return ZNode(data[offset:end], version, czxid, mzxid, owner), end + _STAT.size


def _read_children(data: bytes, offset: int) -> tuple[tuple[str, ...], int]:
    (count,) = _INT.unpack_from(data, offset)
    offset += 4
    names: list[str] = []
    for _ in range(count):
        (size,) = _INT.unpack_from(data, offset)
        offset += 4
        names.append(data[offset : offset + size].decode())
        offset += size
    names.sort()
    return tuple(names), offset
