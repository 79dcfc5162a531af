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
_PATH_HEADER: Final = struct.Struct(">iBii")
"""Header of one read and the length of its path."""
_ANSWER_HEADER: Final = struct.Struct(">i5xi")
"""Kind of one answer, and what comes first in it: the length of a node's data, the number of its
children, or an error code."""
_NODE: Final = ">{size}sqq16xi8xq16xi5xi"
"""Data, czxid, mzxid, (ctime, mtime), version, (cversion, aversion), ephemeralOwner, (the rest),
and the header of the answer that follows: unpacking both at once is cheaper."""
_END: Final = _HEADER.pack(-1, 1, -1)
_PADDING: Final = bytes(_ANSWER_HEADER.size - len(_END))
"""Makes the end as long as the header of an answer."""
_NO_WATCH: Final = b"\0"

ReadAnswer = ZNode | tuple[str, ...] | int
"""What one path has: its node, its sorted children, or ZooKeeper's error code (below zero)."""


class MultiRead:
    """A request object for kazoo: read ``paths``, all of them in the same way.

    Args:
        paths: Without the chroot.
        opcode: :data:`GET_DATA` or :data:`GET_CHILDREN`.
        chroot: Goes in front of each path; empty: there is none.
    """

    type: ClassVar[int] = 22
    __slots__ = ("chroot", "opcode", "paths")

    def __init__(self, paths: Sequence[str], opcode: Literal[4, 8], *, chroot: str = "") -> None:
        self.paths = paths
        self.opcode = opcode
        self.chroot = chroot

    def __repr__(self) -> str:
        return f"MultiRead({len(self.paths)} paths)"

    def serialize(self) -> bytes:
        """The body of the request."""
        paths, chroot = self.paths, self.chroot
        if chroot and "/" in paths:
            paths = ["" if path == "/" else path for path in paths]
        headers = _PathHeaders(self.opcode, chroot.encode())
        parts = [headers[len(encoded)] + encoded for encoded in map(str.encode, paths)]
        return _NO_WATCH.join((*parts, _END))

    def deserialize(self, data: bytes, offset: int) -> list[ReadAnswer] | None:
        """Answers in the order of the paths; None if the server does not know the request.

        Servers before 3.6 answer an unknown opcode with success and no body.
        """
        if offset >= len(data):
            return None
        answers: list[ReadAnswer] = []
        unpack_header, header_size = _ANSWER_HEADER.unpack_from, _ANSWER_HEADER.size
        layouts, new = _LAYOUTS, tuple.__new__
        end = len(data) - len(_END) + header_size
        data += _PADDING
        kind, number = unpack_header(data, offset)
        offset += header_size
        while offset < end:
            if kind == GET_DATA:
                layout = layouts[number]
                content, czxid, mzxid, version, owner, kind, number = layout.unpack_from(
                    data, offset
                )
                offset += layout.size
                # A call of the class costs as much as all the rest.
                answers.append(new(ZNode, (content, version, czxid, mzxid, owner)))
                continue
            if kind == GET_CHILDREN:
                children, offset = _read_children(data, offset, number)
                answers.append(children)
            elif kind == _ERROR:
                answers.append(number)
            else:
                raise ValueError(f"unknown operation {kind} in the answer to a MultiRead")
            kind, number = unpack_header(data, offset)
            offset += header_size
        if data[offset - header_size :] != _END + _PADDING:
            raise ValueError("the answer to a MultiRead does not end where it should")
        return answers


class _PathHeaders(dict[int, bytes]):
    """Header of a read, the length of its path and the chroot, by the length of the rest of it."""

    def __init__(self, opcode: int, chroot: bytes) -> None:
        super().__init__()
        self._opcode = opcode
        self._chroot = chroot

    def __missing__(self, length: int) -> bytes:
        front = _PATH_HEADER.pack(self._opcode, 0, -1, len(self._chroot) + length)
        header = self[length] = front + self._chroot
        return header


class _Layouts(dict[int, struct.Struct]):
    """Layout of a node with so much data; -1 is a node without data, Java's null."""

    def __missing__(self, size: int) -> struct.Struct:
        layout = struct.Struct(_NODE.format(size=max(size, 0)))
        if size < _LAYOUT_SIZES:
            self[size] = layout
        return layout


_LAYOUT_SIZES: Final = 4_096
_LAYOUTS: Final = _Layouts()


def _read_children(data: bytes, offset: int, count: int) -> tuple[tuple[str, ...], int]:
    names: list[str] = []
    for _ in range(count):
        (size,) = _INT.unpack_from(data, offset)
        offset += 4
        names.append(data[offset : offset + size].decode())
        offset += size
    names.sort()
    return tuple(names), offset
