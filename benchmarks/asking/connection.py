"""How a stub broker finds the controller, and its connection to it."""

import socket
import struct
import time
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.errors import BenchmarkError
from benchmarks.stub.answers import UPDATE_METADATA, read_header
from benchmarks.stub.exchanges import Exchange
from benchmarks.stub.requests import Address, RequestReader, fence
from benchmarks.zookeeper import Election

_HEADER = struct.Struct(">ihhih")
_RANGE = struct.Struct(">hhh")
_API_VERSIONS = 18
_READ_SIZE = 1 << 18
_RECONNECT_BACKOFF_S = 0.05


class Request(NamedTuple):
    """A request without its header. All but ApiVersions are in the flexible encoding."""

    api_key: int
    version: int
    body: bytes


class Answer(NamedTuple):
    """The body of an answer, and when its last byte was read; monotonic nanoseconds."""

    body: bytes
    received_at: int


def find_controller(exchanges: Iterable[Exchange], election: Election, broker_id: int) -> Address:
    """The controller's address as a broker knows it: out of the newest UpdateMetadata.

    Raises:
        BenchmarkError: the broker was not sent it.
    """
    newest: Exchange | None = None
    for exchange in exchanges:
        if exchange.broker_id == broker_id and exchange.api_key == UPDATE_METADATA:
            newest = exchange
    if newest is None:
        raise BenchmarkError(f"broker {broker_id} was sent no UpdateMetadata")
    header = read_header(newest.frame)
    controller_id, epoch, _ = fence(newest.frame, header)
    if (controller_id, epoch) != (election.controller_id, election.epoch):
        raise BenchmarkError(f"broker {broker_id} knows controller {controller_id}, epoch {epoch}")
    address = RequestReader().read(newest.frame, header).brokers.get(controller_id)
    if address is None:
        raise BenchmarkError(f"broker {broker_id} was not sent the address of the controller")
    return address


def _connect(address: Address, timeout_s: float) -> socket.socket:
    """Try until the other side listens: a broker that has just started announces itself before."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return socket.create_connection(address, timeout=timeout_s)
        except OSError as error:
            if time.monotonic() > deadline:
                raise BenchmarkError(
                    f"no controller can be reached at {address}: {error}"
                ) from error
        time.sleep(_RECONNECT_BACKOFF_S)


class ControllerConnection:
    """A broker's connection to the controller, with one request in flight.

    Args:
        timeout_s: How long the controller may take to accept, to read and to go on answering.

    Raises:
        BenchmarkError: there is no connection.
    """

    def __init__(self, broker_id: int, address: Address, *, timeout_s: float) -> None:
        self._client_id = str(broker_id).encode()
        self._correlation_id = 0
        self._is_flexible = True
        self._received = bytearray()
        self.socket = _connect(address, timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Close it."""
        self.socket.close()

    def send(self, request: Request) -> None:
        """Send a request; the one before has been answered."""
        self._correlation_id += 1
        self._is_flexible = request.api_key != _API_VERSIONS
        tags = b"\0" if self._is_flexible else b""
        rest = self._client_id + tags + request.body
        head = _HEADER.pack(
            _HEADER.size - 4 + len(rest),
            request.api_key,
            request.version,
            self._correlation_id,
            len(self._client_id),
        )
        try:
            self.socket.sendall(head + rest)
        except OSError as error:
            raise BenchmarkError(f"the controller does not take a request: {error}") from error

    def receive(self) -> bytes | None:
        """Read what there is, or wait for something; the body of the answer once it is complete.

        Raises:
            BenchmarkError: the controller has closed the connection, or answers something else.
        """
        try:
            data = self.socket.recv(_READ_SIZE)
        except OSError as error:
            raise BenchmarkError(f"the controller does not answer: {error}") from error
        if not data:
            raise BenchmarkError("the controller has closed a broker's connection")
        received = self._received
        received += data
        if len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
            return None
        if len(received) != 4 + int.from_bytes(received[:4], "big"):
            raise BenchmarkError("the controller has answered twice")
        if int.from_bytes(received[4:8], "big") != self._correlation_id:
            raise BenchmarkError("the controller has answered another request")
        if self._is_flexible and received[8]:
            raise BenchmarkError("the header of an answer has tagged fields")
        body = bytes(received[8 + self._is_flexible :])
        received.clear()
        return body

    def ask(self, request: Request) -> bytes:
        """Send a request and wait for the body of its answer."""
        self.send(request)
        while (body := self.receive()) is None:
            pass
        return body

    def require_version(self, api_key: int, version: int) -> None:
        """The controller offers a version of an API.

        Raises:
            BenchmarkError: it does not.
        """
        body = self.ask(Request(_API_VERSIONS, 0, b""))
        error, count = struct.unpack_from(">hi", body)
        offered = {
            key: range(lowest, highest + 1)
            for key, lowest, highest in _RANGE.iter_unpack(body[6 : 6 + _RANGE.size * count])
        }
        if error or version not in offered.get(api_key, ()):
            raise BenchmarkError(
                f"version {version} of API {api_key} is not offered: error {error},"
                f" {offered.get(api_key)}"
            )
