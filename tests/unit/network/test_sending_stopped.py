"""A large request whose sender finds out on the way that it must not send it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest
import trustme

from regent.model.cluster import EndPoint
from regent.network.connection import BrokerConnection, SendingStoppedError
from regent.network.settings import ChannelSettings
from regent.protocol.framing import joined
from regent.protocol.primitives import pack_int32
from tests.support.fixed_tls import FixedTls

API_KEY, VERSION, CORRELATION_ID = 4, 7, 1
PART: Final = bytes(range(256)) * 32 * 1024
"""With another one of this size it is more than the buffers of both ends take."""
WAIT_S = 60.0
SLICE: Final = 256 * 1024
"""Bytes between two questions."""


class Made:
    """Bytes that are made while they are sent."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)


BODY: Final = (
    PART,
    Made(PART[:300_000], PART[300_000:], b"", b"12"),
    b"",
    PART[:777],
    b"the",
    b"end",
)


class Receiver:
    """Reads when it may, until the other one closes the connection.

    Attributes:
        may_read: Cleared: what has been sent stays in the buffers.
        received: So far.
        has_ended: Set when the connection is closed.
    """

    def __init__(self) -> None:
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.received = bytearray()
        self.has_ended = asyncio.Event()

    @property
    def has_all(self) -> bool:
        """Whether a whole request has come."""
        size = int.from_bytes(self.received[:4], "big")
        return len(self.received) >= 4 and len(self.received) - 4 >= size

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.may_read.wait()
        with contextlib.suppress(OSError):
            while data := await reader.read(1024 * 1024):
                self.received += data
                if self.has_all:
                    answer = pack_int32(CORRELATION_ID) + b"done"
                    writer.write(pack_int32(len(answer)) + answer)
        self.has_ended.set()
        writer.close()


class Permission:
    """Whether the sender may go on, and how often it has asked."""

    def __init__(self) -> None:
        self.is_given = True
        self.asked = 0

    def __call__(self) -> bool:
        self.asked += 1
        return self.is_given


