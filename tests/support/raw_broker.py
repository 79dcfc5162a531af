"""A peer that answers requests with whatever bytes a test wants: a broker, good or bad."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from socket import SO_LINGER, SOL_SOCKET
from typing import Final

from regent.model.cluster import Broker, EndPoint
from regent.protocol.api_versions import VersionRange
from regent.protocol.framing import RequestHeader, request_header
from regent.protocol.kafka_api_versions import API_VERSIONS
from regent.protocol.serving import Peer, UpstreamBroker

Answer = Callable[[RequestHeader, bytes], bytes | None]
"""Bytes to send for a request; None: the connection is closed."""


async def nowhere(_: Peer) -> bool:
    """No right depends on the address of a client."""
    return False


def versions_of(release: tuple[int, int]) -> Mapping[int, VersionRange]:
    """What brokers of a release serve."""
    return {key: VersionRange(0, highest) for key, highest in API_VERSIONS[release].items()}


def answer_of(header: RequestHeader, body: bytes = b"") -> bytes:
    """The frame of an answer, with its length."""
    return struct.pack(">ii", 4 + len(body), header.correlation_id) + body


_DESCRIBE_CONFIGS: Final = 32
_BROKER: Final = 4
_OF_A_BROKER: Final = struct.pack(">ib", 1, _BROKER)
_REFUSED, _OF_ANOTHER = 31, 42

NO_BYTES: Final = b""
"""Instead of an answer: none, for ever."""


class RawBroker:
    """Reads requests, and answers each as :attr:`answer` says.

    Attributes:
        told_id: The id by which it answers questions for its settings, which are not in frames.
        written: Bytes of answers that have left the process.
    """

    def __init__(self, broker_id: int = 1, *, release: tuple[int, int] = (3, 9)) -> None:
        self.broker_id = self.told_id = broker_id
        self.versions = versions_of(release)
        self.answer: Answer = lambda header, frame: answer_of(header, b"of %d" % broker_id)
        self.frames: list[bytes] = []
        self.open = 0
        self.accepted = 0
        self.written = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def as_upstream(
        self, *, security_protocol: str = "PLAINTEXT", epoch: int = 1
    ) -> UpstreamBroker:
        """As the pass-through sees it."""
        endpoint = EndPoint("CLIENTS", security_protocol, "127.0.0.1", self.port)
        broker = Broker(broker_id=self.broker_id, epoch=epoch, endpoints=(endpoint,))
        return UpstreamBroker(broker, self.versions)

    def listing(self, header: RequestHeader) -> bytes:
        """An answer to ApiVersions, version 0."""
        listed = b"".join(struct.pack(">hhh", key, *known) for key, known in self.versions.items())
        return answer_of(header, struct.pack(">hi", 0, len(self.versions)) + listed)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, and break every connection off."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    def reset(self) -> None:
        """Break every connection off as a host does whose broker was killed."""
        for writer in list(self._writers):
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.accepted += 1
        self._writers.add(writer)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._answer_all(reader, writer)
        finally:
            self.open -= 1
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            frame = await reader.readexactly(size)
            header = request_header(frame)
            if header.api_key == _DESCRIBE_CONFIGS and _OF_A_BROKER in frame:
                answer: bytes | None = answer_of(header, self._refusal(frame))
            else:
                self.frames.append(frame)
                answer = self.answer(header, frame)
            if answer is None:
                return
            for start in range(0, len(answer), 65536):
                writer.write(answer[start : start + 65536])
                await writer.drain()
                self.written = start

    def _refusal(self, frame: bytes) -> bytes:
        """To DescribeConfigs of a broker: that it may not be known, or is another one."""
        name = str(self.told_id).encode()
        is_meant = struct.pack(">bh", _BROKER, len(name)) + name in frame
        code, message = (_REFUSED, b"") if is_meant else (_OF_ANOTHER, b"Unexpected broker id")
        told = struct.pack(">iihh", 0, 1, code, len(message)) + message
        return told + struct.pack(">bhi", _BROKER, 0, 0)


@contextlib.asynccontextmanager
async def raw_brokers(*releases: tuple[int, int]) -> AsyncIterator[list[RawBroker]]:
    """Brokers 1, 2, ... of these releases."""
    brokers = [RawBroker(number, release=each) for number, each in enumerate(releases, start=1)]
    for broker in brokers:
        await broker.start()
    try:
        yield brokers
    finally:
        for broker in brokers:
            await broker.stop()
