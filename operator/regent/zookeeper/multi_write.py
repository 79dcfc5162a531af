"""Many writes in one transaction: ZooKeeper's multi, straight from and to the project's values.

kazoo has a transaction of its own; this one skips its intermediate objects, which matters for a
hundred thousand operations, and leaves error codes as numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final, assert_never

from kazoo.security import ACL

from regent.zk_data.operations import (
    Check,
    Create,
    Delete,
    Operation,
    SetData,
    Written,
    operation_size,
)
from regent.zk_data.paths import is_sensitive

_CREATE: Final = 1
_DELETE: Final = 2
_SET_DATA: Final = 5
_CHECK: Final = 13
_ERROR: Final = -1

_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2

_HEADER: Final = struct.Struct(">iBi")
_INT: Final = struct.Struct(">i")
_PATH_HEADER: Final = struct.Struct(">iBii")
"""Header of one operation and the length of its path."""
_STAT_SIZE: Final = 68
_VERSION_IN_STAT: Final = 32
_END: Final = _HEADER.pack(-1, 1, -1)
_DELETED_OR_CHECKED: Final = Written(-1)

OK: Final = 0
"""In a transaction that failed: the operation came before the culprit and was rolled back."""
RUNTIME_INCONSISTENCY: Final = -2
"""In a transaction that failed: the operation came after the culprit."""

REQUEST_OVERHEAD: Final = 8 + _HEADER.size
"""Bytes of a request beside its operations: number, kind, and the mark of the end."""

WriteAnswer = Written | int
"""What one operation got: its result, or, if the transaction failed, ZooKeeper's error code."""


class MultiWrite:
    """A request object for kazoo: carry out ``operations`` together or not at all.

    Args:
        operations: What to do. ``exist_ok`` and ``missing_ok`` are not looked at.
        chroot: Put before each path.
        acl: For created nodes, see :func:`serialize_acl`.
        sensitive_acl: For those that only brokers may read. It is no longer than the other; None:
            the same.
    """

    type: ClassVar[int] = 14
    __slots__ = ("acl", "chroot", "operations", "sensitive_acl")

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        chroot: str,
        acl: bytes,
        sensitive_acl: bytes | None = None,
    ) -> None:
        self.operations = operations
        self.chroot = chroot
        self.acl = acl
        self.sensitive_acl = acl if sensitive_acl is None else sensitive_acl

    @property
    def size(self) -> int:
        """Bytes of the request as a server counts them."""
        overhead, acl = len(self.chroot.encode()), len(self.acl)
        return REQUEST_OVERHEAD + sum(sizes_of(self.operations, overhead=overhead, acl=acl))

    def __repr__(self) -> str:
        return f"MultiWrite({len(self.operations)} operations)"

    def serialize(self) -> bytes:
        """The body of the request."""
        parts: list[bytes] = []
        chroot, pack_path, pack = self.chroot, _PATH_HEADER.pack, _INT.pack
        for operation in self.operations:
            path = operation.path
            encoded = (chroot + path if path != "/" else chroot or path).encode()
            match operation:
                case SetData():
                    data = operation.data
                    parts += (
                        pack_path(_SET_DATA, 0, -1, len(encoded)),
                        encoded,
                        pack(len(data)),
                        data,
                        pack(operation.version),
                    )
                case Create():
                    flags = _EPHEMERAL * operation.ephemeral | _SEQUENTIAL * operation.sequential
                    parts += (
                        pack_path(_CREATE, 0, -1, len(encoded)),
                        encoded,
                        _buffer(operation.data),
                        self.sensitive_acl if is_sensitive(operation.path) else self.acl,
                        _INT.pack(flags),
                    )
                case Delete():
                    parts += (
                        pack_path(_DELETE, 0, -1, len(encoded)),
                        encoded,
                        pack(operation.version),
                    )
                case Check():
                    parts += (
                        pack_path(_CHECK, 0, -1, len(encoded)),
                        encoded,
                        pack(operation.version),
                    )
                case _:
                    assert_never(operation)
        parts.append(_END)
        return b"".join(parts)

    def deserialize(self, data: bytes, offset: int) -> list[WriteAnswer]:
        """Answers in the order of the operations. Paths of created nodes are without the chroot."""
        answers: list[WriteAnswer] = []
        skip = len(self.chroot.encode())
        written = _WrittenVersions()
        kind, done, _ = _HEADER.unpack_from(data, offset)
        offset += _HEADER.size
        while not done:
            if kind == _SET_DATA:
                answers.append(written[_INT.unpack_from(data, offset + _VERSION_IN_STAT)[0]])
                offset += _STAT_SIZE
            elif kind == _CREATE:
                (size,) = _INT.unpack_from(data, offset)
                offset += 4
                answers.append(Written(0, data[offset + skip : offset + size].decode()))
                offset += size
            elif kind == _ERROR:
                answers.append(_INT.unpack_from(data, offset)[0])
                offset += 4
            elif kind in (_DELETE, _CHECK):
                answers.append(_DELETED_OR_CHECKED)
            else:
                raise ValueError(f"unknown operation {kind} in the answer to a multi")
            kind, done, _ = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
        return answers


class _WrittenVersions(dict[int, Written]):
    """Results by dataVersion: a transaction has few different ones."""

    def __missing__(self, version: int) -> Written:
        written = self[version] = Written(version)
        return written


def serialize_acl(entries: Sequence[ACL]) -> bytes:
    """An access control list as every create carries it."""
    parts = [_INT.pack(len(entries))]
    for entry in entries:
        parts += (
            _INT.pack(entry.perms),
            _buffer(entry.id.scheme.encode()),
            _buffer(entry.id.id.encode()),
        )
    return b"".join(parts)


def sizes_of(operations: Iterable[Operation], *, overhead: int, acl: int) -> Iterator[int]:
    """How many bytes each operation takes in the request.

    Args:
        operations: What is to be sent.
        overhead: Bytes added to every path.
        acl: Bytes of the access control list, which only creations carry.
    """
    beside = {
        Create: 21 + acl + overhead,
        SetData: 21 + overhead,
        Delete: 17 + overhead,
        Check: 17 + overhead,
    }
    for operation in operations:
        yield beside[type(operation)] + operation_size(operation)


def _buffer(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data
