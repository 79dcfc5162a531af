"""Bytes that no client would send, in any number, against a server that runs.

As a command: ``.venv/bin/python -m tests.support.hostile_peers --frames 100000`` decodes that many
mutated frames, then sends them to a server beside many connections that do nothing, while an honest
client goes on asking. It prints what the server counted, the honest client's times, and memory. Of
the frames that are sent, those behind one that closes their connection are not read any more.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import logging
import random
import resource
import struct
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from regent.network.kafka_server import KafkaServer
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.protocol.primitives import DecodeError
from regent.protocol.served_apis import CONTROLLED_SHUTDOWN
from regent.protocol.server_codec import Request, ServerCodec
from regent.protocol.serving import Close, Peer
from tests.support.kafka_client import connected
from tests.support.served_requests import ALL_APIS, GOLDEN, make

_EDGES = (0, 1, 0x7F, 0x80, 0xFF)


def fuzzed_frames(seed: int, *, more: Sequence[bytes] = ()) -> Iterator[bytes]:
    """Golden requests with bytes changed, inserted or cut, and pure chance; the same for a seed.

    Args:
        more: Other requests that are treated alike.
    """
    chance = random.Random(seed)
    requests = [*more, *(each.frame for each in GOLDEN if each.kind == "request")]
    while True:
        frame = bytearray(chance.choice(requests))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(frame) + 1)
            match chance.randrange(5):
                case 0:
                    frame[at : at + 1] = bytes((chance.choice(_EDGES),))
                case 1:
                    frame[at : at + 1] = chance.randbytes(1)
                case 2:
                    frame[at:at] = chance.randbytes(chance.randint(1, 8))
                case 3:
                    frame[at : at + 4] = struct.pack(">I", chance.choice((2**31 - 1, 2**32 - 1)))
                case _:
                    del frame[at:]
        yield bytes(frame) if chance.randrange(20) else chance.randbytes(chance.randint(0, 64))


async def answer_anything(request: Request, _: Peer) -> Any | Close:
    """A dispatcher without a controller: ControlledShutdown is answered, everything else closed."""
    if request.header.api_key != CONTROLLED_SHUTDOWN.key:
        return Close.CLOSE
    kind = CONTROLLED_SHUTDOWN.responses[request.header.api_version]
    return make(kind, {"errorCode": 0, "remainingPartitions": []})


@contextlib.asynccontextmanager
async def server_for_hostile_peers(connections: int) -> AsyncIterator[KafkaServer]:
    """A server of all APIs that lets one address have that many connections, as often as it likes.

    Hostile peers and the honest one are told apart by their addresses.
    """
    limits = ServerLimits(
        connections=connections + 100,
        connections_per_address=connections,
        connection_rate=1e6,
        request_rate=1e6,
    )
    server = KafkaServer(
        ServerSettings(limits=limits), apis=ALL_APIS.values(), dispatcher=answer_anything
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def send_frames(port: int, frames: Sequence[bytes]) -> None:
    """Send frames one after the other, on a new connection whenever the server has closed one."""
    left = list(reversed(frames))
    while left:
        async with connected(port, local="127.0.0.2") as client:
            reading = asyncio.create_task(client.closed())
            with contextlib.suppress(ConnectionError):
                while left and not reading.done():
                    client.send_frame(left.pop())
                    await client.writer.drain()
                    await asyncio.sleep(0)
                # A frame may be an honest request by chance: an empty one ends the connection.
                client.send_frame(b"")
                await reading
            reading.cancel()


def decode_all(frames: Iterable[bytes]) -> int:
    """Decode frames, which gives requests or decode errors only; how many were requests."""
    codec = ServerCodec(ALL_APIS)
    read = 0
    for frame in frames:
        with contextlib.suppress(DecodeError):
            codec.decode(frame)
            read += 1
    return read


class Times(NamedTuple):
    """How long the honest client's requests took, in milliseconds."""

    requests: int
    median: float
    p99: float
    longest: float


async def ask_until(port: int, done: asyncio.Event) -> Times:
    """Be an honest client on one connection, from an address of its own."""
    took: list[float] = []
    async with connected(port) as client:
        while not done.is_set():
            start = time.perf_counter()
            answer = await client.ask(CONTROLLED_SHUTDOWN, 3, {"brokerId": 1, "brokerEpoch": 1})
            took.append((time.perf_counter() - start) * 1000)
            assert answer.error_code is ErrorCode.none
    took.sort()
    return Times(len(took), took[len(took) // 2], took[len(took) * 99 // 100], took[-1])


async def attack(server: KafkaServer, *, frames: int, connections: int, seed: int) -> Times:
    """Send that many frames beside that many silent connections, while an honest client asks."""
    done = asyncio.Event()
    honest = asyncio.create_task(ask_until(server.port, done))
    source = fuzzed_frames(seed)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(connections):
            silent = await stack.enter_async_context(connected(server.port, local="127.0.0.2"))
            silent.writer.write(struct.pack(">i", 1000) + b"no more comes")
        for start in range(0, frames, 1000):
            size = min(1000, frames - start)
            await send_frames(server.port, [next(source) for _ in range(size)])
    done.set()
    return await honest


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # thousands of connections are closed
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    start = time.perf_counter()
    read = decode_all(itertools.islice(fuzzed_frames(options.seed), options.frames))
    took = time.perf_counter() - start
    print(f"decoded: {options.frames} frames, {read} of them requests, in {took:.1f} s")

    async def run() -> None:
        async with server_for_hostile_peers(options.connections + 10) as server:
            await attack(server, frames=1000, connections=options.connections, seed=0)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            times = await attack(
                server, frames=options.frames, connections=options.connections, seed=options.seed
            )
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            print(times)
            print(f"memory: {before // 1024} MiB, grown by {grown // 1024} MiB")
            for reason, count in server.statistics.closed.items():
                print(f"closed, {reason.value}: {count}")
            print(f"requests that could be read: {sum(server.statistics.requests.values())}")

    asyncio.run(run())


if __name__ == "__main__":
    _main()
