from __future__ import annotations

from pathlib import Path

import pytest

from regent.model.errors import ConfigurationError
from regent.zookeeper import settings as module
from regent.zookeeper.settings import (
    SaslSettings,
    TlsSettings,
    ZooKeeperSettings,
    parse_connect_string,
)
from regent.zookeeper.tls import tls_context


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("h:2181", ("h:2181",), ""),
        ("h", ("h:2181",), ""),
        (" h1:2181 , h2:2182/kafka ", ("h1:2181", "h2:2182"), "/kafka"),
        ("h1,h2/a/b/", ("h1:2181", "h2:2181"), "/a/b"),
        ("h/", ("h:2181",), ""),
        ("10.0.0.1:1", ("10.0.0.1:1",), ""),
        ("[2001:db8::1]:2182,[::1]/k", ("[2001:db8::1]:2182", "[::1]:2181"), "/k"),
        ("[fe80::1%eth0]:1", ("[fe80::1%eth0]:1",), ""),
        ("zk_1.é-x:1", ("zk_1.é-x:1",), ""),
    ],
)
def test_connect_strings(text: str, hosts: tuple[str, ...], chroot: str) -> None:
    assert parse_connect_string(text) == (hosts, chroot)


@pytest.mark.parametrize(
    "text",
    [
        *("", "/kafka", "h:", "h:x", "h:0", "h:65536", "h,,h2", ":2181", "::1:2181", "h//a"),
        *("h/a/../b", "zk://h:1", "h1;h2", "h1 h2", "user@h:1", "h:\u0661"),
        *("[]:1", "[::1", "::1]", "[h]:1", "[::1]1", "[1:2]:1"),
    ],
)
def test_no_connect_strings(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_connect_string(text)


def test_a_chroot_stands_once_after_all_servers() -> None:
    """Kafka takes it all for a path: only the first server would be asked, for a strange one."""
    for text in ("h1:1/k,h2:1/k", "h1/k,h2:1", "h1:1/k,h2:1,h3:1/k", "h1/k,h2/k"):
        with pytest.raises(ConfigurationError, match="one path for all"):
            parse_connect_string(text)
    assert parse_connect_string("h:1/a,b") == (("h:1",), "/a,b")


def test_how_long_calls_wait() -> None:
    settings = ZooKeeperSettings(hosts=("h:1",), session_timeout_ms=6_000)
    assert settings.unavailable_after_s == 6
    settings = ZooKeeperSettings(hosts=("h:1",), unavailable_after_ms=500)
    assert settings.unavailable_after_s == 0.5


def test_timeouts_are_above_zero() -> None:
    for settings in (
        ZooKeeperSettings(hosts=("h:1",), session_timeout_ms=0),
        ZooKeeperSettings(hosts=("h:1",), connect_timeout_ms=-1),
    ):
        with pytest.raises(ConfigurationError, match="timeouts"):
            settings.validate()


def test_tls_files_are_looked_at_before_anyone_connects(tmp_path: Path) -> None:
    file = tmp_path / "file.pem"
    file.write_text("no certificate")
    tls_context(TlsSettings())
    for tls in (
        TlsSettings(ca_file=str(tmp_path / "missing")),
        TlsSettings(ca_file=str(file)),
        TlsSettings(certificate_file=str(file), key_file=str(file)),
        TlsSettings(certificate_file=str(file)),
        TlsSettings(key_file=str(file)),
    ):
        with pytest.raises(ConfigurationError, match="TLS for ZooKeeper"):
            tls_context(tls)


def test_sasl_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pure-sasl"):
        ZooKeeperSettings(hosts=("h:1",), sasl=SaslSettings(username="u")).validate()
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    ZooKeeperSettings(hosts=("h:1",), sasl=SaslSettings(username="u")).validate()


def test_secrets_are_not_shown() -> None:
    settings = ZooKeeperSettings(
        hosts=("h:1",),
        sasl=SaslSettings(username="u", password="hidden"),
        tls=TlsSettings(key_password="hidden"),
    )
    assert "hidden" not in repr(settings)
