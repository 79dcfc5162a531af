"""Ports of loopback that lead into a node's network: `python forward.py PID PORT=HOST:PORT ...`

The listening sockets are made first and belong to the machine's network. Then the process enters
the network namespace of process `PID`, where its outgoing connections start. It imports the
standard library only and is run by path.
"""

import asyncio
import contextlib
import ctypes
import os
import socket
import sys

_CLONE_NEWNET = 0x40000000


def enter_network(pid: int) -> None:
    """Go on in the network namespace of a process.

    Raises:
        OSError: the kernel refuses, or there is no such process.
    """
    descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        # os.setns exists from Python 3.12 on
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the network of process {pid}")
    finally:
        os.close(descriptor)


async def forward(listener: socket.socket, host: str, port: int) -> None:
    """Connect whoever comes with a host and port of the network that was entered."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError as error:
            print(f"{host}:{port}: {error}", file=sys.stderr, flush=True)
            writer.close()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    server = await asyncio.start_server(connected, sock=listener)
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what arrives until one side ends; a broken connection ends both."""
    try:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


async def main(arguments: list[str]) -> None:
    """Serve all the ports until the process is ended."""
    pid, *routes = arguments
    forwards = []
    for route in routes:
        local, _, target = route.partition("=")
        host, _, port = target.rpartition(":")
        forwards.append((socket.create_server(("127.0.0.1", int(local))), host, int(port)))
    enter_network(int(pid))
    await asyncio.gather(*(forward(*each) for each in forwards))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
