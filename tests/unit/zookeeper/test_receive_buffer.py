"""What arrives in pieces of any size is read message by message; watch events can be taken."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.zookeeper.receive_buffer import Event, ReceiveBuffer, decode_event

ANSWER_XID = 7
EVENTS = st.builds(Event, st.integers(1, 4), st.sampled_from(["/", "/a", "/ä/€", "/x" * 300]))
ANSWERS = st.binary(max_size=400)


def message(content: Event | bytes) -> bytes:
    xid = -1 if isinstance(content, Event) else ANSWER_XID
    body = content.as_body() if isinstance(content, Event) else content
    return struct.pack(">iiqi", 16 + len(body), xid, -1, 0) + body


def arriving(data: bytes, sizes: list[int]) -> Callable[[int], bytes]:
    """Data in pieces: each of the given size (the last one of them for all that follow), or of what
    is asked for if that is less."""
    left = memoryview(data)
    pieces: Iterator[int] = iter(sizes)
    size = 1

    def receive(most: int) -> bytes:
        nonlocal left, size
        size = next(pieces, size)
        assert left, "more is asked for than there is"
        piece, left = bytes(left[: min(size, most)]), left[min(size, most) :]
        return piece

    return receive


@pytest.fixture
def source() -> Iterator[socket.socket]:
    with socket.socket() as made:
        yield made


@given(
    contents=st.lists(EVENTS | ANSWERS, max_size=12),
    sizes=st.lists(st.integers(1, 700), min_size=1, max_size=30),
)
def test_messages_keep_their_order(contents: list[Event | bytes], sizes: list[int]) -> None:
    receive = arriving(b"".join(map(message, contents)), sizes)
    buffer = ReceiveBuffer()
    read: list[Event | bytes] = []
    with socket.socket() as source:
        while len(read) < len(contents):
            event = buffer.take_event()
            if event is not None:
                read.append(event)
                continue
            (length,) = struct.unpack(">i", buffer.read(source, 4, receive))
            body = buffer.read(source, length, receive)
            (xid,) = struct.unpack_from(">i", body)
            read.append(decode_event(body, 16) if xid == -1 else body[16:])
    assert read == contents
    assert not buffer


def test_an_answer_is_no_event(source: socket.socket) -> None:
    first, answer, event = message(b""), message(b"x" * 40), message(Event(3, "/a"))
    buffer = ReceiveBuffer()
    receive = arriving(first + answer + event, [1_000])
    buffer.read(source, len(first), receive)
    assert buffer.take_event() is None
    assert buffer.read(source, len(answer), receive) == answer
    assert buffer.take_event() == Event(3, "/a")


def test_a_new_connection_begins_with_nothing(source: socket.socket) -> None:
    buffer = ReceiveBuffer()
    assert buffer.read(source, 1, arriving(b"abc", [3])) == b"a"
    with socket.socket() as other:
        assert buffer.read(other, 2, arriving(b"xyz", [3])) == b"xy"
        assert buffer.source is other


def test_a_broken_connection_breaks_the_read(source: socket.socket) -> None:
    def receive(size: int) -> bytes:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        ReceiveBuffer().read(source, 4, receive)
