"""Drives the coroutines of the core without an event loop, over an in-memory ZooKeeper.

:class:`Driver` performs effects in one session and keeps what left the core: requests, channels,
timers, answers, views.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from regent.controller import effects
from regent.controller.events import ControllerEvent
from regent.controller.state.standby_copy import StandbyCopy
from regent.model.errors import RegentError
from regent.protocol.control_requests import ControlRequests
from regent.simulation.zookeeper import InMemoryClient
from regent.zk_data import effects as zk_effects
from regent.zk_data.effects import Effect
from tests.support.reported_facts import facts_of

T = TypeVar("T")


NEWEST = (3, 9)


class LogRecord(NamedTuple):
    """One call of the log."""

    level: str
    message: str
    fields: dict[str, object]


class RecordingLog:
    """Keeps what the core reports."""

    traces_state_changes = True

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.changes: list[tuple[str, object, object]] = []

    def info(self, message: str, **fields: object) -> None:
        self.records.append(LogRecord("info", message, fields))

    def warning(self, message: str, **fields: object) -> None:
        self.records.append(LogRecord("warning", message, fields))

    def error(self, message: str, **fields: object) -> None:
        self.records.append(LogRecord("error", message, fields))

    def state_change(self, what: object, before: object, after: object, **_: object) -> None:
        self.changes.append((str(what), before, after))

    def errors(self, message: str) -> list[dict[str, object]]:
        """Fields of the errors with that message."""
        return self._fields("error", message)

    def warnings(self, message: str) -> list[dict[str, object]]:
        """Fields of the warnings with that message."""
        return self._fields("warning", message)

    def _fields(self, level: str, message: str) -> list[dict[str, object]]:
        return [r.fields for r in self.records if r.level == level and r.message == message]


class Driver:
    """Performs effects at once and in order.

    Attributes:
        sent: Batches in the order of their sending.
        broker_settings: What brokers have said of theirs; None: one has not answered.
        broker_protocols: What brokers have said of their inter.broker.protocol.version.
        silent: Brokers that do not answer.
        standby: What the standby has.
        answering: Sessions of replicas that answer, whatever an event has said of them.
        before: Called with every effect before it is performed: what others do just then. An error
            that it raises is thrown into the core, and the effect does not take place.
        after: The same after the effect: an error means that its answer was lost.
    """

    def __init__(self, client: InMemoryClient) -> None:
        self.client = client
        self.inter_broker_protocol = NEWEST
        self.broker_settings: dict[int, Mapping[str, str] | None] = {}
        self.broker_protocols: dict[int, tuple[int, int]] = {}
        self.silent: tuple[int, ...] = ()
        self.now_ms = 1_000_000_000
        self.performed: list[Effect[Any]] = []
        self.sent: list[ControlRequests] = []
        self.channels: list[effects.UpdateChannels] = []
        self.timers: dict[str, effects.ArmTimer] = {}
        self.answers: list[effects.Respond] = []
        self.views: list[frozenset[str] | None] = []
        self.enqueued: list[ControllerEvent] = []
        self.resignations = 0
        self.standby: Callable[[], StandbyCopy | None] = lambda: None
        self.answering: list[int] = []
        self.before: Callable[[Effect[Any]], None] = lambda _: None
        self.after: Callable[[Effect[Any]], None] = lambda _: None

    def run(self, process: Coroutine[Effect[Any], Any, T]) -> T:
        """Run a coroutine of the core to its end."""
        result: Any = None
        error: RegentError | None = None
        while True:
            try:
                effect = process.send(result) if error is None else process.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            result, error = None, None
            try:
                self.before(effect)
                result = self._perform(effect)
                self.after(effect)
            except RegentError as raised:
                error = raised

    def take_sent(self) -> list[ControlRequests]:
        """The batches since the last call."""
        sent, self.sent = self.sent, []
        return sent

    def transactions(self) -> int:
        """How many transactions or bulk writes were asked for."""
        return sum(isinstance(e, zk_effects.Multi | zk_effects.Write) for e in self.performed)

    def _perform(self, effect: Effect[Any]) -> Any:  # noqa: C901 - one case per effect
        self.performed.append(effect)
        match effect:
            case zk_effects.ReadData():
                return effect.result(self.client.get_data(effect.paths, watch=effect.watch))
            case zk_effects.ReadChildren():
                return self.client.get_children(effect.paths, watch=effect.watch)
            case zk_effects.Exists():
                return self.client.exists(effect.paths, watch=effect.watch)
            case effects.ReadStandby():
                return self.standby()
            case zk_effects.Multi():
                return self.client.multi(effect.operations)
            case zk_effects.Write():
                return self.client.write(
                    effect.operations, guard=effect.guard, divides=effect.divides
                )
            case effects.SendRequests():
                self.sent.append(effect.requests)
            case effects.UpdateChannels():
                self.channels.append(effect)
            case effects.ReaddressChannels():
                pass
            case effects.InterBrokerProtocol():
                return self.inter_broker_protocol
            case effects.ReportedFacts():
                return facts_of(effect.brokers, self.broker_settings, self.broker_protocols)
            case effects.SilentBrokers():
                return self.silent
            case effects.ArmTimer():
                self.timers[effect.name] = effect
            case effects.CancelTimer():
                self.timers.pop(effect.name, None)
            case effects.Contend() | effects.QueueUpAgain() | effects.GiveWay():
                pass
            case effects.Enqueue():
                self.enqueued.append(effect.event)
            case effects.Respond():
                self.answers.append(effect)
            case effects.PublishView():
                self.views.append(effect.topics)
            case effects.CurrentTime():
                return self.now_ms
            case effects.OwnSession():
                return self.client.session_id
            case effects.StillAbsent():
                asked = (*effect.suspected, *effect.unheard)
                return tuple(session for session in asked if session not in self.answering)
            case effects.Resigned():
                self.resignations += 1
                self.timers.clear()
            case _:
                raise AssertionError(f"not an effect: {effect!r}")
        return None


def once(
    kind: type[Effect[Any]], action: Callable[[], object], *, skip: int = 0
) -> Callable[[Effect[Any]], None]:
    """A hook for :class:`Driver`: ``action`` at the first effect of ``kind`` after ``skip``."""
    seen = 0

    def hook(effect: Effect[Any]) -> None:
        nonlocal seen
        if isinstance(effect, kind):
            seen += 1
            if seen == skip + 1:
                action()

    return hook


def raising(error: RegentError) -> Callable[[], None]:
    """An action that raises."""

    def action() -> None:
        raise error

    return action
