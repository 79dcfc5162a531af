"""Who has written what to a ZooKeeper, by the transaction log of the server.

Source: ``FileTxnLog`` and ``zookeeper.jute``. A file begins with a header of 16 bytes; a record is
a checksum (8 bytes), a length (4), and so many bytes: session, cxid, zxid, time and type of the
transaction, then the transaction itself. Zeros have been allocated and not written yet.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_FILE_HEADER: Final = 16
_RECORD: Final = struct.Struct(">qi")
_TRANSACTION: Final = struct.Struct(">qiqqi")
_INT: Final = struct.Struct(">i")

_MULTI: Final = 14
_ERROR: Final = -1
_SESSIONS: Final = (-10, -11)
"""A session begins, or ends."""


class Change(NamedTuple):
    """Something that a session has changed."""

    zxid: int
    session_id: int
    operation: int
    path: str


def changes(data_directory: Path) -> Iterator[Change]:
    """All changes of nodes that were carried out, in their order. Refused ones are left out."""
    for file in sorted(data_directory.glob("version-2/log.*"), key=_first_zxid):
        content = file.read_bytes()
        offset = _FILE_HEADER
        while offset + _RECORD.size <= len(content):
            _, length = _RECORD.unpack_from(content, offset)
            if not length:
                break
            offset += _RECORD.size
            yield from _changes_in(content[offset : offset + length])
            offset += length + 1  # the end of a record is marked


def _first_zxid(file: Path) -> int:
    return int(file.suffix[1:], 16)


def _changes_in(record: bytes) -> Iterator[Change]:
    session_id, _, zxid, _, operation = _TRANSACTION.unpack_from(record)
    body = record[_TRANSACTION.size :]
    parts = _parts_of(body) if operation == _MULTI else [(operation, body)]
    for part, content in parts:
        if part != _ERROR and part not in _SESSIONS:
            yield Change(zxid, session_id, part, _path(content))


def _parts_of(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Operations of a transaction. If one was refused, all are errors."""
    (count,) = _INT.unpack_from(body)
    offset = _INT.size
    for _ in range(count):
        operation, length = struct.unpack_from(">ii", body, offset)
        offset += 8
        yield operation, body[offset : offset + length]
        offset += length


def _path(content: bytes) -> str:
    """Every change of a node begins with its path."""
    (length,) = _INT.unpack_from(content)
    return content[_INT.size : _INT.size + length].decode()
