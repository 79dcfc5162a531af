"""Bad clients and bad brokers at once, with a server between them that passes requests on.

As a command: ``.venv/bin/python -m tests.support.hostile_pass_through --frames 1000000`` runs the
server in this process; clients and brokers run in another one, so that what is measured here is the
server's. It prints what the server counted, how late its loop was (a timer of 5 ms) and how long it
computed at a time (which does not depend on what else runs), how long an honest broker's
requests took, and memory.
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
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final, NamedTuple

from regent.model.cluster import Broker, EndPoint
from regent.network.kafka_server import KafkaServer
from regent.network.pass_through import PassThrough
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.upstream_settings import UpstreamSettings
from regent.protocol.framing import RequestHeader
from regent.protocol.passed_on import PASSED_ON
from regent.protocol.serving import UpstreamBroker
from tests.support.hostile_peers import Times, answer_anything, ask_until, fuzzed_frames
from tests.support.kafka_client import KafkaClient, connected
from tests.support.raw_broker import NO_BYTES, RawBroker, answer_of, nowhere, versions_of
from tests.support.served_requests import ALL_APIS

HOSTILE_ADDRESS: Final = "127.0.0.2"
_BROKERS: Final = 3
_REQUEST_S: Final = 3.0
_TIMER_S: Final = 0.005
_CLIENT_PATIENCE_S: Final = 2 * _REQUEST_S


class BadBroker(RawBroker):
    """Answers well at times, and otherwise slowly, wrongly, in part, too much, or not at all."""

    def __init__(self, broker_id: int, seed: int) -> None:
        super().__init__(broker_id)
        self._chance = random.Random(seed)
        self.answer = self._answer

    def _answer(self, header: RequestHeader, _: bytes) -> bytes | None:
        self.frames.clear()
        whole = answer_of(header, bytes(self._chance.choice((0, 100, 10_000, 300_000))))
        match self._chance.randrange(40):
            case 0 if not self._chance.randrange(10):
                return NO_BYTES
            case 1:
                return None
            case 2:
                return whole[: self._chance.randrange(len(whole))]
            case 3:
                return struct.pack(">ii", 2**31 - 1, header.correlation_id) + bytes(100_000)
            case 4:
                return struct.pack(">ii", 200_000_000, header.correlation_id) + bytes(100_000)
            case 5:
                return struct.pack(">ii", -5, header.correlation_id)
            case 6:
                return struct.pack(">ii", 8, header.correlation_id + 1) + b"else"
            case 7:
                return whole + b"and what nobody has asked for" * 1000
            case 8:
                return self._chance.randbytes(50)
        return whole


class Server:
    """The server, and how late its loop has been.

    Attributes:
        late_s: How late each run of the timer was.
        computed_s: Processor time of the loop between two runs.
    """

    def __init__(self, ports: Sequence[int], *, connections: int) -> None:
        self.late_s: list[float] = []
        self.computed_s: list[float] = []
        upstreams = [
            UpstreamBroker(
                Broker(number, 1, (EndPoint("CLIENTS", "PLAINTEXT", "127.0.0.1", port),)),
                versions_of((3, 9)),
            )
            for number, port in enumerate(ports, start=1)
        ]
        self.pass_through = PassThrough(
            UpstreamSettings(connections=200, idle_s=2.0),
            brokers=lambda: upstreams,
            depends_on_address=nowhere,
        )
        limits = ServerLimits(
            connections=connections + 500,
            connections_per_address=connections + 400,
            connection_rate=1e6,
            request_rate=1e6,
            request_s=_REQUEST_S,
        )
        own = [api for key, api in ALL_APIS.items() if key not in PASSED_ON]
        self.kafka_server = KafkaServer(
            ServerSettings(limits=limits),
            apis=own,
            dispatcher=answer_anything,
            pass_through=self.pass_through,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[KafkaServer]:
        await self.kafka_server.start()
        timer = asyncio.create_task(self._measure())
        try:
            yield self.kafka_server
        finally:
            timer.cancel()
            await self.kafka_server.stop()

    async def _measure(self) -> None:
        while True:
            before, computed = time.perf_counter(), time.thread_time()
            await asyncio.sleep(_TIMER_S)
            self.late_s.append(time.perf_counter() - before - _TIMER_S)
            self.computed_s.append(time.thread_time() - computed)


def passed_on_frames() -> list[bytes]:
    """A request of each API that is passed on, whose body is of no interest."""
    return [
        struct.pack(">hhih", key, highest if key else 3, 7, 4) + b"test" + b"\xff\xff\0\1" * 8
        for key, (_, highest) in versions_of((3, 9)).items()
        if key in PASSED_ON
    ]


async def send_frames(port: int, frames: Iterator[bytes]) -> None:
    """Send frames, the next one when there was an answer, on a new connection after each end."""
    frame = next(frames, None)
    while frame is not None:
        async with connected(port, local=HOSTILE_ADDRESS) as client:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
                while frame is not None:
                    sent, frame = frame, next(frames, None)
                    await _send(client, sent)


async def _send(client: KafkaClient, frame: bytes) -> None:
    client.send_frame(frame)
    async with asyncio.timeout(_CLIENT_PATIENCE_S):
        (size,) = struct.unpack(">i", await client.reader.readexactly(4))
        while size > 0:
            size -= len(data := await client.reader.read(min(size, 65536)))
            if not data:
                raise ConnectionError("closed")


async def attack(port: int, *, frames: int, connections: int, seed: int, at_once: int) -> Times:
    """Send frames on some connections beside many others; an honest broker's times.

    Half of the others say nothing, half begin a request, for which the server closes them.
    """
    done = asyncio.Event()
    honest = asyncio.create_task(ask_until(port, done))
    source = itertools.islice(fuzzed_frames(seed, more=passed_on_frames() * 4), frames)
    async with contextlib.AsyncExitStack() as stack:
        for number in range(connections):
            other = await stack.enter_async_context(connected(port, local=HOSTILE_ADDRESS))
            if number % 2:
                other.writer.write(struct.pack(">i", 1000) + b"no more comes")
        # Some wait for an answer that does not come: they hold up nobody else.
        await asyncio.gather(*(send_frames(port, source) for _ in range(at_once)))
    done.set()
    return await honest


class _Options(NamedTuple):
    frames: int
    connections: int
    at_once: int
    seed: int


async def _hostile_side(options: _Options) -> None:
    """Brokers, whose ports are printed; then clients of the server whose port is read."""
    brokers = [BadBroker(number, options.seed + number) for number in range(1, _BROKERS + 1)]
    for broker in brokers:
        await broker.start()
    print(*(broker.port for broker in brokers), flush=True)
    port = int(await asyncio.to_thread(sys.stdin.readline))
    for frames, seed in ((2000, 0), (options.frames, options.seed)):
        times = await attack(
            port,
            frames=frames,
            connections=options.connections,
            seed=options.seed + seed,
            at_once=options.at_once,
        )
        print(*times, flush=True)
        await asyncio.to_thread(sys.stdin.readline)


def _memory_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


async def _measured_side(options: _Options) -> None:
    hostile = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.hostile_pass_through",
        "--hostile-side",
        *(f"--{name.replace('_', '-')}={value}" for name, value in options._asdict().items()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert hostile.stdin is not None
    assert hostile.stdout is not None
    ports = [int(port) for port in (await hostile.stdout.readline()).split()]
    server = Server(ports, connections=options.connections)
    async with server.running() as kafka_server:
        hostile.stdin.write(f"{kafka_server.port}\n".encode())
        await hostile.stdout.readline()  # the first, small attack
        before = _memory_mib()
        server.late_s.clear()
        server.computed_s.clear()
        hostile.stdin.write(b"\n")
        start = time.perf_counter()
        requests, median, p99, longest = map(float, (await hostile.stdout.readline()).split())
        print(f"took {time.perf_counter() - start:.0f} s")
        print(f"honest: {requests:.0f} requests, {median:.1f} / {p99:.1f} / {longest:.1f} ms")
        for name, seconds in (("late", server.late_s), ("at work", server.computed_s)):
            ordered = sorted(seconds)
            p99, most = ordered[len(ordered) * 99 // 100] * 1000, ordered[-1] * 1000
            print(f"loop {name}: p99 {p99:.1f}, most {most:.1f} ms")
        print(f"memory: {before} MiB, grown by {_memory_mib() - before} MiB")
        for reason, count in kafka_server.statistics.closed.items():
            print(f"closed, {reason.value}: {count}")
        passed = sum(kafka_server.statistics.requests[name] for name in PASSED_ON.values())
        upstream = kafka_server.statistics.upstream_connections
        print(f"passed on: {passed}; connections to brokers: {upstream}")
        hostile.stdin.write(b"\n")
        await hostile.wait()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, default=20, help="connections that send frames")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hostile-side", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    options = _Options(arguments.frames, arguments.connections, arguments.at_once, arguments.seed)
    logging.disable(logging.ERROR)  # thousands of connections are closed
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run((_hostile_side if arguments.hostile_side else _measured_side)(options))


if __name__ == "__main__":
    _main()
