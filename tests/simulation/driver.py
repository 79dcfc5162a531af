"""Runs one Regent process: the unchanged core, its event queue, and its effects one at a time.

Does what ``regent.runtime`` does, without threads and asyncio. Every effect is one step of the
world, so that anything may happen between two of them, and a crash or a lost connection may be
placed before, inside or after each.
"""

from __future__ import annotations

import uuid
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from regent.admin.topic_admin import Chance
from regent.controller import effects as fx
from regent.controller import events as e
from regent.controller.config import ControllerConfig
from regent.controller.event_merging import EventQueue
from regent.controller.kafka_controller import KafkaController
from regent.controller.response_events import response_received
from regent.controller.term.watches import event_of
from regent.model.cluster import Address
from regent.model.errors import RegentError, SessionExpiredError, ZooKeeperUnavailableError
from regent.model.topic_config import BrokerFacts
from regent.protocol.control_requests import (
    ControlResponse,
)
from regent.replicas.own_pauses import OwnPauses
from regent.simulation.clock import Alarm
from regent.simulation.zookeeper_effects import ZooKeeperEffect, ask_zookeeper
from regent.zk_data import effects as zk_effects
from regent.zk_data.controller import checks_of_controller
from regent.zk_data.operations import SessionState, WatchedEvent, Written
from tests.simulation.describing import describe_effect, describe_event
from tests.simulation.disturbances import Disturbance
from tests.simulation.process_channels import ProcessChannels
from tests.simulation.standby import SimulatedStandby
from tests.simulation.trace import TracingLog
from tests.support.reported_facts import facts_of

if TYPE_CHECKING:
    from tests.simulation.world import World

FIRST_CONTROLLER_ID = 1_000_000_000

Place = tuple[str, int]
"""A place in the core: file and line."""


