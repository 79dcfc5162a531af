"""The client half of the process, in place of the controller: its thread, its loop, its probes.

The outside meets it as :class:`~regent.runtime.ports.ControllerPort`, as it does the controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus

from regent.admin.commands import Outcome
from regent.controller.commands import Command
from regent.controller.config import ControllerConfig
from regent.controller.view import ClusterView
from regent.observability.http import JsonAnswer
from regent.runtime.admin_port import AdminRequestsPort
from regent.runtime.ports import Connect
from regent.services.client_loop import ClientLoop
from regent.services.service_thread import ServiceThread

_NO_SESSION = "no ZooKeeper session"


class ClientService(ServiceThread):
    """Follows a cluster that a broker controls, in a thread. Methods may be called from any thread.

    Args:
        connect: Makes the connections to ZooKeeper and to the brokers.
        admin: Makes what asks the broker that is the controller; called in the thread's loop.
    """

    def __init__(
        self,
        *,
        config: ControllerConfig,
        connect: Connect,
        admin: Callable[[], AdminRequestsPort],
    ) -> None:
        super().__init__("client")
        self._config = config
        self._connect = connect
        self._admin = admin
        self._parts: ClientLoop | None = None
        self._listeners: list[Callable[[frozenset[str] | None], None]] = []

    # ControllerPort

    @property
    def view(self) -> ClusterView:
        return ClusterView() if self._parts is None else self._parts.publisher.view

    def subscribe(self, listener: Callable[[frozenset[str] | None], None]) -> None:
        """See :class:`~regent.runtime.ports.ControllerPort`."""
        self._listeners.append(listener)

    def set_serving(self, is_serving: bool) -> None:
        """This process serves resources, or does not any more."""
        if self._loop is not None and self._parts is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._parts.set_serving, is_serving)

    # Probes

    @property
    def has_session(self) -> bool:
        """Whether there is a session with ZooKeeper that can be trusted."""
        return self._parts is not None and not self._parts.connections.is_fenced()

    def liveness_problem(self) -> str | None:
        """Why only a restart helps, or None."""
        if self.has_ended:
            return "the client thread has ended"
        return None if self._parts is None else self._parts.connections.defect()

    def readiness_problem(self) -> str | None:
        """Why resources could not be served here, or None."""
        problem = self.why_inactive()
        if problem == _NO_SESSION and self._parts is not None:
            why = self._parts.connections.session_problem()
            return problem if why is None else f"{problem}: {why}"
        return problem or (None if self.view.is_complete else "the cluster is being read")

    def why_inactive(self) -> str | None:
        """Why the cluster is not known here, in words that stay the same from attempt to attempt:
        they go into the status of every resource."""
        problem = self.liveness_problem()
        if problem is None and (self._parts is None or self._parts.connections.is_fenced()):
            problem = _NO_SESSION
        return problem or self._refusal()

    def _refusal(self) -> str | None:
        """Why the cluster is not served though there is a session, or None."""
        parts = self._parts
        return None if parts is None else parts.steering.refusal or parts.problem

    def remark(self) -> str | None:
        """What is worth knowing though resources could be served here, or None."""
        view = self.view
        failed = None if self._parts is None else self._parts.parts.problem()
        regent = view.active_regent
        can_be_asked = view.controller_id in view.brokers or (
            regent is not None and regent.endpoint is not None
        )
        missing = "no controller can be asked: no partition is reassigned, no leader is elected"
        unasked = missing if view.is_client and not can_be_asked else None
        return "; ".join(each for each in (failed, unasked) if each) or None

    def status(self) -> dict[str, object]:
        """For ``/status``."""
        view = self.view
        regent = view.active_regent
        return {
            "mode": "client",
            "controllerId": self._config.controller_id,
            "isActive": False,
            "activeControllerId": view.controller_id,
            "activeRegent": None if regent is None else regent.report(),
            "clusterId": view.cluster_id,
            "controllerEpoch": view.controller_epoch,
            "isComplete": view.is_complete,
            "unreadableTopics": dict(view.unreadable_topics),
            "refusal": self._refusal(),
            "eventQueueSize": 0 if self._parts is None else self._parts.waiting,
            "channelQueueSizes": {},
            "zooKeeperProblem": None
            if self._parts is None
            else self._parts.connections.session_problem(),
            "unreachedBrokers": {}
            if self._parts is None
            else {
                str(broker_id): problem
                for broker_id, problem in self._parts.connections.channel_problems().items()
            },
        }

    async def state_changes(self, topic: str, partition: int | None) -> JsonAnswer:
        """For ``/why``: only the controller knows."""
        identity: dict[str, object] = {
            "controllerId": self._config.controller_id,
            "isActive": False,
            "clusterId": self.view.cluster_id,
        }
        problem = "this Regent is a client: the broker that is the controller knows why"
        return JsonAnswer(HTTPStatus.SERVICE_UNAVAILABLE, identity | {"problem": problem})

    # The thread

    def _take(
        self, commands: tuple[Command, ...], reply: Callable[[Sequence[Outcome]], None]
    ) -> None:
        assert self._parts is not None, "the loop runs"
        self._parts.submit(commands, reply)

    async def _live(self, stop: asyncio.Event) -> None:
        parts = self._parts = ClientLoop(
            config=self._config, connect=self._connect, admin=self._admin()
        )
        for listener in self._listeners:
            parts.publisher.subscribe(listener)
        self._listeners = parts.publisher.listeners
        self._begun()
        await parts.run_until(stop)
