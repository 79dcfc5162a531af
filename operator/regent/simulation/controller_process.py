"""Runs the controller core over a cluster in memory, until nothing is left to be done.

Does what ``regent.runtime`` does, without threads and event loops: an effect is performed at once,
requests are delivered in the order of the brokers, and time is that of a simulated clock.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from regent.admin.commands import Outcome
from regent.admin.topic_admin import Chance
from regent.controller import effects as fx
from regent.controller import events as e
from regent.controller.broker_requests import AlterPartitionResponse, Asked
from regent.controller.commands import Command
from regent.controller.config import ControllerConfig
from regent.controller.event_merging import EventQueue
from regent.controller.kafka_controller import KafkaController
from regent.controller.response_events import response_received
from regent.controller.term.watches import SESSION_EVENTS, event_of
from regent.model.cluster import Address
from regent.model.topic_config import BrokerFacts
from regent.protocol.control_requests import (
    ControlRequests,
)
from regent.protocol.metadata_updates import SharedMetadata
from regent.protocol.pending_requests import PendingRequests, receivers_of
from regent.simulation.broker import InMemoryBroker
from regent.simulation.clock import Alarm, Clock
from regent.simulation.zookeeper import InMemoryZooKeeper
from regent.simulation.zookeeper_effects import ZooKeeperEffect, ask_zookeeper
from regent.zk_data import effects as zk_effects
from regent.zk_data.operations import WatchedEvent

_PROTOCOL: Final = (3, 9)


class ErrorLog:
    """The core's log, of which only the last error is kept: it says why a simulation cannot go on.

    Attributes:
        last_error: Message and fields; empty if there was none.
    """

    traces_state_changes: Final = False

    def __init__(self) -> None:
        self.last_error = ""

    def info(self, message: str, **fields: object) -> None:
        """Ignored."""

    def warning(self, message: str, **fields: object) -> None:
        """Ignored."""

    def error(self, message: str, **fields: object) -> None:
        """Kept."""
        self.last_error = f"{message} {fields}"

    def state_change(self, what: object, before: object, after: object, **fields: object) -> None:
        """Ignored."""


class ControllerProcess:
    """One Regent, elected from the beginning, over in-memory servers."""

    def __init__(
        self,
        zookeeper: InMemoryZooKeeper,
        clock: Clock,
        brokers: Mapping[int, InMemoryBroker],
        config: ControllerConfig,
    ) -> None:
        self._clock = clock
        self._brokers = brokers
        self._log = ErrorLog()
        ids = iter(range(1, 1 << 62))
        self._controller = KafkaController(
            config,
            log=self._log,
            chance=Chance(lambda _: 0, lambda: uuid.UUID(int=next(ids))),
        )
        self._client = zookeeper.connect()
        self._queue = EventQueue()
        self._timers: dict[str, Alarm] = {}
        self._shared = SharedMetadata()
        self._channels: dict[int, PendingRequests] = {}
        self._answers: dict[int, Any] = {}
        self._asked = 0
        self._take_news()
        self.put(e.Eligible())

    def put(self, event: e.ControllerEvent) -> None:
        """Append an event, or merge it with one that waits."""
        self._queue.put(event, now=self._clock.now_ms())

    def submit(self, *commands: Command) -> tuple[Outcome, ...]:
        """Carry out commands, and all that follows. Returns the outcome of each."""
        self._asked += 1
        self.put(e.commands_received(commands, reply_to=self._asked))
        self.settle()
        outcomes: tuple[Outcome, ...] = self._answers.pop(self._asked)
        return outcomes

    def expand_isrs(self) -> None:
        """Let all leaders ask for the ISRs that they want, and do all that follows."""
        asking: dict[int, InMemoryBroker] = {}
        asked = []
        for broker in self._brokers.values():
            request = broker.wanted_isrs(self._brokers) if broker.is_alive else None
            if request is not None:
                self._asked += 1
                asking[self._asked] = broker
                asked.append(Asked(request, self._asked))
        if not asked:
            return
        self.put(e.AlterPartitionReceived(tuple(asked)))
        self.settle()
        for token, broker in asking.items():
            response: AlterPartitionResponse = self._answers.pop(token)
            broker.isr_changed(response)

    def settle(self) -> None:
        """Process what there is, until no event waits and every living broker has its requests.

        Raises RuntimeError if the core gives up, which none of its rules foresees here.
        """
        while True:
            self._take_news()
            if len(self._queue):
                self._process(self._queue.take().event)
            elif not self._deliver():
                break
        if self._controller.active is None:
            raise RuntimeError(f"the simulated controller has resigned: {self._log.last_error}")

    def _take_news(self) -> None:
        for notified in self._client.take_events():
            event = (
                event_of(notified)
                if isinstance(notified, WatchedEvent)
                else SESSION_EVENTS.get(notified)
            )
            if event is not None:
                self.put(event)

    def _process(self, event: e.ControllerEvent) -> None:
        process = self._controller.process(event)
        result: Any = None
        while True:
            try:
                effect = process.send(result)
            except StopIteration:
                return
            result = (
                ask_zookeeper(self._client, effect)
                if isinstance(effect, ZooKeeperEffect)
                else self._perform(effect)
            )

    def _perform(self, effect: zk_effects.Effect[Any]) -> Any:  # noqa: C901 - one case per effect
        match effect:
            case fx.UpdateChannels():
                for broker_id in effect.closed:
                    self._channels.pop(broker_id, None)
                for broker in effect.opened:
                    self._channels[broker.broker_id] = PendingRequests(
                        broker.broker_id, shared=self._shared
                    )
            case fx.ReaddressChannels():
                pass  # channels here have no addresses
            case fx.SendRequests():
                self._send(effect.requests)
            case fx.InterBrokerProtocol():
                return _PROTOCOL
            case fx.ReportedFacts():
                return [
                    BrokerFacts(broker_id=broker.broker_id, settings={}, has_answered=True)
                    for broker in effect.brokers
                ]
            case fx.SilentBrokers():
                return ()
            case fx.CurrentTime():
                return self._clock.now_ms()
            case fx.OwnSession():
                return self._client.session_id
            case fx.ArmTimer():
                self._arm(effect)
            case fx.CancelTimer():
                self._cancel(effect.name)
            case fx.Enqueue():
                self.put(effect.event)
            case fx.Respond():
                self._answers[effect.reply_to] = effect.answer
            case fx.ReadStandby() | fx.PublishView() | fx.Resigned() | fx.GiveWay():
                pass
            case fx.Contend() | fx.QueueUpAgain():  # there is one replica
                pass
            case _:
                raise AssertionError(f"unknown effect {effect!r}")
        return None

    def _arm(self, effect: fx.ArmTimer) -> None:
        self._cancel(effect.name)

        def fire() -> None:
            self._timers.pop(effect.name, None)
            self.put(effect.event)

        self._timers[effect.name] = self._clock.after(effect.after_ms, fire)

    def _cancel(self, name: str) -> None:
        alarm = self._timers.pop(name, None)
        if alarm is not None:
            alarm.is_cancelled = True

    def _send(self, requests: ControlRequests) -> None:
        metadata = self._shared.of(requests)
        for broker_id in receivers_of(requests):
            if broker_id in self._channels:
                self._channels[broker_id].add(requests, metadata)

    def _deliver(self) -> bool:
        """Let every living broker answer one request. Whether there was any."""
        answered = False
        for broker_id, waiting in list(self._channels.items()):
            if waiting and self._brokers[broker_id].is_alive:
                self.put(response_received(self._brokers[broker_id].handle(waiting.take())))
                answered = True
        return answered


def config_of(
    controller_id: int, *, unclean: bool = False, balances_leaders: bool = True
) -> ControllerConfig:
    """Settings of the simulated controller: the defaults, without checks that find nothing here.

    Args:
        controller_id: One that no broker has.
        unclean: ``unclean.leader.election.enable`` by default.
        balances_leaders: ``auto.leader.rebalance.enable``.
    """
    return ControllerConfig(
        controller_id=controller_id,
        unclean_leader_election_enable=unclean,
        auto_leader_rebalance_enable=balances_leaders,
        watch_check_interval_s=None,
        unassigned_replica_check_interval_s=None,
        delegation_token_expiry_check_interval_ms=None,
        served={"PLAINTEXT": Address("regent", 9095)},
    )
