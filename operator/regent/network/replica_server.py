"""Answers the heartbeats of other replicas, and tells one of them to take over."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections import Counter
from typing import Final

from regent.model.peer_address import address_group, plain_address
from regent.network.tls import Tls
from regent.replicas.messages import (
    LINE_BYTES,
    Answer,
    MalformedMessageError,
    decode_ask,
    encode,
)
from regent.sockets.accepting import accept_one_by_one, stop_accepting

logger = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 64
"""More than a Regent has replicas. One more closes one of the address that has most: the one that
has been silent longest. A replica whose connection is cut may be taken for one that is gone."""

SILENCE_MAX_S: Final = 30.0
"""A connection on which nobody asks for so long is closed."""

HANDSHAKE_MAX_S: Final = 5.0

_SILENT_S: Final = 60.0
"""Between two log entries about strangers."""

READY_S: Final = 2.0
"""Who has not asked for so long is not ready."""


class _Connection:
    """Somebody who asks."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.task: asyncio.Task[None] | None = None
        peer = writer.get_extra_info("peername") or ("",)
        self.address = plain_address(str(peer[0]))
        self.group = address_group(self.address)
        self.instance: str | None = None
        self.is_ready = False
        self.asked_at = time.monotonic()


class ReplicaServer:
    """Serves between :meth:`start` and :meth:`close`, in one loop.

    Args:
        instance: Ours.
        listening: Accepts connections already.
        tls: None for none.
    """

    def __init__(self, instance: str, listening: socket.socket, *, tls: Tls | None) -> None:
        self._instance = instance
        self._listening = listening
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: list[_Connection] = []
        self._logged_at = float("-inf")

    async def start(self) -> None:
        """Begin to answer."""

        def protocol() -> asyncio.Protocol:
            reader = asyncio.StreamReader(limit=LINE_BYTES)
            return asyncio.StreamReaderProtocol(reader, self._accepted)

        self._server = await accept_one_by_one(protocol, self._listening)

    async def close(self) -> None:
        """Close the listener and all connections."""
        if self._server is not None:
            server, self._server = self._server, None
            await stop_accepting(server)
        tasks = [each.task for each in self._connections if each.task is not None]
        for connection in tuple(self._connections):
            self._end(connection)
        await asyncio.gather(*tasks, return_exceptions=True)

    def ready(self) -> frozenset[str]:
        """Instances that are connected, and could take over now."""
        since = time.monotonic() - READY_S
        return frozenset(
            c.instance
            for c in self._connections
            if c.instance is not None and c.is_ready and c.asked_at >= since
        )

    def name(self, instance: str) -> None:
        """Tell a replica to take over, if it is connected."""
        for connection in self._connections:
            if connection.instance == instance:
                connection.writer.write(encode(Answer(self._instance, take_over=True)))

    def leave(self) -> None:
        """Say that this process ends as it should, so that nobody suspects it."""
        for connection in self._connections:
            if connection.instance is not None:
                connection.writer.write(encode(Answer(self._instance, leaves=True)))

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Called by asyncio, at once: a task that is cancelled before it begins ends nothing."""
        connection = _Connection(writer)
        if self._server is None:
            self._end(connection)
            return
        self._admit(connection)
        connection.task = asyncio.create_task(self._serve(connection, reader))

    async def _serve(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        try:
            if self._tls is not None:
                await connection.writer.start_tls(
                    self._tls.context(), ssl_handshake_timeout=HANDSHAKE_MAX_S
                )
            await self._answer(connection, reader)
        except (OSError, ssl.SSLError, TimeoutError, asyncio.LimitOverrunError) as error:
            logger.debug("Replica's connection ended", extra={"reason": repr(error)})
        except (MalformedMessageError, ValueError) as error:
            self._report_stranger(connection, str(error))
        except asyncio.CancelledError:
            pass  # closed, or another one needs its place
        finally:
            self._end(connection)

    def _admit(self, connection: _Connection) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            self._end(self._victim())
        self._connections.append(connection)

    def _victim(self) -> _Connection:
        counts = Counter(each.group for each in self._connections)
        return min(self._connections, key=lambda each: (-counts[each.group], each.asked_at))

    def _end(self, connection: _Connection) -> None:
        """At once: others may come before its task has noticed."""
        if connection in self._connections:
            self._connections.remove(connection)
        connection.writer.transport.abort()
        if connection.task is not None and connection.task is not asyncio.current_task():
            connection.task.cancel()

    def _report_stranger(self, connection: _Connection, reason: str) -> None:
        now = time.monotonic()
        if now - self._logged_at >= _SILENT_S:
            self._logged_at = now
            logger.warning(
                "Not a replica of Regent", extra={"peer": connection.address, "reason": reason}
            )

    async def _answer(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        writer = connection.writer
        while True:
            async with asyncio.timeout(SILENCE_MAX_S):
                line = await reader.readline()
            if not line:
                return
            ask = decode_ask(line)
            connection.instance, connection.is_ready = ask.instance, ask.is_ready
            connection.asked_at = time.monotonic()
            writer.write(encode(Answer(self._instance)))
            async with asyncio.timeout(SILENCE_MAX_S):
                await writer.drain()
