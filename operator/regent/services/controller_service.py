"""The controller half of the process: its thread, its loop, and everything that lives in them.

A loop of its own, so that no amount of work on custom resources delays an answer to a broker, and
so that the end of the other loop does not cancel the hand-over. The outside meets it as
:class:`~regent.runtime.ports.ControllerPort` only.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus

from regent.admin.commands import Outcome
from regent.controller import events as e
from regent.controller.brokers.announcement import listeners_not_served
from regent.controller.commands import Command
from regent.controller.config import ControllerConfig
from regent.controller.controller_state import ControllerState
from regent.controller.view import ClusterView
from regent.model.active_regent import ActiveRegent
from regent.observability.http import JsonAnswer
from regent.observability.metrics import ControllerGauges, EventMetrics
from regent.runtime.ports import Connect, Serve
from regent.runtime.state_change_report import Reach, state_change_report
from regent.services.controller_loop import ControllerLoop, ReplicaSettings
from regent.services.service_thread import ServiceThread
from regent.standby.status import StandbyStatus

STUCK_AFTER_S = 120.0
"""An event that takes longer than this means that the loop is dead. A failover of a very large
cluster takes seconds, a ZooKeeper outage ends an event after the session timeout."""

REST_FACTOR = 9.0
"""After each explanation of a topic the next one waits so many times as long as that took: whoever
asks, they take a tenth of the loop's time."""

REST_MAX_S = 2.0
"""Shorter than anybody waits who asks."""

_NO_SESSION = "no ZooKeeper session"
_LOADING = "the standby's cache is being loaded for the first time"


