"""Why a TLS connection to ZooKeeper does not come about, and what to do."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from regent.zookeeper.settings import TlsSettings
from regent.zookeeper.tls import connect, explained
from sandbox.pki import Authority, TlsFiles
from tests.support.waiting import DEADLINE_S


@contextlib.contextmanager
def server(files: TlsFiles) -> Iterator[int]:
    """A server that makes one handshake; its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                context.wrap_socket(connection, server_side=True).close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(60)


@pytest.mark.parametrize(
    ("mistake", "remedy"),
    [
        ("expired", "the server's certificate is not valid now: renew it"),
        ("authority", "zookeeper_tls_ca_file must have"),
        ("host", "the server's certificate must name zookeeper-1"),
    ],
)
def test_unaccepted_certificate_names_the_remedy(mistake: str, remedy: str, tmp_path: Path) -> None:
    trusted = Authority(tmp_path)
    (tmp_path / "others").mkdir()
    shown = Authority(tmp_path / "others") if mistake == "authority" else trusted
    host = "zookeeper-1" if mistake == "host" else "127.0.0.1"
    tls = TlsSettings(ca_file=str(trusted.certificate))
    with server(shown.issue("server", is_expired=mistake == "expired")) as port:
        with pytest.raises(OSError, match=remedy) as raised:
            connect(("127.0.0.1", port), tls, hostname=host, timeout_s=DEADLINE_S)
        assert str(raised.value).startswith(f"{host}:{port}: ")


def test_our_own_expired_certificate_is_what_to_look_at(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue("regent", is_expired=True)
    tls = TlsSettings(certificate_file=str(files.certificate), key_file=str(files.key))
    text = explained(ConnectionResetError("reset"), tls, hostname="zookeeper-1")
    assert text.startswith("reset; the certificate in ")
    assert str(files.certificate) in text
    assert "expired at" in text


def test_a_server_that_refuses_our_certificate_is_one_to_look_at(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue("regent")
    tls = TlsSettings(certificate_file=str(files.certificate), key_file=str(files.key))
    error = ssl.SSLError(1, "[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca")
    assert "ssl.trustStore.location" in explained(error, tls, hostname="zookeeper-1")
    assert explained(OSError("down"), tls, hostname="zookeeper-1") == "down"
