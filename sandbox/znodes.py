"""Just enough of ZooKeeper's client protocol to ask whether a znode exists.

The sandbox does not want a client library of its own: its user brings one. One short
session per question, which is closed at once, leaves nothing behind on the server.
"""

import socket
import struct

_SESSION_TIMEOUT_MS = 5000
_PASSWORD_BYTES = 16
_EXISTS, _CLOSE = 3, -11
_XID = 1
_OK, _NO_NODE = 0, -101


def znode_exists(connect_string: str, path: str, *, timeout_s: float = 10.0) -> bool:
    """Whether there is a znode, below the chroot if the connect string has one.

    Raises:
        OSError: none of the servers answers.
    """
    hosts, slash, chroot = connect_string.partition("/")
    full_path = f"{slash}{chroot.rstrip('/')}{path}" if chroot else path
    failure = OSError(f"no server in {connect_string!r}")
    for address in hosts.split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
                return _exists(connection, full_path)
        except OSError as error:
            failure = error
    raise failure


def _exists(connection: socket.socket, path: str) -> bool:
    # protocol version, last transaction seen, session timeout, session id, password
    greeting = struct.pack(">iqiqi", 0, 0, _SESSION_TIMEOUT_MS, 0, _PASSWORD_BYTES)
    _exchange(connection, greeting + bytes(_PASSWORD_BYTES))
    name = path.encode()
    request = struct.pack(">iii", _XID, _EXISTS, len(name)) + name + b"\0"  # without a watch
    _xid, _zxid, error = struct.unpack_from(">iqi", _exchange(connection, request))
    _exchange(connection, struct.pack(">ii", _XID + 1, _CLOSE))
    if error not in (_OK, _NO_NODE):
        raise OSError(f"ZooKeeper answered with error {error} for {path}")
    return bool(error == _OK)


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
