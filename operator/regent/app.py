"""The composition root: builds everything from the settings, starts it in order, stops it in order.

Start: HTTP endpoint, controller thread, custom resources. Stop: custom resources first, so that
nobody asks for anything more, then the controller, which hands the cluster back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from regent.controller.config import ControllerConfig
from regent.controller_service import ControllerService
from regent.model.errors import ConfigurationError
from regent.network.settings import ChannelSettings
from regent.observability import logs
from regent.observability.http import HttpEndpoint
from regent.observability.metrics import ControllerCollector, EventMetrics
from regent.protocol.api_versions import parse_protocol_version
from regent.protocol.sasl import SaslCredentials
from regent.settings import Settings
from regent.zookeeper.settings import (
    SaslSettings,
    TlsSettings,
    ZooKeeperSettings,
    parse_connect_string,
)
from regent.zookeeper.tls import tls_context

if TYPE_CHECKING:
    from regent.kube.operator import KubeOperator

logger = logging.getLogger(__name__)

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class App:
    """One Regent process.

    Raises:
        ConfigurationError: What the settings name cannot be used: a file, an address to listen on.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        logs.configure(
            level=settings.log_level,
            log_format=settings.log_format,
            state_changes=settings.state_change_log,
        )
        self._term = _Term()
        self._operator: KubeOperator | None = None
        registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        self._controller = ControllerService(
            config=controller_config(settings),
            zookeeper=zookeeper_settings(settings),
            election_path=settings.election_path,
            channels=channel_settings(settings),
            metrics=EventMetrics(registry),
        )
        registry.register(ControllerCollector(self._controller))
        try:
            self._http = HttpEndpoint(
                host=settings.http_host,
                port=settings.http_port,
                registry=registry,
                liveness=self._liveness_problem,
                readiness=self._controller.readiness_problem,
                status=self._controller.status,
            )
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {settings.http_host}:{settings.http_port}: {error}; choose "
                "another http_host or http_port"
            ) from error

    def run(self) -> int:
        """Run until SIGTERM or SIGINT. Returns the exit status."""
        self._http.start()
        logger.info(
            "Regent starts",
            extra={"controller_id": self._settings.controller_id, "http_port": self._http.port},
        )
        try:
            asyncio.run(self._main())
        finally:
            for number in _STOP_SIGNALS:  # it is ending already
                signal.signal(number, signal.SIG_IGN)
            self._http.close()
        if self._controller.failure is not None:
            return 1
        logger.info("Regent has stopped")
        return 0

    async def _main(self) -> None:
        if not self._settings.without_kubernetes:
            # Known before the cluster gets a new controller: it would lose it with every restart.
            from regent.kube.login import login

            await login()
        loop = asyncio.get_running_loop()
        self._controller.on_eligibility(partial(_call_in, loop, self._term.set))
        self._controller.start()
        try:
            await self._until_stopped()
        finally:
            # While this loop still takes the signals: a second one must not end the hand-over.
            await asyncio.to_thread(self._controller.stop)

    async def _until_stopped(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        # A process whose controller thread has died is of no use: end, and be started anew.
        self._controller.on_end(partial(_call_in, loop, stop.set))
        if self._settings.without_kubernetes:
            await stop.wait()
        else:
            await self._serve_resources(stop)

    async def _serve_resources(self, stop: asyncio.Event) -> None:
        """Serve the custom resources in each term as the elected replica.

        The others must keep quiet: two writers of one status would never come to rest.
        """
        from regent.kube.operator import run_kube
        from regent.kube.settings import KubeSettings

        settings = KubeSettings(namespaces=self._settings.namespaces)
        while not stop.is_set():
            await _first_of(self._term.begun, stop)
            if stop.is_set():
                return
            term_over = asyncio.Event()
            ending = asyncio.create_task(_relay(_first_of(self._term.over, stop), term_over))
            try:
                await run_kube(
                    self._controller,
                    settings,
                    stop_event=term_over,
                    on_signal=stop.set,
                    on_operator=self._set_operator,
                )
            finally:
                self._operator = None
                ending.cancel()

    def _set_operator(self, operator: KubeOperator) -> None:
        self._operator = operator

    def _liveness_problem(self) -> str | None:
        problem = self._controller.liveness_problem()
        operator = self._operator
        if problem is None and operator is not None:
            try:
                operator.check_queue()
            except RuntimeError as error:
                problem = str(error)
        return problem


class _Term:
    """Whether this process is the elected replica, as events of the main loop."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.over = asyncio.Event()

    def set(self, is_eligible: bool) -> None:
        """Called in the main loop."""
        if is_eligible:
            self.over.clear()
            self.begun.set()
        else:
            self.begun.clear()
            self.over.set()


async def _first_of(*events: asyncio.Event) -> None:
    """Return when one of the events is set."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


async def _relay(condition: Awaitable[None], event: asyncio.Event) -> None:
    await condition
    event.set()


def _call_in(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: Any) -> None:
    """Call in a loop from another thread; a loop that has ended has nobody left to be told."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)


def controller_config(settings: Settings) -> ControllerConfig:
    """The core's part of the settings."""
    return ControllerConfig(
        controller_id=settings.controller_id,
        unclean_leader_election_enable=settings.unclean_leader_election_enable,
        delete_topic_enable=settings.delete_topic_enable,
        default_replication_factor=settings.default_replication_factor,
        jute_max_buffer=settings.zookeeper_jute_max_buffer,
    )


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
    context = sasl = None
    if settings.broker_tls:
        context = _broker_tls_context(settings)
    if settings.broker_sasl_username is not None:
        sasl = SaslCredentials(
            settings.broker_sasl_mechanism,
            settings.broker_sasl_username,
            _secret("broker_sasl_password_file", settings.broker_sasl_password_file),
        )
    protocol = settings.inter_broker_protocol
    return ChannelSettings(
        listener=settings.inter_broker_listener,
        ssl_context=context,
        sasl=sasl,
        protocol_version=None if protocol is None else parse_protocol_version(protocol),
        response_timeout=settings.broker_request_timeout_ms / 1000,
        protocol_version_wait=1.0,
    )


def _broker_tls_context(settings: Settings) -> ssl.SSLContext:
    files = (
        settings.broker_tls_ca_file,
        settings.broker_tls_certificate_file,
        settings.broker_tls_key_file,
    )
    authorities, certificate, key = files
    try:
        context = ssl.create_default_context(cafile=_text(authorities))
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError included
        named = ", ".join(str(file) for file in files if file is not None)
        raise ConfigurationError(f"TLS for brokers: {error} ({named})") from error
    return context


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _secret(setting: str, file: Path | None) -> str:
    if file is None:
        raise ConfigurationError(f"{setting} is missing: name the file with the user's password")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{setting} cannot be read: {error}") from error
