"""The endpoint, wired: a server of Kafka's protocol whose requests the controller answers."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from prometheus_client import CollectorRegistry

from regent.endpoint.acl_cache import AclCache
from regent.endpoint.authorization import AclsUnavailableError, Authorizer, AuthorizerKind
from regent.endpoint.broker_trust import BrokerTrust, TrustedAsBrokers
from regent.endpoint.dispatcher import HANDLERS, NODE_HANDLERS, EndpointDispatcher, served_apis
from regent.endpoint.quotas import MutationQuotas
from regent.endpoint.upstream_brokers import UpstreamBrokers
from regent.endpoint.zookeeper_reads import FewReadsAtOnce
from regent.model.acls import AclRules
from regent.model.cluster import Address
from regent.network.kafka_server import KafkaServer
from regent.network.pass_through import NotPassedOnError, PassThrough
from regent.network.refusal_log import RefusalLog
from regent.network.server_settings import ServerSettings
from regent.network.server_tls import server_tls
from regent.observability.server_metrics import ServerCollector
from regent.protocol.serving import Peer
from regent.runtime.ports import ControllerRequests, EndpointPort, ZooKeeperPort
from regent.servers.endpoint_settings import (
    advertised_address,
    advertised_listeners,
    further_listeners,
    server_settings,
    upstream_settings,
)
from regent.servers.server_credentials import ServerCredentials, read_users
from regent.settings import Settings
from regent.sockets.listening import listening_socket

logger = logging.getLogger(__name__)


class KafkaEndpoint:
    """Listens from the beginning, and is served once the controller runs.

    Args:
        settings: Those of the process. They name a port.
        registry: Gets the metrics.

    Raises:
        ConfigurationError: The address cannot be listened on, a file of TLS or of users cannot be
            used, or a setting lacks another one.

    Attributes:
        served: As in :class:`~regent.controller.config.ControllerConfig`.
        listener_addresses: Likewise.
    """

    def __init__(self, settings: Settings, registry: CollectorRegistry) -> None:
        server = server_settings(settings)
        assert server is not None, "no endpoint_port"
        self._settings = settings
        self._registry = registry
        self._server_settings = server
        further = further_listeners(settings)
        _require_usable_files(settings, server)
        with contextlib.ExitStack() as sockets:
            self._socket = sockets.enter_context(
                listening_socket(server.host, server.port, setting="endpoint")
            )
            self._further = {
                listener: sockets.enter_context(
                    listening_socket(*address, setting="endpoint_further_listeners", is_list=True)
                )
                for listener, address in further.items()
            }
            address = advertised_address(settings, _port_of(self._socket))
            self.served: Mapping[str, Address] = MappingProxyType(
                {server.security_protocol: address}
            )
            self.listener_addresses = advertised_listeners(
                settings,
                host=address.host,
                ports={listener: _port_of(each) for listener, each in self._further.items()},
            )
            self._sockets = sockets.pop_all()
        logger.info(
            "Brokers and clients are to use this endpoint",
            extra={
                "advertised": f"{address.host}:{address.port}",
                "advertised_listeners": [
                    f"{listener}://{each.host}:{each.port}"
                    for listener, each in self.listener_addresses.items()
                ],
                "security_protocol": server.security_protocol,
            },
        )

    def close(self) -> None:
        """Listen no more. A server that runs is stopped by what runs it."""
        self._sockets.close()

    def serve(self, requests: ControllerRequests, zookeeper: ZooKeeperPort) -> EndpointPort:
        """Implements :data:`~regent.runtime.ports.Serve`.

        Raises:
            ConfigurationError: A file of TLS or of users cannot be used.
        """
        settings = self._settings
        refusals, reads = RefusalLog(), FewReadsAtOnce(zookeeper)
        authorizer = Authorizer(
            kind=AuthorizerKind(settings.endpoint_authorizer),
            rules=AclRules(
                frozenset(settings.endpoint_super_users),
                settings.endpoint_allow_everyone_if_no_acl_found,
            ),
            cache=AclCache(reads),
            view=lambda: requests.view,
            refuse=refusals.add,
        )
        trust = BrokerTrust(
            trusted=TrustedAsBrokers(settings.endpoint_trusted_as_brokers),
            super_users=settings.endpoint_super_users,
            view=lambda: requests.view,
            is_granted=authorizer.is_cluster_action_granted,
            refuse=refusals.add,
        )
        passed_on = upstream_settings(settings)
        handlers = HANDLERS if passed_on is None else (*HANDLERS, *NODE_HANDLERS)
        dispatcher = EndpointDispatcher(
            requests, trust, authorizer, MutationQuotas(reads), handlers
        )
        server = KafkaServer(
            self._server_settings,
            apis=served_apis(handlers),
            dispatcher=dispatcher,
            admit=dispatcher.admit,
            pass_through=None
            if passed_on is None
            else PassThrough(
                passed_on,
                brokers=UpstreamBrokers(lambda: requests.view),
                depends_on_address=partial(_depends_on_address, authorizer),
                lagging=requests.lagging_brokers,
            ),
            credentials=ServerCredentials(
                reads.get_data, users_file=settings.endpoint_sasl_plain_users_file
            ),
            listening=self._socket,
            further_listening=self._further,
            refusals=refusals,
        )
        self._registry.register(ServerCollector(server.statistics))
        return server


def _require_usable_files(settings: Settings, server: ServerSettings) -> None:
    """Now, as for all other settings. In :meth:`KafkaEndpoint.serve` an error ends the controller's
    thread."""
    if server.tls is not None:
        server_tls(server.tls)
    if settings.endpoint_sasl_plain_users_file is not None:
        read_users(settings.endpoint_sasl_plain_users_file)
    upstream_settings(settings)


def _port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


async def _depends_on_address(authorizer: Authorizer, peer: Peer) -> bool:
    try:
        return await authorizer.depends_on_address(peer)
    except AclsUnavailableError as error:
        raise NotPassedOnError(str(error)) from error
