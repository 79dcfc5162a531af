"""How to reach ZooKeeper."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from regent.model.errors import ConfigurationError
from regent.zk_data.operations import DEFAULT_JUTE_MAX_BUFFER

DEFAULT_SESSION_TIMEOUT_MS: Final = 18_000
"""Kafka's default since 2.5."""

DEFAULT_CONNECT_TIMEOUT_MS: Final = 6_000

DEFAULT_PORT: Final = 2181

MIN_JUTE_MAX_BUFFER: Final = 65_536

_NO_HOST: Final = re.compile(r"[\s/\\@#?;,:\[\]\x00-\x1f]")
_SERVER_AGAIN: Final = re.compile(r",[^/,]+(/|:[0-9]+(,|$))")
"""In a chroot: what looks like the next server, with its port or a path of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """How to authenticate.

    Attributes:
        mechanism: ``DIGEST-MD5`` with a username and password, or ``GSSAPI`` with the process's
            ticket cache.
        service: Name of the servers' Kerberos principal.
    """

    mechanism: str = "DIGEST-MD5"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    service: str = "zookeeper"

    @property
    def refusal(self) -> str:
        """What it means when the servers refuse the credentials."""
        if self.username is None:
            return f"ZooKeeper refused the credentials ({self.mechanism})"
        return (
            f"ZooKeeper refused the credentials of user {self.username!r} ({self.mechanism}): see "
            "zookeeper_sasl_username and zookeeper_sasl_password_file, which is read when Regent "
            "starts, and the servers' JAAS configuration"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How to encrypt. All files are PEM.

    Attributes:
        ca_file: Certificate authorities to trust; None: the system's.
        certificate_file: The client's certificate, for servers that ask for one.
        key_file: Its private key.
        verify_hostname: Whether a server's certificate must name the host that was asked for.
    """

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_hostname: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """How to reach ZooKeeper, and how long to wait for it.

    Attributes:
        hosts: Servers as ``host:port``; tried in random order.
        chroot: Path below which everything happens, such as ``/kafka``; empty for the root.
        create_chroot: Whether to create a chroot that is missing. Otherwise it is as if there was
            nothing below it.
        session_timeout_ms: Wanted session timeout; the servers may grant another one.
        connect_timeout_ms: The longest to wait for one server to accept a connection, and again
            to answer the session request, before the next one is tried.
        unavailable_after_ms: How long a call waits for a lost connection to come back before it
            fails; None: the session timeout.
        jute_max_buffer: ``jute.maxbuffer`` of the servers, in bytes. A larger request is not sent.
        set_acl: Create nodes as Kafka does with ``zookeeper.set.acl=true``: all rights for the
            authenticated identity, reading for everyone (not of ``paths.SENSITIVE_PATHS``).
    """

    hosts: tuple[str, ...]
    chroot: str = ""
    create_chroot: bool = False
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    connect_timeout_ms: int = DEFAULT_CONNECT_TIMEOUT_MS
    unavailable_after_ms: int | None = None
    jute_max_buffer: int = DEFAULT_JUTE_MAX_BUFFER
    set_acl: bool = False
    sasl: SaslSettings | None = None
    tls: TlsSettings | None = None

    @property
    def bulk_request_bytes(self) -> int:
        """How large a request of many parts grows. Half of what servers take is plenty: beyond some
        hundred kilobytes a request gets no cheaper by the part."""
        return min(self.jute_max_buffer, DEFAULT_JUTE_MAX_BUFFER) // 2

    @property
    def refused_credentials(self) -> str:
        """What it means when the servers refuse to authenticate us."""
        return "ZooKeeper refused the credentials" if self.sasl is None else self.sasl.refusal

    @property
    def unavailable_after_s(self) -> float:
        """How long a call waits for a lost connection, in seconds."""
        bound_ms = self.unavailable_after_ms
        return (self.session_timeout_ms if bound_ms is None else bound_ms) / 1000

    def validate(self) -> None:
        """Raise now what would otherwise fail in kazoo's connection thread, again and again.

        Raises:
            ConfigurationError: If a number makes no sense, or SASL is asked for without its
                library.
        """
        if min(self.session_timeout_ms, self.connect_timeout_ms) <= 0:
            raise ConfigurationError("ZooKeeper timeouts must be above zero milliseconds")
        if self.jute_max_buffer < MIN_JUTE_MAX_BUFFER:
            raise ConfigurationError(
                f"a jute.maxbuffer of {self.jute_max_buffer} bytes cannot hold the nodes of a "
                "Kafka cluster; set what the ZooKeeper servers have, at least "
                f"{MIN_JUTE_MAX_BUFFER}"
            )
        if self.sasl is not None and find_spec("puresasl") is None:
            raise ConfigurationError(
                "SASL for ZooKeeper needs the package pure-sasl; install kazoo[sasl]"
            )


def parse_connect_string(text: str) -> tuple[tuple[str, ...], str]:
    """Hosts and chroot of a connect string as Kafka's ``zookeeper.connect`` has it.

    Args:
        text: ``host1:port1,host2:port2/chroot``. A missing port is 2181. An IPv6 address stands in
            brackets.

    Returns:
        The hosts, each with a port, and the chroot, which is empty or starts with a slash and does
        not end in one.

    Raises:
        ConfigurationError: If a host or a port is missing or wrong, or servers follow the chroot.
    """
    servers, slash, path = text.strip().partition("/")
    chroot = (slash + path).rstrip("/")
    if "//" in chroot or any(part in (".", "..") for part in chroot.split("/")):
        raise ConfigurationError(f"{chroot!r} is not a path in ZooKeeper")
    if _SERVER_AGAIN.search(chroot):
        raise ConfigurationError(
            f"{text!r} has servers after the chroot, which ends the list of servers: write "
            "host:port,host:port/path, with one path for all"
        )
    return tuple(_host(server.strip(), text) for server in servers.split(",")), chroot


def _host(server: str, connect_string: str) -> str:
    host, colon, port = server.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = server, str(DEFAULT_PORT)
    if not _is_host(host):
        raise ConfigurationError(
            f"{connect_string!r} is not a ZooKeeper connect string: {host!r} is no host; write "
            "host:port,host:port/path, and an IPv6 address in brackets"
        )
    if not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65536:
        raise ConfigurationError(f"{port!r} in {connect_string!r} is not a port")
    return f"{host}:{port}"


def _is_host(text: str) -> bool:
    if not (text.startswith("[") and text.endswith("]")):
        return bool(text) and not _NO_HOST.search(text)
    try:
        IPv6Address(text[1:-1])
    except AddressValueError:
        return False
    return True
