"""What keeps a controller busy for a while, in phases that are seen in ZooKeeper.

Another controller takes over in the middle of a phase, and has to finish what was begun. A phase
has been reached for good: whoever looks late sees it, too.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Mapping
from typing import ClassVar

from tests.matrix.flow import Stage
from tests.support.reassigning import (
    create_topic,
    hosts,
    request_reassignment,
    wait_for_hosts,
    wait_until_moved,
)

PARTITIONS = 40
"""Enough that a broker's controller, which does one after the other, is found in the middle."""

_POLL_S = 0.001
_ELECTION = "/admin/preferred_replica_election"

Phases = Mapping[str, Callable[[], bool]]


class Job(abc.ABC):
    """Work for a controller. It can be done any number of times.

    Attributes:
        phases: Names of the phases in their order.
    """

    phases: ClassVar[tuple[str, ...]]

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._cluster = stage.cluster
        self._znodes = stage.cluster.znodes

    @abc.abstractmethod
    def begin(self) -> None:
        """Ask for it; the controller begins at once."""

    @abc.abstractmethod
    def finish(self) -> None:
        """Wait until all of it is done, as it was asked for."""

    def tidy(self) -> None:  # noqa: B027  # most leave nothing behind
        """Wait until nothing is left of what was to go.

        A broker's controller that takes over knows nothing of requests that were on their way;
        Regent has noted them, and repeats them when it leads again.
        """

    @abc.abstractmethod
    def _conditions(self) -> Phases:
        """What tells that a phase has been reached."""

    def wait_for(self, phase: str) -> None:
        """Wait until a phase has been reached."""
        self._cluster.wait(
            self._conditions()[phase], f"{type(self).__name__} {phase}", interval_s=_POLL_S
        )


class Reassignment(Job):
    """Many partitions move, each to another pair of brokers."""

    phases = ("requested", "begun", "copied", "elected", "stored")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._topic = stage.name("moving")
        self._pairs = [[1, 2], [2, 3], [3, 1]]
        create_topic(stage.cluster, self._topic, dict.fromkeys(range(PARTITIONS), self._pairs[0]))

    @property
    def _targets(self) -> dict[tuple[str, int], list[int]]:
        return {(self._topic, partition): self._pairs[0] for partition in range(PARTITIONS)}

    def begin(self) -> None:
        self._pairs.append(self._pairs.pop(0))
        request_reassignment(self._cluster, self._targets)

    def _conditions(self) -> Phases:
        before, target = self._pairs[-1], self._pairs[0]

        def replicas() -> list[list[int]]:
            return list((self._znodes.assignment(self._topic) or {}).values())

        def isrs() -> list[set[int]]:
            return [set(state["isr"]) for state in self._znodes.states(self._topic).values()]

        return {
            "requested": lambda: True,
            "begun": lambda: any(assigned != before for assigned in replicas()),
            "copied": lambda: any(isr >= set(target) for isr in isrs()),
            "elected": lambda: any(isr == set(target) for isr in isrs()),
            "stored": lambda: any(assigned == target for assigned in replicas()),
        }

    def finish(self) -> None:
        wait_until_moved(self._cluster, self._targets)

    def tidy(self) -> None:
        wait_for_hosts(self._cluster, self._targets)


class Deletion(Job):
    """Many topics are deleted."""

    phases = ("requested", "stopped", "removed")
    _TOPICS = 8
    _PARTITIONS = 4

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._names: list[str] = []
        self._begun = 0

    def begin(self) -> None:
        self._begun += 1
        self._names = [
            self._stage.name(f"deleted-{self._begun}-{number}") for number in range(self._TOPICS)
        ]
        for name in self._names:
            create_topic(self._cluster, name, {p: [1, 2] for p in range(self._PARTITIONS)})
        for name in self._names:
            self._znodes.client.create(f"/admin/delete_topics/{name}")

    def _conditions(self) -> Phases:
        return {
            "requested": lambda: True,
            "stopped": lambda: any(hosts(self._cluster, name) != [1, 2] for name in self._names),
            "removed": lambda: not set(self._names) <= set(self._znodes.topics()),
        }

    def finish(self) -> None:
        def left() -> dict[str, list[int]]:
            present = {*self._znodes.topics(), *self._znodes.children("/admin/delete_topics")}
            configured = self._znodes.children("/config/topics")
            return {
                name: found
                for name in self._names
                for partition in range(self._PARTITIONS)
                if (found := hosts(self._cluster, name, partition))
                or name in present
                or name in configured
            }

        self._cluster.wait(left, "the topics to be gone", until=lambda found: not found)


