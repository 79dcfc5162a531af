"""Just enough of ZooKeeper's client protocol to ask for a znode and to end its owner's session.

The sandbox does not want a client library of its own: its user brings one. One short
session per question, which is closed at once, leaves nothing behind on the server.
"""

import socket
import struct
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

_SESSION_TIMEOUT_MS = 5000
_PASSWORD_BYTES = 16
_EXISTS, _CLOSE = 3, -11
_XID = 1
_OK, _NO_NODE = 0, -101
_OWNER_OFFSET = 16 + 44
"""Offset of ``ephemeralOwner`` in the answer: after its header, four longs and three integers."""
_SECRET = 0xB3415C00
_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


def znode_exists(connect_string: str, path: str, *, timeout_s: float = 10.0) -> bool:
    """Whether there is a znode, below the chroot if the connect string has one.

    Raises:
        OSError: none of the servers answers.
    """
    return _owner(connect_string, path, timeout_s=timeout_s) is not None


def end_session_of_owner(connect_string: str, path: str, *, timeout_s: float = 10.0) -> None:
    """End the session that holds an ephemeral znode. Does nothing if no session holds the znode.

    Raises:
        OSError: none of the servers answers.
    """
    session_id = _owner(connect_string, path, timeout_s=timeout_s)
    if session_id:
        end_session(connect_string, session_id, timeout_s=timeout_s)


def end_session(connect_string: str, session_id: int, *, timeout_s: float = 10.0) -> None:
    """End the session of another client at once, as its expiry would some time later. Does nothing
    if it is over.

    ZooKeeper hands a session to each client that names the id and the password of the session, and
    derives the password from the id.

    Raises:
        OSError: none of the servers answers.
    """

    def close(connection: socket.socket) -> None:
        if _greet(connection, session_id, _session_password(session_id)):
            _exchange(connection, struct.pack(">ii", _XID, _CLOSE))

    _send_to_any(connect_string, close, timeout_s=timeout_s)


def _session_password(session_id: int) -> bytes:
    """The password of a session: what ``java.util.Random(id ^ secret).nextBytes`` yields.

    Source: ``ZooKeeperServer.generatePasswd`` of 3.4 to 3.8.
    """
    state = (session_id ^ _SECRET ^ _MULTIPLIER) & _MASK
    words = []
    for _ in range(_PASSWORD_BYTES // 4):
        state = (state * _MULTIPLIER + 0xB) & _MASK
        words.append(state >> 16)
    return struct.pack("<4I", *words)


def _owner(connect_string: str, path: str, *, timeout_s: float) -> int | None:
    """The session that holds a znode, 0 for one that is not ephemeral; None without a znode."""
    _, slash, chroot = connect_string.partition("/")
    full_path = f"{slash}{chroot.rstrip('/')}{path}" if chroot else path

    def read(connection: socket.socket) -> int | None:
        _greet(connection, 0, bytes(_PASSWORD_BYTES))
        name = full_path.encode()
        request = struct.pack(">iii", _XID, _EXISTS, len(name)) + name + b"\0"  # without a watch
        answer = _exchange(connection, request)
        _exchange(connection, struct.pack(">ii", _XID + 1, _CLOSE))
        _xid, _zxid, error = struct.unpack_from(">iqi", answer)
        if error == _NO_NODE:
            return None
        if error != _OK:
            raise OSError(f"ZooKeeper answered with error {error} for {path}")
        (owner,) = struct.unpack_from(">q", answer, _OWNER_OFFSET)
        return int(owner)

    return _send_to_any(connect_string, read, timeout_s=timeout_s)


def _send_to_any(
    connect_string: str, question: Callable[[socket.socket], Answer], *, timeout_s: float
) -> Answer:
    """Ask the servers in turn until one answers."""
    hosts = connect_string.partition("/")[0]
    failure = OSError(f"no server in {connect_string!r}")
    for address in hosts.split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
                return question(connection)
        except OSError as error:
            failure = error
    raise failure


def _greet(connection: socket.socket, session_id: int, password: bytes) -> bool:
    """Begin a session, or resume one; returns whether there is one now."""
    # protocol version, last transaction seen, session timeout, session id, password
    greeting = struct.pack(">iqiqi", 0, 0, _SESSION_TIMEOUT_MS, session_id, _PASSWORD_BYTES)
    _version, session_timeout_ms = struct.unpack_from(
        ">ii", _exchange(connection, greeting + password)
    )
    return bool(session_timeout_ms)


def _exchange(connection: socket.socket, body: bytes) -> bytes:
    """Send one framed request and return the body of the answer."""
    connection.sendall(struct.pack(">i", len(body)) + body)
    (length,) = struct.unpack(">i", _receive(connection, 4))
    return _receive(connection, length)


def _receive(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        chunk = connection.recv(length - len(data))
        if not chunk:
            raise ConnectionResetError("ZooKeeper closed the connection")
        data += chunk
    return bytes(data)
