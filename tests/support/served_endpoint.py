"""The endpoint of a controller in the process of a test, on a socket."""

from __future__ import annotations

from regent.endpoint.acl_cache import AclCache
from regent.endpoint.authorization import Authorizer, AuthorizerKind
from regent.endpoint.broker_trust import BrokerTrust, TrustedAsBrokers
from regent.endpoint.dispatcher import EndpointDispatcher, served_apis
from regent.model.acls import AclRules
from regent.network.kafka_server import KafkaServer
from regent.network.server_settings import ServerSettings
from regent.runtime.ports import ControllerRequests, ZooKeeperPort
from regent.server_credentials import ServerCredentials


class ServedEndpoint:
    """Implements :class:`~regent.runtime.ports.EndpointPort`. Pass :meth:`serve` to the controller.

    Attributes:
        port: Where it listens, once the controller has started.
    """

    def __init__(
        self,
        settings: ServerSettings | None = None,
        *,
        kind: AuthorizerKind = AuthorizerKind.DETECT,
        rules: AclRules | None = None,
    ) -> None:
        self.port = 0
        self._settings = settings or ServerSettings()
        self._kind = kind
        self._rules = rules or AclRules()
        self._server: KafkaServer | None = None

    def serve(self, controller: ControllerRequests, zookeeper: ZooKeeperPort) -> ServedEndpoint:
        authorizer = Authorizer(
            kind=self._kind,
            rules=self._rules,
            cache=AclCache(zookeeper),
            view=lambda: controller.view,
        )
        trust = BrokerTrust(
            trusted=TrustedAsBrokers.REGISTERED_BROKERS,
            super_users=self._rules.super_users,
            view=lambda: controller.view,
            is_granted=authorizer.is_cluster_action_granted,
        )
        self._server = KafkaServer(
            self._settings,
            apis=served_apis(),
            dispatcher=EndpointDispatcher(controller, trust, authorizer),
            credentials=ServerCredentials(zookeeper.get_data),
        )
        return self

    async def start(self) -> None:
        assert self._server is not None
        await self._server.start()
        self.port = self._server.port

    async def stop(self) -> None:
        assert self._server is not None
        await self._server.stop()
