from __future__ import annotations

import pytest

from regent.protocol.connection_setup import AuthenticationError
from regent.protocol.sasl import SaslCredentials

# The exchange of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_plain() -> None:
    dialogue = SaslCredentials("PLAIN", "user", "pass word").dialogue("")
    assert next(dialogue) == b"\0user\0pass word"
    with pytest.raises(StopIteration):
        dialogue.send(b"")


def test_scram_as_in_the_rfc() -> None:
    dialogue = SaslCredentials("SCRAM-SHA-256", "user", "pencil").dialogue(NONCE)
    assert next(dialogue) == b"n,,n=user,r=" + NONCE.encode()
    assert dialogue.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        dialogue.send(SERVER_FINAL)


def test_a_broker_without_the_password_is_found_out() -> None:
    dialogue = SaslCredentials("SCRAM-SHA-256", "user", "pencil").dialogue(NONCE)
    next(dialogue)
    dialogue.send(SERVER_FIRST)
    with pytest.raises(AuthenticationError, match="signature"):
        dialogue.send(b"v=AAAA")


@pytest.mark.parametrize(
    "message",
    [
        b"r=another,s=W22Z,i=4096",
        b"r=" + NONCE.encode() + b",s=W22Z,i=4096",
        b"r=" + NONCE.encode() + b"x,i=4096",
        b"r=" + NONCE.encode() + b"x,s=!!,i=4096",
        b"r=" + NONCE.encode() + b"x,s=W22Z,i=many",
        b"r=" + NONCE.encode() + b"x,s=W22Z,i=1",
        b"r=" + NONCE.encode() + b"x,s=W22Z,i=1000000000",
        b"\xff\xfe",
        b"",
    ],
)
def test_nonsense_of_the_broker_is_refused(message: bytes) -> None:
    dialogue = SaslCredentials("SCRAM-SHA-512", "user", "pencil").dialogue(NONCE)
    next(dialogue)
    with pytest.raises(AuthenticationError):
        dialogue.send(message)


def test_names_are_escaped() -> None:
    dialogue = SaslCredentials("SCRAM-SHA-512", "a=b,c", "pencil").dialogue(NONCE)
    assert next(dialogue) == b"n,,n=a=3Db=2Cc,r=" + NONCE.encode()


def test_an_unknown_mechanism_is_refused() -> None:
    with pytest.raises(ValueError, match="SCRAM-SHA-256"):
        SaslCredentials("GSSAPI", "user", "pencil")


def test_the_password_is_not_printed() -> None:
    assert "pencil" not in repr(SaslCredentials("PLAIN", "user", "pencil"))