class BrokerFailure(Job):
    """A broker is killed that leads many partitions. It returns when the others lead them."""

    phases = ("expired", "elected")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._topic = stage.name("spread")
        self._victim = 0
        self._led: list[int] = []
        orders = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
        create_topic(stage.cluster, self._topic, {p: orders[p % 3] for p in range(PARTITIONS)})

    def begin(self) -> None:
        self._balance()
        by_leader: dict[int, list[int]] = {broker_id: [] for broker_id in self._cluster.broker_ids}
        for (_, partition), state in self._znodes.states(self._topic).items():
            by_leader[state["leader"]].append(partition)
        self._victim = self._choose(by_leader)
        self._led = by_leader[self._victim]
        assert self._led, f"broker {self._victim} leads nothing"
        self._cluster.broker(self._victim).kill()

    def _balance(self) -> None:
        """A broker that has returned leads nothing until leaders are moved back to it."""
        preferred = {
            partition: replicas[0]
            for partition, replicas in (self._znodes.assignment(self._topic) or {}).items()
        }
        listed = [{"topic": self._topic, "partition": partition} for partition in preferred]
        self._znodes.client.create(
            _ELECTION,
            json.dumps({"version": 1, "partitions": listed}).encode(),
        )

        def led_by_others() -> list[int]:
            states = self._znodes.states(self._topic)
            return [p for p in preferred if states[self._topic, p]["leader"] != preferred[p]]

        self._cluster.wait(
            led_by_others, "every broker to lead its partitions", until=lambda found: not found
        )
        self._cluster.wait(lambda: self._znodes.get(_ELECTION) is None, "the request to be removed")

    def _choose(self, by_leader: Mapping[int, list[int]]) -> int:
        """The broker that leads most, but for the one that is the controller."""
        others = [broker_id for broker_id in by_leader if broker_id != self._znodes.controller()]
        return max(others, key=lambda broker_id: len(by_leader[broker_id]))

    def _conditions(self) -> Phases:
        return {
            "expired": lambda: self._victim not in self._znodes.broker_ids(),
            "elected": lambda: any(
                self._znodes.states(self._topic)[self._topic, p]["leader"] != self._victim
                for p in self._led
            ),
        }

    def finish(self) -> None:
        def left() -> list[int]:
            states = self._znodes.states(self._topic)
            return [p for p in self._led if states[self._topic, p]["leader"] in (self._victim, -1)]

        self._cluster.wait(left, "others to lead", until=lambda found: not found)
        self._cluster.broker(self._victim).start()
        self._cluster.wait_in_sync()


class ControllerFailure(BrokerFailure):
    """The broker is killed whose controller leads. Another one's elects leaders in its failover."""

    phases = ("succeeded", "elected")

    def _choose(self, by_leader: Mapping[int, list[int]]) -> int:
        return next(b for b in by_leader if b == self._znodes.controller())

    def _conditions(self) -> Phases:
        return {
            **super()._conditions(),
            "succeeded": lambda: self._znodes.controller() not in (self._victim, None),
        }


class Start(Job):
    """A controller is elected that finds topics without leaders.

    They are created while the controller that would create their partitions does not run.
    """

    phases = ("elected", "led")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._topic = ""
        self._begun = 0
        self._elections = 0

    def begin(self) -> None:
        self._begun += 1
        self._topic = self._stage.name(f"new-{self._begun}")
        self._elections = self._znodes.elections()
        partitions = {str(partition): [1, 2, 3] for partition in range(PARTITIONS)}
        self._znodes.client.create(
            f"/brokers/topics/{self._topic}",
            json.dumps({"version": 1, "partitions": partitions}).encode(),
        )

    def _conditions(self) -> Phases:
        return {
            "elected": lambda: self._znodes.elections() > self._elections,
            "led": lambda: any(self._znodes.states(self._topic).values()),
        }

    def finish(self) -> None:
        self._cluster.wait_in_sync()