@contextlib.asynccontextmanager
async def connected(
    receiver: Receiver, authority: trustme.CA | None = None
) -> AsyncIterator[BrokerConnection]:
    """A connection whose buffers are much smaller than the request."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    server_tls = client_tls = None
    if authority is not None:
        server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(server_tls)
        context = ssl.create_default_context()
        authority.configure_trust(context)
        client_tls = FixedTls(context)
    server = await asyncio.start_server(receiver.serve, sock=listening, ssl=server_tls)
    protocol = "PLAINTEXT" if authority is None else "SSL"
    endpoint = EndPoint(protocol, protocol, "127.0.0.1", listening.getsockname()[1])
    connection = await BrokerConnection.open(
        endpoint, client_id="us", settings=ChannelSettings(tls=client_tls)
    )
    try:
        yield connection
    finally:
        connection.close()
        receiver.may_read.set()
        server.close()
        await asyncio.wait_for(receiver.has_ended.wait(), WAIT_S)


@pytest.fixture(params=[False, True], ids=["plaintext", "tls"])
def authority(request: pytest.FixtureRequest) -> trustme.CA | None:
    return trustme.CA() if request.param else None


async def test_it_arrives_whole_if_it_may(authority: trustme.CA | None) -> None:
    receiver, may_go_on = Receiver(), Permission()
    async with connected(receiver, authority) as connection:
        answer = await asyncio.wait_for(
            connection.round_trip(API_KEY, VERSION, BODY, flexible=False, may_go_on=may_go_on),
            WAIT_S,
        )
    assert answer == b"done"
    assert receiver.received.endswith(joined(BODY))
    assert may_go_on.asked > len(PART) * 2 // SLICE


async def test_its_end_does_not_wait_for_others_if_the_socket_takes_all_at_once() -> None:
    """What other channels are about to do may take long, and the broker would wait for it."""
    receiver = Receiver()
    done: list[str] = []

    async def others() -> None:
        done.append("others")

    def may_go_on() -> bool:
        done.append("asked")
        return True

    async with connected(receiver) as connection:
        sending = asyncio.create_task(
            connection.round_trip(
                API_KEY, VERSION, (PART[: 20 * 1024],), flexible=False, may_go_on=may_go_on
            )
        )
        waiting = asyncio.create_task(others())
        await asyncio.wait_for(waiting, WAIT_S)
        assert await asyncio.wait_for(sending, WAIT_S) == b"done"
    # ahead of the slice with the header, of the one with the body, and of the end
    assert done == ["asked", "asked", "asked", "others"]


async def test_nothing_of_a_small_one_leaves_if_it_may_not(authority: trustme.CA | None) -> None:
    receiver = Receiver()
    async with connected(receiver, authority) as connection:
        with pytest.raises(SendingStoppedError):
            await connection.round_trip(
                API_KEY, VERSION, (b"small",), flexible=False, may_go_on=lambda: False
            )
    assert receiver.received == b""


async def test_its_end_is_kept_back_if_it_may_not(authority: trustme.CA | None) -> None:
    """The buffers are full when the process falls asleep. What is in them is sent, the end not."""
    receiver = Receiver()
    receiver.may_read.clear()
    has_slept, asked = False, asyncio.Event()

    def may_go_on() -> bool:
        asked.set()
        return not has_slept

    async with connected(receiver, authority) as connection:
        sending = asyncio.create_task(
            connection.round_trip(API_KEY, VERSION, BODY, flexible=False, may_go_on=may_go_on)
        )
        await asyncio.wait_for(asked.wait(), WAIT_S)
        has_slept = True
        receiver.may_read.set()
        with pytest.raises(SendingStoppedError):
            await asyncio.wait_for(sending, WAIT_S)
        connection.close()
        await asyncio.wait_for(receiver.has_ended.wait(), WAIT_S)
    assert receiver.received
    assert not receiver.has_all


async def asked_before_it_stands_still(connection: BrokerConnection, size: int) -> int:
    """How many slices of a request leave while the receiver does not read."""
    may_go_on = Permission()
    sending = asyncio.create_task(
        connection.round_trip(API_KEY, VERSION, (bytes(size),), flexible=False, may_go_on=may_go_on)
    )
    await turns_of_the_loop()
    sending.cancel()
    await asyncio.wait([sending])
    return may_go_on.asked


async def turns_of_the_loop() -> None:
    """Enough for what the buffers take. What is checked after it holds after fewer, too."""
    for _ in range(200):
        await asyncio.sleep(0)


async def test_allowed_bytes_have_left_others_are_asked_about(authority: trustme.CA | None) -> None:
    """Of requests that just fit into the buffers of the system, or just do not."""
    receiver = Receiver()
    receiver.may_read.clear()
    async with connected(receiver, authority) as connection:
        fit = await asked_before_it_stands_still(connection, len(PART) * 2)
    had_left = set()
    for size in range((fit - 3) * SLICE, (fit + 1) * SLICE, SLICE // 8):
        had_left.add(await all_has_left(size, authority))
    assert had_left == {True, False}


async def all_has_left(size: int, authority: trustme.CA | None) -> bool:
    """Whether a request was allowed to the end while its receiver did not read. If it was, nothing
    of it may be left in this process; if not, the receiver must never get all of it."""
    receiver = Receiver()
    receiver.may_read.clear()
    body, may_go_on = (bytes(size),), Permission()
    async with connected(receiver, authority) as connection:
        sending = asyncio.create_task(
            connection.round_trip(API_KEY, VERSION, body, flexible=False, may_go_on=may_go_on)
        )
        await turns_of_the_loop()
        # one with the header, the others with the body, and the end
        was_allowed = may_go_on.asked == 1 + -(-size // SLICE) + 1
        may_go_on.is_given = False
        if was_allowed:
            connection.close()  # and nothing more leaves
            receiver.may_read.set()
        else:
            receiver.may_read.set()
            with pytest.raises(SendingStoppedError):
                await asyncio.wait_for(sending, WAIT_S)
            connection.close()
        await asyncio.wait_for(receiver.has_ended.wait(), WAIT_S)
        await asyncio.wait([sending])
        if was_allowed:
            assert sending.exception() is not None
    assert receiver.has_all == was_allowed, size
    return was_allowed
