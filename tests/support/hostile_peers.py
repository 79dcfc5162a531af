"""Bad clients and bad brokers, and a server between them that passes requests on."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from regent.network.kafka_server import KafkaServer
from regent.network.pass_through import PassThrough
from regent.network.server_settings import ServerLimits, ServerSettings
from regent.network.upstream_settings import UpstreamSettings
from regent.protocol.framing import RequestHeader
from regent.protocol.passed_on import PASSED_ON
from regent.protocol.served_apis import CONTROLLED_SHUTDOWN
from regent.protocol.server_codec import Request
from regent.protocol.serving import Close, Peer
from tests.support.kafka_client import KafkaClient, connected
from tests.support.raw_broker import NO_BYTES, RawBroker, answer_of, nowhere, versions_of
from tests.support.served_requests import ALL_APIS, GOLDEN, make

HOSTILE_ADDRESS: Final = "127.0.0.2"
_EDGES = (0, 1, 0x7F, 0x80, 0xFF)
_REQUEST_S: Final = 3.0
_CLIENT_PATIENCE_S: Final = 2 * _REQUEST_S


def fuzzed_frames(seed: int, *, more: Sequence[bytes] = ()) -> Iterator[bytes]:
    """Golden and other requests with bytes changed, inserted or cut, and pure chance."""
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


async def ask_until(port: int, done: asyncio.Event) -> int:
    """Be an honest client on one connection, from an address of its own; count its requests."""
    asked = 0
    async with connected(port) as client:
        while not done.is_set():
            answer = await client.ask(CONTROLLED_SHUTDOWN, 3, {"brokerId": 1, "brokerEpoch": 1})
            assert answer.error_code is ErrorCode.none
            asked += 1
    return asked


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
    """A server that passes requests on to some brokers."""

    def __init__(self, brokers: Sequence[RawBroker], *, connections: int) -> None:
        upstreams = [broker.as_upstream() for broker in brokers]
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
        try:
            yield self.kafka_server
        finally:
            await self.kafka_server.stop()


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


async def attack(port: int, *, frames: int, connections: int, seed: int, at_once: int) -> int:
    """Send frames on some connections beside many others; count an honest broker's requests.

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
