"""What lives in the controller's loop, wired together: its parts, and who hears of what."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from regent.admin.topic_admin import Chance
from regent.controller import events as e
from regent.controller.config import ControllerConfig
from regent.controller.controller_state import ControllerState
from regent.controller.kafka_controller import KafkaController
from regent.controller.response_events import response_received
from regent.controller.term.watches import SESSION_EVENTS, event_of, events_of_unreported
from regent.controller.view import RefusedReplica, UnassignedReplica
from regent.model.cluster import Broker
from regent.model.topic import new_topic_id
from regent.model.topic_config import BrokerFacts
from regent.observability.logs import StandardControllerLog
from regent.observability.metrics import ControllerGauges, EventMetrics, gauges_of
from regent.protocol.control_requests import ControlResponse, UpdateMetadataResponse
from regent.runtime.collector import Collector
from regent.runtime.controller_event_manager import ControllerEventManager
from regent.runtime.hand_over import hand_over
from regent.runtime.heartbeats_port import HeartbeatsPort
from regent.runtime.interpreter import Interpreter
from regent.runtime.ports import Connect, EndpointPort, Serve
from regent.runtime.queued_requests import QueuedRequests
from regent.runtime.replica_keeper import ReplicaKeeper
from regent.runtime.restarted_parts import COLLECTION, VIEW, RestartedParts
from regent.runtime.standby_keeper import StandbyKeeper
from regent.runtime.topic_waits import TopicWaits
from regent.runtime.view_publisher import ViewPublisher
from regent.zk_data.operations import SessionState, WatchedEvent

MANY_CHANGED: Final = 1_000
"""Partitions. After an event that has changed more, numbers are taken a little later."""

NUMBERS_DELAY_S: Final = 1.0
"""Until brokers have been sent what they wait for, which takes the processor."""

UNINFORMED_CHECK_S: Final = 5.0
"""Between two looks for brokers that are out of reach."""


class ReplicaSettings(NamedTuple):
    """How the replicas of Regent know each other.

    Attributes:
        heartbeats: Listens already.
        own_host: Where others reach this machine; may take a while.
    """

    heartbeats: HeartbeatsPort
    own_host: Callable[[], str]


class ControllerLoop:
    """Everything in the controller's loop, wired together.

    Implements :class:`~regent.runtime.ports.ConnectionListener`.
    """

    def __init__(
        self,
        *,
        config: ControllerConfig,
        connect: Connect,
        serve: Serve | None,
        metrics: EventMetrics,
        warm_standby: bool,
        replicas: ReplicaSettings | None = None,
    ) -> None:
        randomness = random.SystemRandom()
        self.metrics = metrics
        self.parts = RestartedParts()
        self.gauges = ControllerGauges()
        self._numbers_timer: asyncio.TimerHandle | None = None
        self._numbers_are_due = False
        self.channel_queue_sizes: Mapping[int, int] = {}
        self.refused_replicas: tuple[RefusedReplica, ...] = ()
        self.refused_metadata: Mapping[int, str] = {}
        self.unassigned_replicas: tuple[UnassignedReplica, ...] = ()
        self.controller = KafkaController(
            config, log=StandardControllerLog(), chance=Chance(randomness.randrange, new_topic_id)
        )
        collector = self._collector = Collector()
        self.manager = ControllerEventManager(self.controller, observer=self, collector=collector)
        self.publisher = ViewPublisher(
            self.controller,
            are_brokers_informed=self._are_brokers_informed,
            uninformed=lambda: self.connections.uninformed(),
            silent=lambda: self.connections.channels.silent(),
            last_batch=lambda: self.connections.channels.last_batch,
            unanswered=lambda: self.connections.channels.unanswered(),
        )
        self.connections = connect(self)
        self.standby = (
            StandbyKeeper.of(self.connections, collector, self._nodes_differ)
            if warm_standby
            else None
        )
        self.replicas = None if replicas is None else self._replica_keeper(config, replicas)
        self.interpreter = Interpreter(
            zookeeper=self.connections.zookeeper,
            channels=self.connections.channels,
            view=self.publisher,
            enqueue=self.manager.put,
            contend=self._contend,
            queue_up_again=self.connections.queue_up_again,
            standby=self.standby,
            still_absent=None if self.replicas is None else self.replicas.still_absent,
        )
        self.endpoint: EndpointPort | None = None
        self._metadata_acknowledged: Callable[[], None] = lambda: None
        if serve is not None:
            waits = TopicWaits(lambda: self.publisher.view, self.connections.channels)
            self.publisher.subscribe(waits.view_changed, is_immediate=True)
            self._metadata_acknowledged = waits.metadata_acknowledged
            requests = QueuedRequests(self.manager.put, lambda: self.publisher.view, waits)
            self.endpoint = serve(requests, self.connections.zookeeper)
        self.eligibility_listeners: list[Callable[[bool], None]] = []

    def _replica_keeper(self, config: ControllerConfig, replicas: ReplicaSettings) -> ReplicaKeeper:
        return ReplicaKeeper(
            zookeeper=self.connections.zookeeper,
            heartbeats=replicas.heartbeats,
            own_host=replicas.own_host,
            controller_id=config.controller_id,
            election_path=config.election_path,
            enqueue=self.manager.put,
            is_ready=lambda: self.standby is not None and self.standby.status.can_succeed,
            is_active=lambda: self.controller.active is not None,
        )

    def _nodes_differ(self, paths: Sequence[str]) -> None:
        """A self-check of the standby has found these; the controller may have loaded them."""
        for event in events_of_unreported(paths):
            self.manager.put(event)

    def _are_brokers_informed(self) -> bool:
        return not any(self.connections.queue_sizes().values())

    def _contend(self) -> None:
        self.connections.contend()
        if self.replicas is not None:
            self.replicas.contend()

    async def run_until(self, stop: asyncio.Event) -> None:
        """Be a controller, or wait to become one, until ``stop`` is set; then hand over."""
        events = asyncio.create_task(self.manager.run(self.interpreter), name="controller events")
        stopping = asyncio.create_task(stop.wait(), name="stop")
        running = {
            events,
            stopping,
            asyncio.create_task(self.connections.start(), name="session start"),
        }
        for name, part in self._restarted().items():
            running.add(asyncio.create_task(self.parts.run(name, part), name=name))
        try:
            if self.endpoint is not None:
                await self.endpoint.start()
            while not stopping.done():
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            if self.replicas is not None:
                await self.replicas.hand_over(events)
            await hand_over(self.manager, events, self.connections)
            if self.endpoint is not None:
                await self.endpoint.stop()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self.interpreter.close()
            await self.connections.close()
            if self.replicas is not None:
                await self.replicas.close()

    def _restarted(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Parts of which a defect must not cost the cluster its controller, by what they are."""
        parts: dict[str, Callable[[], Awaitable[None]]] = {
            VIEW: self.publisher.run,
            "the look for brokers out of reach": self._watch_uninformed,
            COLLECTION: partial(
                self._collector.collect_at_quiet_moments, lambda: self.manager.is_idle
            ),
        }
        if self.standby is not None:
            parts["the standby's copy"] = self.standby.run
        if self.replicas is not None:
            parts["the knowledge of other replicas"] = self.replicas.run
        return parts

    async def _watch_uninformed(self) -> None:
        """Publish what brokers out of reach do not know, until cancelled."""
        while True:
            await asyncio.sleep(UNINFORMED_CHECK_S)
            self.publisher.look_for_uninformed()

    def defect(self) -> str | None:
        """What can go on only in another process, and why; or None. May be called in any thread."""
        heartbeats = None if self.replicas is None else self.replicas.defect()
        return self.connections.defect() or heartbeats

    # ConnectionListener

    def elected(self) -> None:
        self._set_eligible(True)

    def election_lost(self) -> None:
        self._set_eligible(False)

    def _set_eligible(self, is_eligible: bool) -> None:
        self.manager.put(e.Eligible() if is_eligible else e.NotEligible())
        for listener in self.eligibility_listeners:
            listener(is_eligible)

    def session_changed(self, state: SessionState) -> None:
        if self.standby is not None:
            self.standby.session_changed(state)
        if self.replicas is not None:
            self.replicas.session_changed(state)
        event = SESSION_EVENTS.get(state)
        if event is not None:
            self.manager.put(event)

    def watch_fired(self, watched: WatchedEvent) -> None:
        if self.replicas is not None:
            self.replicas.watch_fired(watched)
        event = event_of(watched)
        if event is not None:
            self.manager.put(event)

    def channel_failed(self, broker: Broker, controller_epoch: int, reason: BaseException) -> None:
        self.manager.put(
            e.ChannelFailed(controller_epoch, broker.broker_id, broker.epoch, repr(reason))
        )

    def protocol_version_changed(self, version: tuple[int, int], controller_epoch: int) -> None:
        self.manager.put(e.InterBrokerProtocolChanged(controller_epoch, version))

    def broker_answered(self, broker: Broker, facts: BrokerFacts) -> None:
        self.manager.put(e.BrokerFactsLearned(broker.epoch, facts))

    def responded(self, response: ControlResponse) -> None:
        if isinstance(response, UpdateMetadataResponse):
            self._metadata_acknowledged()
        self.manager.put(response_received(response))

    # EventObserver

    def processed(self, state: ControllerState, *, queued_ms: float, took_ms: float) -> None:
        """After every event: count it, and take the numbers that metrics show."""
        if self.replicas is not None:
            self.replicas.event_processed()
        self.parts.do(
            "what metrics show",
            lambda: self._take_stock(state, queued_ms=queued_ms, took_ms=took_ms),
        )

    def _take_stock(self, state: ControllerState, *, queued_ms: float, took_ms: float) -> None:
        self.metrics.processed(state, queued_ms=queued_ms, took_ms=took_ms)
        self.connections.channels.answers_read(unread=self.manager.unread)
        self.publisher.look_for_answers()
        active = self.controller.active
        many_changed = (
            active is not None and active.context.cluster.changed_partition_count > MANY_CHANGED
        )
        if many_changed and not self._numbers_are_due:
            self._take_numbers_later()
        else:
            self._take_numbers()

    def _take_numbers_later(self) -> None:
        """The balance of leaders takes a look at all that has changed, and brokers are about to be
        informed of that."""
        if self._numbers_timer is None:
            loop = asyncio.get_running_loop()
            self._numbers_timer = loop.call_later(NUMBERS_DELAY_S, self._take_due_numbers)

    def _take_due_numbers(self) -> None:
        """In the middle of an event partitions may be without a leader for a moment."""
        if self.manager.busy_since is None:
            self._take_numbers()
        else:
            self._numbers_are_due = True

    def _take_numbers(self) -> None:
        self._numbers_are_due = False
        if self._numbers_timer is not None:
            self._numbers_timer.cancel()
            self._numbers_timer = None
        active = self.controller.active
        self.gauges = gauges_of(None if active is None else active.context)
        self.channel_queue_sizes = self.connections.queue_sizes()
        self.refused_replicas = () if active is None else active.context.refusals.sample()
        self.unassigned_replicas = (
            () if active is None else active.context.unassigned_replicas.sample()
        )
        self.refused_metadata = {} if active is None else dict(active.context.refusals.metadata)
