"""How to reach ZooKeeper and the brokers, made of the settings of the process."""

from __future__ import annotations

from pathlib import Path

from regent.files.small_files import read_small
from regent.model.errors import ConfigurationError
from regent.network.settings import ChannelSettings
from regent.network.tls import tls_to_brokers
from regent.protocol.api_versions import (
    LAST_WITH_ZOOKEEPER,
    ProtocolVersion,
    parse_protocol_version,
)
from regent.protocol.sasl import SaslCredentials
from regent.settings import Settings
from regent.zookeeper.settings import (
    SaslSettings,
    TlsSettings,
    ZooKeeperSettings,
    parse_connect_string,
)
from regent.zookeeper.tls import tls_context


def zookeeper_settings(settings: Settings) -> ZooKeeperSettings:
    """The ZooKeeper client's part of the settings.

    Raises:
        ConfigurationError: The connect string is malformed, or a file cannot be used.
    """
    hosts, chroot = parse_connect_string(settings.zookeeper)
    sasl = tls = None
    if settings.zookeeper_sasl_username is not None:
        sasl = SaslSettings(
            username=settings.zookeeper_sasl_username,
            password=_secret("zookeeper_sasl_password_file", settings.zookeeper_sasl_password_file),
        )
    if settings.zookeeper_tls:
        tls = TlsSettings(
            ca_file=_text(settings.zookeeper_tls_ca_file),
            certificate_file=_text(settings.zookeeper_tls_certificate_file),
            key_file=_text(settings.zookeeper_tls_key_file),
        )
        tls_context(tls)  # to find out now whether the files are good
    return ZooKeeperSettings(
        hosts=hosts,
        chroot=chroot,
        create_chroot=settings.missing_cluster == "create",
        session_timeout_ms=settings.zookeeper_session_timeout_ms,
        connect_timeout_ms=settings.zookeeper_connect_timeout_ms,
        jute_max_buffer=settings.zookeeper_jute_max_buffer,
        set_acl=settings.zookeeper_set_acl,
        sasl=sasl,
        tls=tls,
    )


def channel_settings(settings: Settings) -> ChannelSettings:
    """The broker channels' part of the settings.

    Raises:
        ConfigurationError: A file cannot be used.
    """
    tls = sasl = None
    if settings.broker_tls:
        tls = tls_to_brokers(
            authorities=settings.broker_tls_ca_file,
            certificate=settings.broker_tls_certificate_file,
            key=settings.broker_tls_key_file,
        )
    if settings.broker_sasl_username is not None:
        sasl = SaslCredentials(
            settings.broker_sasl_mechanism,
            settings.broker_sasl_username,
            _secret("broker_sasl_password_file", settings.broker_sasl_password_file),
        )
    return ChannelSettings(
        listener=settings.inter_broker_listener,
        tls=tls,
        sasl=sasl,
        protocol_version=protocol_version(settings),
        response_timeout=settings.broker_request_timeout_ms / 1000,
        protocol_version_wait=1.0,
    )


def protocol_version(settings: Settings) -> ProtocolVersion | None:
    """The inter.broker.protocol.version of the settings, if they name one.

    Raises:
        ConfigurationError: No broker with ZooKeeper has such a version.
    """
    if settings.inter_broker_protocol is None:
        return None
    version = parse_protocol_version(settings.inter_broker_protocol)
    if version[:2] > LAST_WITH_ZOOKEEPER:
        raise ConfigurationError(
            f"inter_broker_protocol {settings.inter_broker_protocol}: the last version of brokers "
            "with ZooKeeper is 3.9"
        )
    return version


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _secret(setting: str, file: Path | None) -> str:
    if file is None:
        raise ConfigurationError(f"{setting} is missing: name the file with the user's password")
    try:
        return read_small(file).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{setting} cannot be read: {error}") from error
