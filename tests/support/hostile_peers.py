"""Bytes that no client would send, in any number, and what is served beside them."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from regent.protocol.served_apis import CONTROLLED_SHUTDOWN
from regent.protocol.server_codec import Request
from regent.protocol.serving import Close, Peer
from tests.support.kafka_client import connected
from tests.support.served_requests import GOLDEN, make

_EDGES = (0, 1, 0x7F, 0x80, 0xFF)


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
