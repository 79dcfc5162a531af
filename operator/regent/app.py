"""The composition root: builds everything from the settings, starts it in order, stops it in order.

Start: the sockets of both endpoints, controller thread, custom resources. Stop: custom resources
first, so that no further commands arrive, then the controller, which hands the cluster back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from regent.connections.client_settings import (
    channel_settings,
    protocol_version,
    zookeeper_settings,
)
from regent.connections.real_connections import real_connections
from regent.controller.config import ControllerConfig, MissingCluster
from regent.kube.health import KubeHealth
from regent.kube.health_metrics import KubeHealthCollector
from regent.kube.metrics import ResourceMetrics, ServingCollector, ServingState
from regent.model.active_regent import ServedResources
from regent.model.cluster import Address
from regent.model.errors import ConfigurationError
from regent.model.topic_name_rules import TopicNameRules
from regent.network.admin_requests import AdminRequests
from regent.network.broker_questions import BrokerQuestions
from regent.network.log_dirs import ask_log_dirs
from regent.observability import logs
from regent.observability.http import HttpEndpoint
from regent.observability.log_metrics import LogCollector
from regent.observability.metrics import ControllerCollector, EventMetrics
from regent.observability.standby_metrics import StandbyCollector
from regent.planning.spark_jobs import SparkPolicy
from regent.reconcile.selection import ClusterSelection
from regent.runtime.collector import settle
from regent.runtime.ports import Connect
from regent.servers.kafka_endpoint import KafkaEndpoint
from regent.servers.plan_exchange import open_exchange
from regent.services.client_service import ClientService
from regent.services.controller_service import ControllerService
from regent.services.main_loop import MainLoop
from regent.services.replica_settings import own_pause_s, replica_settings
from regent.settings import Settings
from regent.settings.environment import unknown_variables
from regent.sockets.listening import listening_socket
from regent.sockets.open_files import allow_open_files

if TYPE_CHECKING:
    from regent.kube.settings import KubeSettings
    from regent.kube.side import KubernetesSide
    from regent.servers.eviction_endpoint import EvictionEndpoint

logger = logging.getLogger(__name__)

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""SIGHUP: the terminal that it was started in has ended. SIGQUIT: somebody has pressed Ctrl and
backslash, or wants the thread dump of a JVM. Both would end the process at once."""

_IGNORED_SIGNALS = (
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
)
"""They mean nothing here, and would end the process without a hand-over."""


