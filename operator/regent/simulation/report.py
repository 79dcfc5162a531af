"""What a simulated flight has shown, as values and as a JSON document."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from regent.model.partition import TopicPartition
from regent.simulation.restart_order import RestartOrder

Partitions = tuple[TopicPartition, ...]
"""In order of topics and numbers."""


class FlightStatus(enum.IntEnum):
    """Exit status of ``regent simulate``: what a script has to know first."""

    SAFE = 0
    LEADERLESS = 5
    BELOW_MIN_ISR = 10


@dataclass(frozen=True, slots=True)
class Moment:
    """The cluster once a step, or a part of one, is over and the controller has done its work.

    Attributes:
        what: The step, in words.
        at_s: Seconds since the beginning.
        leaders: Living broker -> partitions that it leads, in ascending order of ids.
        dead: Ids of dead brokers, in ascending order.
        leaderless: Partitions without a leader.
        lost: Those of them that had one before the step.
        regained: Partitions that have a leader and had none before the step.
        below_min_isr: Partitions with a leader that refuse writes with acks=all.
        newly_below_min_isr: Those of them that were not so before the step.
        under_replicated: How many partitions lack a replica in their ISR.
        moved: How many partitions have another leader than before the step.
        unclean: Partitions whose new leader was not in the ISR: records may be lost.
        interrupted: How many partitions had a leader that died, and have another one.
        interruption_s: How long those were without, at most.
    """

    what: str
    at_s: float
    leaders: Mapping[int, int]
    dead: tuple[int, ...]
    leaderless: Partitions
    lost: Partitions
    regained: Partitions
    below_min_isr: Partitions
    newly_below_min_isr: Partitions
    under_replicated: int
    moved: int
    unclean: Partitions
    interrupted: int
    interruption_s: float

    @property
    def is_safe(self) -> bool:
        """Whether the step takes from no partition its leader, its writes, or its records."""
        return not (self.lost or self.newly_below_min_isr or self.unclean)


@dataclass(frozen=True, slots=True)
class Outage:
    """A partition was without a leader until a broker came back, or still is.

    Attributes:
        seconds: In all.
        is_over: Whether it has a leader at the end.
    """

    partition: TopicPartition
    seconds: float
    is_over: bool


@dataclass(frozen=True, slots=True)
class FlightReport:
    """A whole scenario.

    Attributes:
        start: Before the first step.
        moments: After each step, or part of one.
        outages: The longest first.
        order: How to bring back what has no leader at the end; None if there is no such partition.
        assumptions: What the figures rest on, a sentence each.
        partitions: How many there are.
        replicas: Likewise.
    """

    start: Moment
    moments: tuple[Moment, ...]
    outages: tuple[Outage, ...]
    order: RestartOrder | None
    assumptions: tuple[str, ...]
    partitions: int
    replicas: int

    @property
    def status(self) -> FlightStatus:
        """The worst that holds after any step."""
        if any(moment.leaderless for moment in self.moments):
            return FlightStatus.LEADERLESS
        if any(moment.below_min_isr for moment in self.moments):
            return FlightStatus.BELOW_MIN_ISR
        return FlightStatus.SAFE

    def document(self) -> dict[str, Any]:
        """For ``--json``: all partitions by name."""
        return {
            "status": int(self.status),
            "partitions": self.partitions,
            "replicas": self.replicas,
            "start": _moment(self.start),
            "steps": [{**_moment(moment), "isSafe": moment.is_safe} for moment in self.moments],
            "outages": [
                {
                    "partition": str(outage.partition),
                    "seconds": round(outage.seconds, 3),
                    "isOver": outage.is_over,
                }
                for outage in self.outages
            ],
            "restartOrder": None if self.order is None else _order(self.order),
            "assumptions": list(self.assumptions),
        }


def _moment(moment: Moment) -> dict[str, Any]:
    return {
        "what": moment.what,
        "atSeconds": round(moment.at_s, 3),
        "leaders": {str(broker): led for broker, led in moment.leaders.items()},
        "deadBrokers": list(moment.dead),
        "withoutLeader": _names(moment.leaderless),
        "lostLeader": _names(moment.lost),
        "regainedLeader": _names(moment.regained),
        "belowMinIsr": _names(moment.below_min_isr),
        "newlyBelowMinIsr": _names(moment.newly_below_min_isr),
        "underReplicated": moment.under_replicated,
        "movedLeaders": moment.moved,
        "uncleanLeaders": _names(moment.unclean),
        "interrupted": moment.interrupted,
        "interruptionSeconds": round(moment.interruption_s, 3),
    }


def _order(order: RestartOrder) -> dict[str, Any]:
    return {
        "isBest": order.is_best,
        "brokers": [
            {"broker": r.broker, "regain": r.partitions, "remaining": r.remaining}
            for r in order.returns
        ],
        "bringNothingBack": list(order.others),
    }


def _names(partitions: Partitions) -> list[str]:
    return [str(tp) for tp in partitions]
