"""A proxy between clients and two servers: a broker, and a controller that serves only its own APIs.

Clients choose the node of the controller for whatever any broker answers, too. Here those requests
go to a broker. Each connection has one request at a time, as with brokers.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from collections.abc import Collection, Iterator


class RoutingProxy:
    """Listens while :meth:`running`.

    Args:
        controller_port: Who answers ``api_keys``.
        broker_port: Who answers all others.
    """

    def __init__(
        self, *, controller_port: int, broker_port: int, api_keys: Collection[int]
    ) -> None:
        self._ports = (broker_port, controller_port)
        self._api_keys = frozenset(api_keys)
        self.passed: dict[int, int] = {}

    @contextlib.contextmanager
    def running(self, port: int) -> Iterator[RoutingProxy]:
        started, loop = threading.Event(), asyncio.new_event_loop()
        stop = asyncio.Event()

        async def serve() -> None:
            server = await asyncio.start_server(self._connected, "127.0.0.1", port)
            started.set()
            await stop.wait()
            server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), name="proxy")
        thread.start()
        try:
            assert started.wait(30)
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        try:
            while True:
                frame = await _read(reader)
                (api_key,) = struct.unpack_from(">h", frame)
                is_ours = api_key in self._api_keys
                self.passed[api_key] = self.passed.get(api_key, 0) + 1
                port = self._ports[is_ours]
                if port not in upstream:
                    upstream[port] = await asyncio.open_connection("127.0.0.1", port)
                other_reader, other_writer = upstream[port]
                _write(other_writer, frame)
                _write(writer, await _read(other_reader))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            for each in (writer, *(other for _, other in upstream.values())):
                each.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def _write(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(struct.pack(">i", len(frame)) + frame)
