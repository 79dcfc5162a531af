"""Flies a scenario: the steps in order over the simulated cluster, with a look at it after each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from regent.model.errors import ConfigurationError
from regent.model.partition import NO_LEADER, TopicPartition
from regent.planning.snapshot import Snapshot
from regent.simulation.cluster import InMemoryCluster
from regent.simulation.conditions import CatchUp, Conditions, assumptions_of, min_isr_of
from regent.simulation.report import FlightReport, Moment, Outage
from regent.simulation.restart_order import RestartOrder, restart_order
from regent.simulation.scenario import (
    AddBroker,
    Kill,
    KillRack,
    Restart,
    Start,
    Step,
    Stop,
    Unclean,
    Wait,
)

_MS: Final = 1_000


def fly(
    snapshot: Snapshot, steps: Sequence[Step], conditions: Conditions | None = None
) -> FlightReport:
    """What would happen.

    Raises ConfigurationError for a step that cannot be: such as the death of a dead broker.
    """
    joining = [step.broker for step in steps if isinstance(step, AddBroker)]
    conditions = Conditions() if conditions is None else conditions
    return _Flight(snapshot, conditions, joining).fly(steps)


class _Flight:
    def __init__(self, snapshot: Snapshot, conditions: Conditions, joining: Sequence[int]) -> None:
        self._conditions = conditions
        self._catch_up = CatchUp(snapshot, conditions)
        min_isr = min_isr_of(snapshot, conditions)
        self._assumptions = assumptions_of(snapshot, conditions, min_isr)
        self._cluster = InMemoryCluster(
            snapshot,
            min_isr=min_isr,
            session_timeout_ms=round(conditions.session_timeout_s * _MS),
            joining=joining,
            balances_leaders=conditions.balances_leaders,
        )
        self._ledger = self._cluster.ledger
        self._racks = {broker.id: broker.rack for broker in snapshot.brokers}
        self._down_since = {broker.id: 0 for broker in snapshot.brokers if not broker.alive}
        self._leaderless_since = dict.fromkeys(self._ledger.leaderless, 0)
        self._leaderless_ms: dict[TopicPartition, int] = {}
        self._below_min_isr = dict(self._ledger.below_min_isr)
        self._moments: list[Moment] = []

    def fly(self, steps: Sequence[Step]) -> FlightReport:
        start = self._look("as it is")
        for step in steps:
            self._carry_out(step)
        return FlightReport(
            start=start,
            moments=tuple(self._moments),
            outages=self._outages(),
            order=self._restart_order(),
            assumptions=self._assumptions,
            partitions=len(self._cluster.replicas),
            replicas=sum(map(len, self._cluster.replicas.values())),
        )

    def _carry_out(self, step: Step) -> None:  # noqa: C901 - one case per kind of step
        match step:
            case Kill():
                self._kill(step, step.brokers)
            case KillRack():
                self._kill(step, self._living_in(step))
            case Stop():
                self._require(step, step.brokers, alive=True)
                for broker in step.brokers:
                    self._stop(broker)
                self._note(str(step))
            case Start():
                self._require(step, step.brokers, alive=False)
                self._start(step.brokers)
                self._note(str(step))
            case Restart():
                self._require(step, step.brokers, alive=True)
                for broker in step.brokers:
                    self._stop(broker)
                    self._note(f"restart {broker}: stopped")
                    self._advance(self._conditions.restart_s)
                    self._start((broker,))
                    self._note(f"restart {broker}: back")
            case AddBroker():
                self._add(step)
            case Unclean():
                began_ms = self._now_ms
                self._cluster.allow_unclean(step.allowed)
                self._follow_elections(began_ms)
                self._note(str(step))
            case Wait():
                self._advance(step.seconds)
                self._note(str(step))
            case _:
                assert_never(step)

    # Steps

    def _kill(self, step: Step, brokers: Sequence[int]) -> None:
        self._require(step, brokers, alive=True)
        began_ms = self._now_ms
        orphans = [tp for broker in brokers for tp in self._ledger.led.get(broker, ())]
        self._down_since |= dict.fromkeys(brokers, began_ms)
        self._cluster.kill(brokers)
        elected = sum(self._ledger.states[tp].leader != NO_LEADER for tp in orphans)
        self._follow_elections(began_ms, elected=elected)
        took_s = (self._now_ms - began_ms) / _MS if elected else 0.0
        self._note(str(step), interrupted=elected, interruption_s=took_s)

    def _stop(self, broker: int) -> None:
        self._cluster.stop(broker)
        self._down_since[broker] = self._now_ms
        self._follow_elections(self._now_ms)

    def _start(self, brokers: Sequence[int]) -> None:
        """Brokers come back, and are in sync one by one as each has caught up."""
        began_ms = self._now_ms
        self._cluster.start(brokers)
        self._follow_elections(began_ms)
        in_sync_at_ms = {
            broker: began_ms + _MS * self._seconds_to_catch_up(broker, began_ms)
            for broker in brokers
        }
        for broker, at_ms in sorted(in_sync_at_ms.items(), key=lambda item: (item[1], item[0])):
            if at_ms < math.inf:
                self._advance(max(0.0, (at_ms - self._now_ms) / _MS))
                self._cluster.catch_up((broker,))

    def _seconds_to_catch_up(self, broker: int, now_ms: int) -> float:
        return self._catch_up.seconds(broker, (now_ms - self._down_since.pop(broker)) / _MS)

    def _add(self, step: AddBroker) -> None:
        if step.broker in self._cluster.brokers:
            raise ConfigurationError(
                f"{step}: the cluster has broker {step.broker} already: choose another id"
            )
        self._racks[step.broker] = step.rack
        self._cluster.add(step.broker, step.rack)
        self._note(str(step))

    def _living_in(self, step: KillRack) -> tuple[int, ...]:
        living = tuple(
            broker
            for broker, rack in sorted(self._racks.items())
            if rack == step.rack and self._cluster.brokers[broker].is_alive
        )
        if not living:
            racks = sorted({rack for rack in self._racks.values() if rack is not None})
            raise ConfigurationError(
                f"{step}: no living broker is in that rack; racks are "
                f"{', '.join(racks) if racks else 'not known'}"
            )
        return living

    def _require(self, step: Step, brokers: Iterable[int], *, alive: bool) -> None:
        for broker in brokers:
            known = self._cluster.brokers.get(broker)
            if known is None:
                ids = ", ".join(map(str, sorted(self._cluster.brokers)))
                raise ConfigurationError(f"{step}: there is no broker {broker}; there are {ids}")
            if known.is_alive != alive:
                state = "dead" if alive else "alive"
                raise ConfigurationError(f"{step}: broker {broker} is {state} at that point")

    # What follows

    @property
    def _now_ms(self) -> int:
        return self._cluster.clock.now_ms()

    def _advance(self, seconds: float) -> None:
        self._cluster.advance(round(seconds * _MS))

    def _follow_elections(self, began_ms: int, *, elected: int = 0) -> None:
        """Let the time pass that the elections take, and note who has no leader since when."""
        regained = [tp for tp in self._leaderless_since if tp not in self._ledger.leaderless]
        self._advance((len(regained) + elected) / self._conditions.elections_per_s)
        for tp in regained:
            lasted = self._now_ms - self._leaderless_since.pop(tp)
            self._leaderless_ms[tp] = self._leaderless_ms.get(tp, 0) + lasted
        for tp in self._ledger.leaderless:
            self._leaderless_since.setdefault(tp, began_ms)

    def _note(self, what: str, *, interrupted: int = 0, interruption_s: float = 0.0) -> None:
        self._moments.append(self._look(what, interrupted, interruption_s))

    def _look(self, what: str, interrupted: int = 0, interruption_s: float = 0.0) -> Moment:
        """The cluster now, and what has changed since the last look."""
        ledger = self._ledger
        changes = [(tp, old, ledger.states[tp].leader) for tp, old in ledger.take_moved().items()]
        below = dict(ledger.below_min_isr)
        newly_below = [tp for tp in below if tp not in self._below_min_isr]
        self._below_min_isr = below
        brokers = sorted(self._cluster.brokers.items())
        return Moment(
            what=what,
            at_s=self._now_ms / _MS,
            leaders={i: len(ledger.led.get(i, ())) for i, broker in brokers if broker.is_alive},
            dead=tuple(i for i, broker in brokers if not broker.is_alive),
            leaderless=tuple(sorted(ledger.leaderless)),
            lost=tuple(sorted(tp for tp, old, new in changes if new == NO_LEADER != old)),
            regained=tuple(sorted(tp for tp, old, new in changes if old == NO_LEADER != new)),
            below_min_isr=tuple(sorted(below)),
            newly_below_min_isr=tuple(sorted(newly_below)),
            under_replicated=len(ledger.under_replicated),
            moved=sum(old != new and NO_LEADER not in (old, new) for _, old, new in changes),
            unclean=tuple(sorted(ledger.take_unclean())),
            interrupted=interrupted,
            interruption_s=interruption_s,
        )

    def _outages(self) -> tuple[Outage, ...]:
        found = [
            Outage(
                tp,
                (lasted + self._since(tp)) / _MS,
                is_over=tp not in self._leaderless_since,
            )
            for tp, lasted in {
                **dict.fromkeys(self._leaderless_since, 0),
                **self._leaderless_ms,
            }.items()
        ]
        return tuple(sorted(found, key=lambda outage: (-outage.seconds, outage.partition)))

    def _since(self, tp: TopicPartition) -> int:
        since_ms = self._leaderless_since.get(tp)
        return 0 if since_ms is None else self._now_ms - since_ms

    def _restart_order(self) -> RestartOrder | None:
        if not self._ledger.leaderless:
            return None
        dead = [i for i, broker in self._cluster.brokers.items() if not broker.is_alive]
        return restart_order(
            (self._ledger.states[tp].isr for tp in self._ledger.leaderless), sorted(dead)
        )
