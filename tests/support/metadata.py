"""What a broker tells its clients: Metadata requests over one connection."""

from __future__ import annotations

import io
import itertools
import socket
import struct
from typing import NamedTuple

from kio.schema.metadata.v5.request import MetadataRequest
from kio.schema.metadata.v5.response import MetadataResponse as ResponseWithoutEpochs
from kio.schema.metadata.v7.response import MetadataResponse
from kio.serial import entity_reader, entity_writer

from sandbox.ports import LOOPBACK

_METADATA = 3  # key
_EPOCHS_SINCE = (2, 1)
_ANY_CONTROLLER_SINCE = (2, 4)
_TIMEOUT_S = 30.0

Partition = tuple[str, int]

_write_request = entity_writer(MetadataRequest)
_read_response = entity_reader(MetadataResponse)
_read_response_without_epochs = entity_reader(ResponseWithoutEpochs)


class Leadership(NamedTuple):
    """Who serves a partition. ``leader`` is -1 if nobody does; ``leader_epoch`` is -1 where it is
    not said, by brokers before 2.1."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Metadata(NamedTuple):
    """One answer of a broker."""

    controller_id: int
    brokers: frozenset[int]
    partitions: dict[Partition, Leadership]


class Connection:
    """A connection to the broker on a port; opened when it is needed, again if it has broken.

    Attributes:
        tells_epochs: Whether leader epochs are in the answers.
        names_any_controller: Whether the controller is named to clients also if they do not find it
            among the brokers, for instance since it is announced under another listener. Brokers
            before 2.4 say -1 then.
    """

    def __init__(self, port: int, *, version: tuple[int, ...]) -> None:
        self.tells_epochs = version >= _EPOCHS_SINCE
        self.names_any_controller = version >= _ANY_CONTROLLER_SINCE
        self._port = port
        self._socket: socket.socket | None = None
        self._correlation_ids = itertools.count(1)

    def metadata(self) -> Metadata:
        """All topics, as this broker knows them now. Raises OSError if it does not answer."""
        body = io.BytesIO()
        _write_request(body, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        # requests of both versions are the same
        response: MetadataResponse | ResponseWithoutEpochs
        if self.tells_epochs:
            response, _end = _read_response(self.ask(_METADATA, 7, body.getvalue()), 0)
        else:
            answer = self.ask(_METADATA, 5, body.getvalue())
            response, _end = _read_response_without_epochs(answer, 0)
        return Metadata(
            controller_id=response.controller_id,
            brokers=frozenset(broker.node_id for broker in response.brokers),
            partitions={
                (topic.name, partition.partition_index): Leadership(
                    partition.leader_id,
                    getattr(partition, "leader_epoch", -1),
                    tuple(partition.replica_nodes),
                    tuple(partition.isr_nodes),
                )
                for topic in response.topics
                for partition in topic.partitions
            },
        )

    def ask(self, key: int, version: int, body: bytes) -> bytes:
        """Send a request of a version without tagged fields; the body of the answer, or OSError."""
        client = b"test"
        header = struct.pack(">hhih", key, version, next(self._correlation_ids), len(client))
        request = header + client + body
        try:
            if self._socket is None:
                self._socket = socket.create_connection((LOOPBACK, self._port), timeout=_TIMEOUT_S)
            self._socket.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", _receive(self._socket, 4))
            return _receive(self._socket, size)[4:]  # after the correlation id
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError("the broker closed the connection")
        data += chunk
    return bytes(data)