class App:
    """One Regent process.

    Raises:
        ConfigurationError: What the settings name cannot be used: a file, an address to listen on.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        allow_open_files()
        log_handler = logs.configure(
            level=settings.log_level,
            log_format=settings.log_format,
            state_changes=settings.state_change_log,
        )
        self._kubernetes: KubernetesSide | None = None
        self._ignored: set[signal.Signals] = set()
        self._exchange = None if settings.without_kubernetes else open_exchange(settings)
        registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        registry.register(LogCollector(log_handler))
        if settings.mode == "client":
            self._controller: ControllerService | ClientService = client_service(settings)
        else:
            self._controller = _controller_service(settings, registry)
        self._evictions = _eviction_endpoint(settings)
        self._kube_health = KubeHealth()
        registry.register(KubeHealthCollector(self._kube_health))
        self._resource_metrics = ResourceMetrics(registry)
        registry.register(ServingCollector(self._serving_state))
        self._http = HttpEndpoint(
            listening=listening_socket(settings.http_host, settings.http_port, setting="http"),
            registry=registry,
            liveness=self._liveness_problem,
            readiness=self._readiness_problem,
            remark=self._remark,
            status=self._status,
            state_changes=self._controller.state_changes,
        )

    def run(self) -> int:
        """Run until one of the signals to stop. Returns the exit status."""
        logger.info(
            "Regent starts",
            extra={"controller_id": self._settings.controller_id, "http_port": self._http.port},
        )
        for name, similar in unknown_variables(os.environ).items():
            logger.warning(
                "An environment variable is ignored: it is no setting",
                extra={"variable": name, "similar": similar},
            )
        try:
            with asyncio.Runner(loop_factory=MainLoop) as runner:
                runner.run(self._main())
        finally:
            self._http.close()
            if self._exchange is not None:
                self._exchange.close()
            if self._evictions is not None:
                self._evictions.close()
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
        stop = asyncio.Event()
        for number in _STOP_SIGNALS:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup: it is to outlive its terminal
            loop.add_signal_handler(number, stop.set)
        for number in _IGNORED_SIGNALS:
            loop.add_signal_handler(number, self._ignore, number)
        # Not before: whoever gets an answer may send a signal, and expect an end in order.
        self._http.start()
        kubernetes = self._kubernetes = self._kubernetes_side(on_signal=stop.set)
        if kubernetes is not None and isinstance(self._controller, ControllerService):
            self._controller.on_eligibility(partial(_call_in, loop, kubernetes.set_elected))
        settle()
        self._controller.start()
        try:
            await self._until_stopped(stop)
        finally:
            # While this loop still takes the signals: a second one must not end the hand-over.
            await self._controller.stopped()

    def _ignore(self, number: signal.Signals) -> None:
        """Say once of each that it is ignored."""
        if number not in self._ignored:
            self._ignored.add(number)
            logger.info("Signal ignored: SIGTERM ends Regent", extra={"signal_name": number.name})

    async def _until_stopped(self, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        # A process whose controller thread has died is of no use: end, and be restarted.
        self._controller.on_end(partial(_call_in, loop, stop.set))
        async with contextlib.AsyncExitStack() as stack:
            if self._exchange is not None:
                await stack.enter_async_context(self._exchange.served())
            if self._kubernetes is None:
                await stop.wait()
                return
            async with asyncio.TaskGroup() as group:
                group.create_task(self._kubernetes.run(stop))
                if self._evictions is not None:
                    group.create_task(self._evictions.run(stop, self._kube_health))

    def _kubernetes_side(self, *, on_signal: Callable[[], None]) -> KubernetesSide | None:
        if self._settings.without_kubernetes:
            return None
        from regent.kube.planner_process import PlannerProcess
        from regent.kube.rebalance_planning import PlanningTools, SparkTools
        from regent.kube.side import KubernetesSide

        exchange = self._exchange
        return KubernetesSide(
            self._controller,
            _kube_settings(self._settings),
            why_inactive=self._controller.why_inactive,
            on_signal=on_signal,
            health=self._kube_health,
            metrics=self._resource_metrics,
            planning=PlanningTools(
                ask_log_dirs=partial(ask_log_dirs, settings=channel_settings(self._settings)),
                runner=PlannerProcess(
                    timeout_s=self._settings.planner_timeout_s,
                    memory_bytes=self._settings.planner_memory_bytes,
                    plan_bytes=self._settings.planner_exchange_max_bytes,
                ),
                history=self._settings.planner_history,
                spark=None
                if exchange is None
                else SparkTools(
                    exchange=exchange,
                    policy=SparkPolicy(
                        images=self._settings.spark_images,
                        service_accounts=self._settings.spark_service_accounts,
                        workspaces=self._settings.spark_workspaces,
                    ),
                    concurrent_jobs=self._settings.spark_concurrent_jobs,
                ),
            ),
            broker_questions=BrokerQuestions(
                client_id=str(self._settings.controller_id),
                settings=channel_settings(self._settings),
            ),
            on_serving=self._set_serving,
        )

    def _set_serving(self, is_serving: bool) -> None:
        if isinstance(self._controller, ClientService):
            self._controller.set_serving(is_serving)

    def _serving_state(self) -> ServingState:
        kubernetes = self._kubernetes
        state = ServingState() if kubernetes is None else kubernetes.state()
        return state._replace(has_session=self._controller.has_session)

    def _readiness_problem(self) -> str | None:
        return self._controller.readiness_problem() or self._kube_health.problem()

    def _status(self) -> dict[str, object]:
        kubernetes = (
            None
            if self._settings.without_kubernetes
            else {**self._kube_health.status(), "stall": self._stall()}
        )
        return {**self._controller.status(), "kubernetes": kubernetes}

    def _remark(self) -> str | None:
        remarks = (self._controller.remark(), self._kube_health.remark(), self._stall())
        return "; ".join(remark for remark in remarks if remark is not None) or None

    def _stall(self) -> str | None:
        return None if self._kubernetes is None else self._kubernetes.stall()

    def _liveness_problem(self) -> str | None:
        problem = self._controller.liveness_problem()
        if isinstance(self._controller, ControllerService):
            # A restart for the sake of custom resources would cost the cluster its controller.
            return problem
        return problem or self._stall()


def _kube_settings(settings: Settings) -> KubeSettings:
    from regent.kube.settings import KubeSettings
    from regent.servers.eviction_settings import eviction_settings

    return KubeSettings(
        namespaces=settings.namespaces,
        selection=ClusterSelection(name=settings.cluster_name, is_default=settings.default_cluster),
        topic_name_rules=TopicNameRules.parse(settings.topic_name_rules),
        unknown_after_s=settings.status_unknown_after_s,
        lease_namespace=settings.lease_namespace,
        lease_name=settings.lease_name,
        evictions=eviction_settings(settings),
    )


def _served_resources(settings: Settings) -> ServedResources:
    """What others see of them."""
    if settings.without_kubernetes:
        return ServedResources(lease=None)
    return _kube_settings(settings).served_resources


def _eviction_endpoint(settings: Settings) -> EvictionEndpoint | None:
    """Where evictions are asked for; None: nowhere."""
    if settings.eviction_port is None:
        return None
    from regent.servers.eviction_endpoint import EvictionEndpoint

    return EvictionEndpoint(settings, _kube_settings(settings))


def _call_in(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: Any) -> None:
    """Call in a loop from another thread; a loop that has ended needs no call."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)