class RegentProcess:
    """One life of one Regent process.

    Attributes:
        slot: Number of the replica; a restarted one keeps it, and with it the controller id.
        event: The event in progress, or the last one.
        epoch_at_awakening: The controller epoch of the cluster when the last pause ended.
    """

    def __init__(self, world: World, slot: int, life: int) -> None:
        self._world = world
        self.slot = slot
        self.name = f"regent-{slot}"
        self.is_alive = True
        self._is_paused = False
        self._paused_at_ms = self._slept_ms = 0
        self._pauses = OwnPauses(0, self._slept_ms)
        self._epoch_zk_version: int | None = None
        self.epoch_at_awakening = 0
        self.is_cut_off = False
        self.effects = 0
        self.event_began = 0
        self.event: e.ControllerEvent | None = None
        self.known_session_id = 0
        self.log = TracingLog(world.trace, self.name, is_deposed=self._is_deposed)
        self.config = ControllerConfig(
            controller_id=FIRST_CONTROLLER_ID + slot,
            unclean_leader_election_enable=world.swarm.unclean_default,
            auto_leader_rebalance_enable=world.swarm.balance_check_s is not None,
            leader_imbalance_check_interval_s=world.swarm.balance_check_s or 0,
            # It would put right what mutants do wrong with watches.
            watch_check_interval_s=60 if world.swarm.removes else None,
            unassigned_replica_check_interval_s=None,
            delegation_token_expiry_check_interval_ms=None,
            refusal_repair_backoff_ms=500,
            suspicion_backoff_ms=500,
            served={"PLAINTEXT": Address("regent", 9095)} if world.swarm.announces else {},
        )
        self.controller = KafkaController(
            self.config,
            log=self.log,
            chance=Chance(world.rng.randrange, lambda: uuid.UUID(int=world.rng.getrandbits(128))),
        )
        self.client = world.connect(self.name)
        self.standby = (
            SimulatedStandby(world, self.name, self.client) if world.swarm.warm_standby else None
        )
        self._queue = EventQueue()
        self._asking: Coroutine[zk_effects.Effect[Any], Any, Any] | None = None
        self._process: Coroutine[zk_effects.Effect[Any], Any, Any] | None = None
        self._pending: zk_effects.Effect[Any] | None = None
        self._session_of_call = 0
        self._waiting_since_ms: int | None = None
        self._timers: dict[str, Alarm] = {}
        self._channels = ProcessChannels(world, self)
        world.trace.line(self.name, "starts", f"life={life} session={self.client.session_id}")

    def __repr__(self) -> str:
        return self.name

    # What others see

    @property
    def is_paused(self) -> bool:
        """Stopped as by a long garbage collection: nothing moves, nobody notices."""
        return self._is_paused

    @is_paused.setter
    def is_paused(self, is_paused: bool) -> None:
        now_ms = self._world.clock.now_ms()
        if is_paused and not self._is_paused:
            self._paused_at_ms = now_ms
        elif self._is_paused and not is_paused:
            self._slept_ms += now_ms - self._paused_at_ms
            self.epoch_at_awakening = self._world.safety.epoch
        self._is_paused = is_paused

    @property
    def is_awake(self) -> bool:
        """Whether anything moves in it."""
        return not self._is_paused

    @property
    def can_send(self) -> bool:
        if self._is_paused:
            return False
        self._pauses.looked(self._slept_ms)
        return not self._pauses.is_in_doubt

    @property
    def is_active(self) -> bool:
        """Whether it is the controller, as far as it knows."""
        return self.controller.active is not None

    @property
    def is_idle(self) -> bool:
        return self._process is None and not len(self._queue) and not self.client.events

    @property
    def has_isr_changes_to_process(self) -> bool:
        """Whether leaders on brokers that stop are to be looked at again."""
        return e.IsrChangesMade.__name__ in self._queue.kinds()

    def _is_deposed(self) -> bool:
        active = self.controller.active
        return active is not None and active.context.term.epoch < self._world.safety.epoch

    def describe(self) -> str:
        """What it is busy with."""
        return (
            f"{self.name}: queue={self._queue.kinds()} "
            f"pending={type(self._pending).__name__} told={list(self.client.events)}"
        )

    def place(self) -> Place:
        """Return the innermost place in the core that awaits the effect in progress."""
        awaiting: Any = self._process
        place = ("", 0)
        while frame := getattr(awaiting, "cr_frame", None):
            place = (frame.f_code.co_filename, frame.f_lineno)
            awaiting = awaiting.cr_await
        return place

    def put(self, event: e.ControllerEvent) -> None:
        """Append an event, or merge it with one that waits."""
        self._queue.put(event, now=self._world.clock.now_ms())

    def receive(self, response: ControlResponse) -> None:
        """A broker's answer arrives."""
        self.put(response_received(response))

    # Its life

    def crash(self) -> None:
        """The process dies between two effects; its session outlives it for a while."""
        self._world.trace.line(self.name, "crashes", type(self._pending).__name__)
        self.is_alive = False
        for process in (self._process, self._asking):
            if process is not None:
                process.close()
        self._process = self._pending = self._asking = None
        self._queue.clear()
        self._drop_channels_and_timers()
        self._world.workload.sender_died(self)
        self._world.endpoint.process_ended(self)
        self._world.abandon(self.client)

    def shut_down(self) -> None:
        """Ask the controller to hand over; when it says that it has, the process ends."""
        self._world.trace.line(self.name, "is to stop")
        self.put(e.Shutdown(reply_to=self._end))

    def _end(self) -> None:
        """And is started again some time later."""
        self._world.trace.line(self.name, "ends")
        self.is_alive = False
        self._queue.clear()
        self._drop_channels_and_timers()
        self._world.workload.sender_died(self)
        self._world.endpoint.process_ended(self)
        self.client.close()
        self._world.restart_regent_after(self.slot, self._world.rng.randint(100, 12_000))

    def _drop_channels_and_timers(self) -> None:
        self._epoch_zk_version = None
        self._channels.close()
        for alarm in self._timers.values():
            alarm.is_cancelled = True
        self._timers.clear()

    def act_on_zookeeper(self) -> bool:
        """Take one thing that ZooKeeper tells, or look for a server."""
        if self.is_paused or not self.is_alive:
            return False
        if self.client.events:
            self._take(self.client.events.popleft())
            return True
        if not self.client.is_connected and not self.is_cut_off:
            self.client.reconnect()
            self._world.owns(self.client, self.name)
            return True
        return False

    def _take(self, told: WatchedEvent | SessionState) -> None:
        event: e.ControllerEvent | None
        match told:
            case WatchedEvent():
                event = event_of(told)
                self._world.trace.line(self.name, "is told", f"{told.type.value} {told.path}")
            case SessionState.EXPIRED:
                event = e.Expire()
            case SessionState.CONNECTED:
                event = e.SessionEstablished()
                self.known_session_id = self.client.session_id
            case SessionState.RECONNECTED:
                event = e.SessionReconnected()
            case SessionState.SUSPENDED:
                event = None
        if isinstance(told, SessionState):
            self._world.trace.line(self.name, "session", told.value)
        if event is not None:
            self.put(event)
        if told is SessionState.EXPIRED:
            self._world.elector.session_ended(self)

    # Its core

    def act(self) -> bool:
        """Begin an event or perform one effect. Whether there was anything to do."""
        if self.is_paused or not self.is_alive:
            return False
        if self._prove():
            return True
        if self._process is not None:
            return self._step()
        if not len(self._queue):
            return False
        event, _ = self._queue.take()
        self._world.trace.line(self.name, "event", describe_event(event))
        self.event_began = self._world.trace.count
        self.event = event
        self._process = self.controller.process(event)
        self._resume()
        return True

    def _prove(self) -> bool:
        """Ask whether this process is still the controller, if there is a doubt. What it sends is
        its channels' affair, so the event in progress does not matter."""
        term = self._epoch_zk_version
        if self.can_send or term is None or not self.client.is_connected:
            return False
        asked = self._pauses.count
        try:
            results = self.client.multi(checks_of_controller(term))
            is_controller = all(isinstance(result, Written) for result in results)
        except SessionExpiredError:
            is_controller = False
        self._world.trace.line(self.name, "has slept", f"is_controller={is_controller}")
        if is_controller:
            self._pauses.proven(asked)
        else:
            self._epoch_zk_version = None
        return True

    def _resume(self, result: Any = None, error: RegentError | None = None) -> None:
        assert self._process is not None
        self._waiting_since_ms = None
        try:
            self._pending = (
                self._process.send(result) if error is None else self._process.throw(error)
            )
        except StopIteration as stop:
            if self._asking is not None:
                self._process, self._asking = self._asking, None
                self._resume(stop.value)
                return
            self._process = self._pending = None
            self._world.safety.contexts.event_ended(self)
            self._world.endpoint.event_ended(self)
            return
        if isinstance(self._pending, fx.ReadStandby) and self.standby is None:
            self._resume()
            return
        self.effects += 1
        self._session_of_call = self.client.session_id

    def _step(self) -> bool:
        effect = self._pending
        assert effect is not None
        if isinstance(effect, fx.ReadStandby):
            return self._read_standby()
        if not isinstance(effect, ZooKeeperEffect):
            self._step_here(effect)
            return True
        if self._session_of_call != self.client.session_id:
            self._resume(error=SessionExpiredError("the session is gone"))
            return True
        if not self.client.is_connected:
            return self._wait()
        disturbance = self._world.disturbance(self, effect)
        if disturbance is not None:
            self._disturb(effect, disturbance)
            return True
        try:
            result = self._ask_zookeeper(effect)
        except RegentError as error:
            self._world.trace.line(self.name, "  thrown", repr(error))
            self._resume(error=error)
        else:
            self._resume(result)
        return True

    def _step_here(self, effect: zk_effects.Effect[Any]) -> None:
        """Perform an effect that does not concern ZooKeeper."""
        disturbance = self._world.disturbance(self, effect)
        if disturbance is Disturbance.CRASH_BEFORE:
            self.crash()
            return
        result = self._perform(effect)
        if disturbance is Disturbance.CRASH_AFTER and self.is_alive:
            self.crash()
        if self.is_alive:
            self._resume(result)

    def _read_standby(self) -> bool:
        """Read from the cache in place of the core, until there is a copy."""
        assert self.standby is not None
        if self.standby.is_in_the_way:
            return self.act_on_standby()
        self._asking, self._process = self._process, self.standby.read()
        self._resume()
        return True

    def act_on_standby(self) -> bool:
        """Keep the standby's cache up to date. Whether there was anything to do."""
        if self.standby is None or self.is_paused or not self.is_alive:
            return False
        return self.standby.act()

    def _wait(self) -> bool:
        """Calls wait for the connection to come back, but not forever."""
        now_ms = self._world.clock.now_ms()
        if self._waiting_since_ms is None:
            self._waiting_since_ms = now_ms
        elif now_ms - self._waiting_since_ms >= self._world.session_timeout_ms:
            self._resume(error=ZooKeeperUnavailableError("no server in time"))
            return True
        return False

    def _disturb(self, effect: ZooKeeperEffect, disturbance: Disturbance) -> None:
        self._world.trace.line(self.name, disturbance.value, describe_effect(effect))
        error: RegentError | None = None
        try:
            if disturbance.is_after:
                self._ask_zookeeper(effect)
            elif disturbance.is_halfway and isinstance(effect, zk_effects.Write):
                half = effect.operations[: len(effect.operations) // 2]
                self.client.write(half, guard=effect.guard, divides=effect.divides)
        except RegentError as raised:
            error = raised
        if disturbance.is_crash:
            self.crash()
            return
        if disturbance.is_expiry and self._world.zookeeper.is_alive(self.client.session_id):
            self._world.zookeeper.expire(self.client.session_id)
        self.client.disconnect()
        self._world.lost_contact(self.client)
        if isinstance(effect, zk_effects.Multi):
            self._resume(error=error or ZooKeeperUnavailableError("connection lost"))
        # Everything else is asked for again when the connection is back.

    def _ask_zookeeper(self, effect: ZooKeeperEffect) -> Any:
        if not isinstance(effect, zk_effects.Write | zk_effects.Multi) or effect.operations:
            self._world.trace.line(self.name, "  effect", describe_effect(effect))
        return ask_zookeeper(self.client, effect)

    def _perform(self, effect: zk_effects.Effect[Any]) -> Any:  # noqa: C901 - one case per effect
        match effect:
            case fx.UpdateChannels():
                self._epoch_zk_version = effect.epoch_zk_version
                self._channels.update(effect)
                for broker in effect.opened:
                    # only that it has said something: versions would have it need a registration
                    self.put(
                        e.BrokerFactsLearned(broker.epoch, BrokerFacts(broker_id=broker.broker_id))
                    )
            case fx.ReaddressChannels():
                pass  # channels here have no addresses
            case fx.SendRequests():
                self._channels.send(effect.requests)
            case fx.InterBrokerProtocol():
                return self._world.protocol
            case fx.ReportedFacts():
                protocols = {b: each.protocol for b, each in self._world.brokers.items()}
                return facts_of(effect.brokers, protocols=protocols)
            case fx.SilentBrokers():
                cut = self._world.network.is_cut
                return [b for b in self._world.brokers if cut(self.name, b)]
            case fx.CurrentTime():
                return self._world.clock.now_ms()
            case fx.OwnSession():
                return self.client.session_id
            case fx.StillAbsent():
                return self._world.hearing.still_absent(self, effect)
            case fx.ArmTimer():
                self._arm(effect)
            case fx.CancelTimer():
                self._cancel(effect.name)
            case fx.Enqueue():
                self.put(effect.event)
            case fx.Respond() if effect.reply_to == self._end:
                self._end()
            case fx.Respond() if not isinstance(effect.reply_to, int):
                self._world.endpoint.respond(self, effect.reply_to, effect.answer)
            case fx.Respond():
                self._world.workload.answered(self, effect.reply_to, effect.answer)
            case fx.PublishView() | fx.Contend() | fx.GiveWay():
                pass
            case fx.QueueUpAgain():
                self._world.elector.queue_up_again(self)
            case fx.Resigned():
                self._drop_channels_and_timers()
                if self.standby is not None:
                    self.standby.resigned()
            case _:
                raise AssertionError(f"unknown effect {effect!r}")
        return None

    def _arm(self, effect: fx.ArmTimer) -> None:
        self._cancel(effect.name)

        def fire() -> None:
            if self.is_alive:
                self._timers.pop(effect.name, None)
                self.put(effect.event)

        self._timers[effect.name] = self._world.clock.after(
            effect.after_ms,
            fire,
            recurs=isinstance(effect.event, e.AutoPreferredReplicaLeaderElection | e.WatchCheck),
        )

    def _cancel(self, name: str) -> None:
        alarm = self._timers.pop(name, None)
        if alarm is not None:
            alarm.is_cancelled = True
