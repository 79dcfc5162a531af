"""The real controller of a Regent process over a simulated cluster, as the Kubernetes side sees it.

Nothing of the controller is replaced:
:class:`~regent.services.controller_service.ControllerService`, with its thread, event queue,
interpreter and view, runs on connections to a
:class:`~tests.support.simulated_cluster.SimulatedCluster`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from regent.admin.commands import DescribeTopicConfigs, Outcome
from regent.controller.commands import Command
from regent.controller.config import ControllerConfig
from regent.controller.view import ClusterView
from regent.observability.metrics import EventMetrics
from regent.runtime.ports import ConnectionListener, Serve
from regent.services.controller_loop import ReplicaSettings
from regent.services.controller_service import ControllerService
from sandbox import wait_until
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.simulated_connections import SimulatedConnections

CONTROLLER_ID = 1_000_000_001


class LiveController:
    """Implements :class:`~regent.runtime.ports.ControllerPort`. Use it as a context manager.

    Args:
        contends: Whether it contends in the election among the replicas from the beginning; if so,
            entering waits until it is the controller.
        replicas: How it knows other replicas; None: it does not.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        contends: bool = True,
        serve: Serve | None = None,
        warm_standby: bool = False,
        replicas: ReplicaSettings | None = None,
        **config: Any,
    ) -> None:
        self.cluster = cluster
        self.commands: list[Command] = []
        self.batches: list[int] = []
        self._contends = contends
        self._connections: SimulatedConnections | None = None
        self.service = ControllerService(
            config=ControllerConfig(
                **{"controller_id": CONTROLLER_ID, "election_backoff_ms": 50, **config}
            ),
            connect=self._connect,
            metrics=EventMetrics(CollectorRegistry()),
            serve=serve,
            warm_standby=warm_standby,
            replicas=replicas,
        )

    def __enter__(self) -> LiveController:
        self.service.start()
        if self._contends:
            self.wait_until_active()
        return self

    def __exit__(self, *_: object) -> None:
        self.service.stop()

    # ControllerPort

    @property
    def view(self) -> ClusterView:
        return self.service.view

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        self.batches.append(len(commands))
        self.commands.extend(commands)
        return await self.service.submit(commands)

    def subscribe(self, listener: Callable[[frozenset[str] | None], None]) -> None:
        self.service.subscribe(listener)

    @property
    def changes(self) -> list[Command]:
        """The commands submitted so far that are not mere readings."""
        return [c for c in self.commands if not isinstance(c, DescribeTopicConfigs)]

    # Its terms

    def lose_term(self) -> None:
        """Another replica is elected, one that does nothing. Returns when the view says so."""
        self.cluster.call(self.connections.set_may_be_elected, False)
        wait_until(lambda: not self.view.is_active, describe="the controller to resign")

    def begin_term(self) -> None:
        """Contend, be elected and load the cluster."""
        self.cluster.call(self.connections.set_may_be_elected, True)
        self.wait_until_active()

    def expire_session(self) -> None:
        """The ZooKeeper session ends; a new one follows at once, and another term."""
        before = self.view.controller_epoch
        self.cluster.call(self.connections.expire)
        self.wait_until_active(after_epoch=before)

    def wait_until_active(self, *, after_epoch: int = -1) -> None:
        """Wait until this is the controller, under a later epoch, and knows all topics."""
        wait_until(
            lambda: self.view,
            until=lambda view: view.is_complete and view.controller_epoch > after_epoch,
            describe="the controller to be active",
        )

    @property
    def connections(self) -> SimulatedConnections:
        assert self._connections is not None, "the controller has not been started"
        return self._connections

    def _connect(self, listener: ConnectionListener) -> SimulatedConnections:
        self._connections = self.cluster.connect(listener)
        self._connections.may_be_elected = self._contends
        return self._connections
