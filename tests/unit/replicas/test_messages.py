"""What replicas say to each other."""

from __future__ import annotations

import pytest

from regent.replicas.messages import (
    LINE_BYTES,
    Answer,
    Ask,
    MalformedMessageError,
    decode_answer,
    decode_ask,
    encode,
)


def test_a_message_is_one_line() -> None:
    ask, answer = Ask("a", is_ready=True), Answer("b", take_over=True)
    assert encode(ask) == b'{"instance":"a","isReady":true}\n'
    assert decode_ask(encode(ask)) == ask
    assert decode_answer(encode(answer)) == answer
    assert len(encode(Ask("x" * 255))) <= LINE_BYTES


def test_members_of_later_versions_are_ignored() -> None:
    assert decode_answer(b'{"instance":"a","since":3}\n') == Answer("a")


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"GET / HTTP/1.1\r\n", b"[]", b"{}", b'{"instance":1}', b"\xff", b"[" * 999],
)
def test_anything_else_is_refused(line: bytes) -> None:
    for decode in (decode_ask, decode_answer):
        with pytest.raises(MalformedMessageError):
            decode(line)
