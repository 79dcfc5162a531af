"""A TLS connection that says when all its bytes have left the process.

asyncio's flow control sees one layer. With TLS that is the one above the encryption: what the
transport of the socket keeps below it does not count, and the loop writes it later.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import cast


class WatchedSocket(asyncio.BufferedProtocol):
    """Between the transport of a socket and TLS: passes everything on, and knows whether the
    transport keeps bytes that the socket has not taken."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._tls = cast(asyncio.BufferedProtocol, transport.get_protocol())
        self._is_empty = asyncio.Event()
        if transport.get_write_buffer_size() == 0:
            self._is_empty.set()
        transport.set_protocol(self)
        transport.set_write_buffer_limits(high=0)  # a single byte pauses writing

    @property
    def is_empty(self) -> bool:
        """Whether the transport keeps nothing, or the connection is lost."""
        return self._is_empty.is_set()

    async def wait_empty(self) -> None:
        """Wait until the transport was empty. It may keep something again when this returns."""
        await self._is_empty.wait()

    def get_buffer(self, sizehint: int) -> bytearray:
        """See :class:`asyncio.BufferedProtocol`, as for the others."""
        return cast(bytearray, self._tls.get_buffer(sizehint))

    def buffer_updated(self, nbytes: int) -> None:
        """Some bytes were read."""
        self._tls.buffer_updated(nbytes)

    def eof_received(self) -> bool | None:
        """The other side writes no more."""
        return self._tls.eof_received()

    def pause_writing(self) -> None:
        """The transport keeps something."""
        self._is_empty.clear()
        self._tls.pause_writing()

    def resume_writing(self) -> None:
        """The socket has taken everything."""
        self._is_empty.set()
        self._tls.resume_writing()  # which may write what it has held back

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing leaves any more."""
        self._is_empty.set()
        self._tls.connection_lost(exc)


async def open_tls(
    host: str, port: int, context: ssl.SSLContext, *, limit: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, WatchedSocket]:
    """:func:`asyncio.open_connection` with TLS, and what watches its socket.

    Args:
        host: Also the name that the certificate must have.
        port: Its port.
        context: For TLS.
        limit: Twice so many bytes may wait to be read.

    Raises:
        OSError: If there is no connection; TLS errors are among these.
        ValueError: If there can be none to such an address.
    """
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    try:
        encrypted = await loop.start_tls(transport, protocol, context, server_hostname=host)
        if encrypted is None:
            raise ConnectionResetError("the connection was lost right after the TLS handshake")
    except BaseException:
        transport.abort()
        raise
    watched = WatchedSocket(transport)
    protocol.connection_made(encrypted)
    return reader, asyncio.StreamWriter(encrypted, protocol, reader, loop), watched
