"""A client of Kafka's protocol that sends whatever a test gives it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator
from typing import Any

from kio.schema.errors import ErrorCode

from regent.protocol.entity_reader import read_entity
from regent.protocol.primitives import Reader
from regent.protocol.sasl import SaslCredentials
from regent.protocol.served_apis import (
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
)
from tests.support.served_requests import make
from tests.support.stub_broker import encode


class KafkaClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._correlation_id = 0

    async def ask(self, api: Api, version: int, fields: dict[str, Any]) -> Any:
        """Send a request and read the answer's entity."""
        correlation_id = self.send(api, version, fields)
        return await self.answer(api, version, correlation_id)

    def send(self, api: Api, version: int, fields: dict[str, Any]) -> int:
        """Send a request; its correlation id."""
        self._correlation_id += 1
        self.send_frame(request_frame(api, version, self._correlation_id, fields))
        return self._correlation_id

    def send_frame(self, frame: bytes) -> None:
        """Send bytes with their length before them."""
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    async def answer(self, api: Api, version: int, correlation_id: int) -> Any:
        """Read the answer to a request."""
        frame = Reader(await self.frame())
        assert frame.int32() == correlation_id
        kind = api.responses[version]
        body = Reader(frame.rest(), flexible=kind.__flexible__)
        if api is not API_VERSIONS:
            body.tags()
        entity = read_entity(kind, body)
        body.expect_end()
        return entity

    async def frame(self) -> bytes:
        """Read a frame."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def closed(self) -> None:
        """Wait until the server has closed the connection; what it sends before is ignored."""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while await self.reader.read(65536):
                pass

    async def authenticate(self, credentials: SaslCredentials, *, version: int = 2) -> Any:
        """Authenticate by SASL; the last answer to SaslAuthenticate."""
        mechanism = {"mechanism": credentials.mechanism}
        handshake = await self.ask(SASL_HANDSHAKE, 1, mechanism)
        assert handshake.error_code is ErrorCode.none
        dialogue = credentials.dialogue("client-nonce")
        message = next(dialogue)
        while True:
            kind = SASL_AUTHENTICATE.requests[version]
            answer = await self._ask_entity(SASL_AUTHENTICATE, version, kind(auth_bytes=message))
            if answer.error_code is not ErrorCode.none:
                return answer
            try:
                message = dialogue.send(answer.auth_bytes)
            except StopIteration:
                return answer

    async def _ask_entity(self, api: Api, version: int, entity: Any) -> Any:
        self._correlation_id += 1
        self.send_frame(entity_frame(api, version, self._correlation_id, entity))
        return await self.answer(api, version, self._correlation_id)


def request_frame(api: Api, version: int, correlation_id: int, fields: dict[str, Any]) -> bytes:
    """A request with these fields, without its length."""
    return entity_frame(api, version, correlation_id, make(api.requests[version], fields))


def entity_frame(api: Api, version: int, correlation_id: int, entity: Any) -> bytes:
    """A request without its length."""
    head = struct.pack(">hhi", api.key, version, correlation_id)
    if (api, version) != (CONTROLLED_SHUTDOWN, 0):
        head += struct.pack(">h", 4) + b"test"
    return head + (b"\0" if type(entity).__flexible__ else b"") + encode(entity)


@contextlib.asynccontextmanager
async def connected(
    port: int, *, context: ssl.SSLContext | None = None, local: str = "127.0.0.1"
) -> AsyncIterator[KafkaClient]:
    """A connection from a local address, closed at the end."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, local_addr=(local, 0)
    )
    try:
        yield KafkaClient(reader, writer)
    finally:
        writer.transport.abort()