class ControllerService(ServiceThread):
    """Runs the controller in a thread.

    Implements :class:`~regent.runtime.ports.ControllerPort` and the statistics that metrics read;
    those methods may be called from any thread.

    Args:
        connect: Makes the connections to ZooKeeper and to the brokers.
        serve: Makes the endpoint that brokers and clients ask; None: there is none.
        warm_standby: Whether to keep the standby's cache: :mod:`regent.runtime.standby_keeper`.
        replicas: How replicas know each other: :mod:`regent.runtime.replica_keeper`; None: not.
    """

    def __init__(
        self,
        *,
        config: ControllerConfig,
        connect: Connect,
        metrics: EventMetrics,
        serve: Serve | None = None,
        warm_standby: bool = False,
        replicas: ReplicaSettings | None = None,
    ) -> None:
        super().__init__("controller")
        self._config = config
        self._connect = connect
        self._warm_standby = warm_standby
        self._replicas = replicas
        self._serve = serve
        self._metrics = metrics
        self._parts: ControllerLoop | None = None
        self._explains_again_at = float("-inf")
        self._listeners: list[Callable[[frozenset[str] | None], None]] = []
        self._eligibility_listeners: list[Callable[[bool], None]] = []

    # ControllerPort

    @property
    def view(self) -> ClusterView:
        return ClusterView() if self._parts is None else self._parts.publisher.view

    def subscribe(self, listener: Callable[[frozenset[str] | None], None]) -> None:
        """See :class:`~regent.runtime.ports.ControllerPort`."""
        self._listeners.append(listener)

    def on_eligibility(self, listener: Callable[[bool], None]) -> None:
        """Call ``listener`` in the controller's thread whenever this process becomes the elected
        replica of Regent, or ceases to be. To be called before :meth:`start`."""
        self._eligibility_listeners.append(listener)

    # Statistics and probes

    @property
    def gauges(self) -> ControllerGauges:
        return ControllerGauges() if self._parts is None else self._parts.gauges

    @property
    def state(self) -> ControllerState:
        return ControllerState.IDLE if self._parts is None else self._parts.manager.state

    @property
    def queue_size(self) -> int:
        return 0 if self._parts is None else self._parts.manager.queue_size

    @property
    def channel_queue_sizes(self) -> Mapping[int, int]:
        return {} if self._parts is None else self._parts.channel_queue_sizes

    @property
    def unreached_broker_count(self) -> int:
        """Of the controller: a standby connects as well, and has nobody to inform of anything."""
        return len(self._unreached()) if self.view.is_active else 0

    @property
    def is_eligible(self) -> bool:
        return self._parts is not None and self._parts.controller.life.is_eligible

    @property
    def has_session(self) -> bool:
        """Whether there is a session with ZooKeeper that can be trusted."""
        return self._parts is not None and not self._parts.connections.is_fenced()

    @property
    def standby(self) -> StandbyStatus | None:
        """How far the copy of the cluster's state is good; None if none is kept."""
        keeper = None if self._parts is None else self._parts.standby
        return None if keeper is None else keeper.status

    @property
    def suspicions(self) -> Mapping[str, int]:
        """How often other replicas were suspected, by reason."""
        keeper = None if self._parts is None else self._parts.replicas
        return {} if keeper is None else keeper.suspicions

    @property
    def unheard_replicas(self) -> int:
        """How many other replicas are registered and do not answer, without being suspected."""
        keeper = None if self._parts is None else self._parts.replicas
        return 0 if keeper is None else keeper.unheard

    def liveness_problem(self) -> str | None:
        """Why only a restart helps, or None."""
        if self.has_ended:
            return "the controller thread has ended"
        defect = None if self._parts is None else self._parts.defect()
        if defect is not None:
            return defect
        busy_since = None if self._parts is None else self._parts.manager.busy_since
        if busy_since is not None and time.monotonic() - busy_since > STUCK_AFTER_S:
            return f"the controller has been at one event for more than {STUCK_AFTER_S:.0f} s"
        return None

    def readiness_problem(self) -> str | None:
        """Why this process could neither be nor become the controller now, or None. One that keeps
        a warm standby waits for it once: a rolling update goes on to the replica that leads when
        another one can take over quickly."""
        problem = self.why_inactive()
        if problem == _NO_SESSION and self._parts is not None:
            why = self._parts.connections.session_problem()
            return problem if why is None else f"{problem}: {why}"
        standby = self.standby
        if problem is None and standby is not None and not self.view.is_active:
            return _LOADING if standby.is_first_load_awaited else None
        return problem

    def why_inactive(self) -> str | None:
        """The same in words that stay the same from attempt to attempt: they go into the status of
        every resource."""
        problem = self.liveness_problem()
        if problem is None and (self._parts is None or self._parts.connections.is_fenced()):
            problem = _NO_SESSION
        return problem or self._refusal()

    def _refusal(self) -> str | None:
        """Why this process does not become the controller though ZooKeeper answers, or None."""
        if self._parts is None:
            return None
        return self._parts.controller.life.refusal or self._parts.connections.election_problem()

    def status(self) -> dict[str, object]:
        """For ``/status``."""
        view = self.view
        return {
            "controllerId": self._config.controller_id,
            "isActive": view.is_active,
            "isEligible": self.is_eligible,
            "activeControllerId": view.controller_id,
            "activeRegent": self._active_regent(),
            "clusterId": None if self._parts is None else self._parts.controller.life.cluster_id,
            "controllerEpoch": view.controller_epoch,
            "state": self.state.name,
            "refusal": self._refusal(),
            "endpoint": self._endpoint_status(),
            "shuttingDownBrokers": list(view.shutting_down),
            "warmStandby": None if self.standby is None else self.standby.report(),
            "replicas": None
            if self._parts is None or self._parts.replicas is None
            else self._parts.replicas.status(),
            "eventQueueSize": self.queue_size,
            "channelQueueSizes": {str(b): size for b, size in self.channel_queue_sizes.items()},
            "zooKeeperProblem": None
            if self._parts is None
            else self._parts.connections.session_problem(),
            "unreachedBrokers": self._unreached(),
            "unreadableTopics": dict(view.unreadable_topics),
            **self._refusals(),
            **self._unassigned(),
        }

    def _active_regent(self) -> dict[str, object] | None:
        """This Regent or the other one that is the controller, and what it serves."""
        view, config = self.view, self._config
        own = ActiveRegent(config.controller_id, config.resources) if view.is_active else None
        regent = own or view.active_regent
        return None if regent is None else regent.report()

    def _endpoint_status(self) -> dict[str, object] | None:
        served = self._config.served
        if not served:
            return None
        endpoint = None if self._parts is None else self._parts.endpoint
        return {
            "served": {protocol: f"{a.host}:{a.port}" for protocol, a in served.items()},
            "servedListeners": {
                name: f"{a.host}:{a.port}" for name, a in self._config.listener_addresses.items()
            },
            "listenersNotServed": listeners_not_served(self.view.brokers, served),
            "problem": None if endpoint is None else endpoint.problem(),
            "refusedPeers": [] if endpoint is None else list(endpoint.refused_peers()),
        }

    def remark(self) -> str | None:
        """What is worth knowing though this process could be, or is, the controller; or None."""
        parts = self._parts
        failed = None if parts is None else parts.parts.problem()
        endpoint = None if parts is None else parts.endpoint
        unserved = None if endpoint is None else endpoint.problem()
        return "; ".join(each for each in (failed, self._unserved(), unserved) if each) or None

    def _unserved(self) -> str | None:
        """Who cannot ask the controller."""
        served = self._config.served
        missing = listeners_not_served(self.view.brokers, served) if served else {}
        if not missing:
            return None
        named = ", ".join(f"{name} ({protocol})" for name, protocol in missing.items())
        return (
            f"who uses the listeners {named} cannot ask the controller: the endpoint serves "
            f"{', '.join(served)}"
        )

    async def state_changes(self, topic: str, partition: int | None) -> JsonAnswer:
        """For ``/why``. May be awaited in any event loop.

        The answer is made in the controller's loop, between two steps of what it is doing: it waits
        as long as a step takes, and as others who ask have cost. Whoever stops waiting costs the
        controller nothing more.
        """
        future: concurrent.futures.Future[JsonAnswer] = concurrent.futures.Future()

        def answer() -> None:
            if future.cancelled():
                return
            if self._loop is not None and self._loop.time() < self._explains_again_at:
                self._loop.call_at(self._explains_again_at, answer)
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._explained(topic, partition))
                except Exception as error:  # noqa: BLE001 - it is whoever asked who is to fail
                    future.set_exception(error)

        if self._loop is None or self.has_ended or self._loop.is_closed():
            return self._state_changes(topic, partition)  # no loop: nothing is known, or changes
        with contextlib.suppress(RuntimeError):  # it has just ended: nobody answers
            self._loop.call_soon_threadsafe(answer)
        return await asyncio.wrap_future(future)

    def _explained(self, topic: str, partition: int | None) -> JsonAnswer:
        began = time.monotonic()
        answer = self._state_changes(topic, partition)
        if self._loop is not None:
            rest_s = min((time.monotonic() - began) * REST_FACTOR, REST_MAX_S)
            self._explains_again_at = self._loop.time() + rest_s
        return answer

    def _state_changes(self, topic: str, partition: int | None) -> JsonAnswer:
        life = None if self._parts is None else self._parts.controller.life
        active = None if life is None or self.has_ended else life.active
        identity: dict[str, object] = {
            "controllerId": self._config.controller_id,
            "isActive": active is not None,
            "clusterId": None if life is None else life.cluster_id,
        }
        if active is None:
            problem = "this Regent is not the controller"
            return JsonAnswer(HTTPStatus.SERVICE_UNAVAILABLE, identity | {"problem": problem})
        report = state_change_report(active.context, topic, partition, self._reach())
        if report is None:
            what = topic if partition is None else f"{topic}-{partition}"
            problem = f"there is no {'topic' if partition is None else 'partition'} {what!r}"
            return JsonAnswer(HTTPStatus.NOT_FOUND, identity | {"problem": problem})
        return JsonAnswer(HTTPStatus.OK, identity | {"problem": None} | report)

    def _reach(self) -> Reach:
        if self._parts is None:
            return Reach()
        connections = self._parts.connections
        return Reach(connections.uninformed(), connections.channel_problems())

    def _unreached(self) -> dict[str, str]:
        parts = self._parts
        problems = {} if parts is None else parts.connections.channel_problems()
        return {str(broker_id): problem for broker_id, problem in problems.items()}

    def _refusals(self) -> dict[str, object]:
        parts = self._parts
        return {
            "refusedReplicas": {
                "count": self.gauges.refused_replicas_count,
                "sample": [] if parts is None else [r._asdict() for r in parts.refused_replicas],
            },
            "refusedMetadata": {}
            if parts is None
            else {str(b): error for b, error in parts.refused_metadata.items()},
        }

    def _unassigned(self) -> dict[str, object]:
        found = () if self._parts is None else self._parts.unassigned_replicas
        sample = [replica._asdict() for replica in found]
        count = self.gauges.unassigned_replicas_count
        return {"unassignedReplicas": {"count": count, "sample": sample}}

    # The controller's thread

    def _take(
        self, commands: tuple[Command, ...], reply: Callable[[Sequence[Outcome]], None]
    ) -> None:
        self._put(e.commands_received(commands, reply_to=reply))

    def _put(self, event: e.ControllerEvent) -> None:
        if self._parts is not None:
            self._parts.manager.put(event)

    async def _live(self, stop: asyncio.Event) -> None:
        """Be the controller, or wait to become it; hand ``/controller`` back at the end."""
        parts = self._parts = ControllerLoop(
            config=self._config,
            connect=self._connect,
            serve=self._serve,
            metrics=self._metrics,
            warm_standby=self._warm_standby,
            replicas=self._replicas,
        )
        parts.eligibility_listeners = self._eligibility_listeners
        for listener in self._listeners:
            parts.publisher.subscribe(listener)
        self._listeners = parts.publisher.listeners
        self._begun()
        await parts.run_until(stop)