def _controller_service(settings: Settings, registry: CollectorRegistry) -> ControllerService:
    """The controller, with its metrics."""
    endpoint = None if settings.endpoint_port is None else KafkaEndpoint(settings, registry)
    service = ControllerService(
        config=controller_config(settings)
        if endpoint is None
        else controller_config(
            settings, served=endpoint.served, listener_addresses=endpoint.listener_addresses
        ),
        connect=_connect(settings),
        metrics=EventMetrics(registry),
        serve=None if endpoint is None else endpoint.serve,
        warm_standby=settings.warm_standby,
        replicas=replica_settings(settings),
    )
    registry.register(ControllerCollector(service))
    if settings.warm_standby:
        registry.register(StandbyCollector(service))
    return service


def client_service(settings: Settings) -> ClientService:
    """What stands in its place in client mode.

    Raises:
        ConfigurationError: A setting asks for what only a controller has.
    """
    if settings.without_kubernetes:
        raise ConfigurationError(
            "mode client serves custom resources and nothing else: it cannot be without_kubernetes"
        )
    if settings.endpoint_port is not None:
        raise ConfigurationError(
            f"endpoint_port {settings.endpoint_port}: in mode client nobody asks Regent anything; "
            "leave it out"
        )
    return ClientService(
        config=controller_config(settings),
        connect=_connect(settings),
        admin=partial(
            AdminRequests,
            client_id=str(settings.controller_id),
            settings=channel_settings(settings),
        ),
    )


def _connect(settings: Settings) -> Connect:
    return real_connections(
        controller_id=settings.controller_id,
        zookeeper=zookeeper_settings(settings),
        election_path=settings.election_path,
        channels=channel_settings(settings),
        pause_s=own_pause_s(settings),
    )


def controller_config(
    settings: Settings,
    *,
    served: Mapping[str, Address] = MappingProxyType({}),
    listener_addresses: Mapping[str, Address] = MappingProxyType({}),
) -> ControllerConfig:
    """The core's part of the settings.

    Args:
        settings: Those of the process.
        served: Where brokers and clients are served, by security protocol.
        listener_addresses: The same for listeners that have an address of their own, by their name.

    Raises:
        ConfigurationError: A setting names what cannot be.
    """
    protocol = protocol_version(settings)
    listener = settings.inter_broker_listener
    return ControllerConfig(
        controller_id=settings.controller_id,
        unclean_leader_election_enable=settings.unclean_leader_election_enable,
        auto_leader_rebalance_enable=settings.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_s=settings.leader_imbalance_check_interval_seconds,
        leader_imbalance_per_broker_percentage=settings.leader_imbalance_per_broker_percentage,
        delegation_token_expiry_check_interval_ms=(
            settings.delegation_token_expiry_check_interval_ms
        ),
        delete_topic_enable=settings.delete_topic_enable,
        deletion_waits_for_brokers=settings.deletion_waits_for_brokers,
        missing_cluster=MissingCluster(settings.missing_cluster),
        inter_broker_protocol=None if protocol is None else protocol[:2],
        default_replication_factor=settings.default_replication_factor,
        jute_max_buffer=settings.zookeeper_jute_max_buffer,
        served=served,
        listener_addresses=listener_addresses,
        announced_listeners=frozenset(map(str.upper, settings.endpoint_announced_listeners)),
        inter_broker_listener=None if listener is None else listener.upper(),
        election_path=settings.election_path,
        resources=_served_resources(settings),
        suspicion_backoff_ms=settings.suspicion_backoff_seconds * 1000,
    )
