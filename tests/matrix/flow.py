"""Flows: something happens to a cluster while a producer writes records."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from regent.services.controller_service import ControllerService
from sandbox import KafkaBroker
from sandbox.kafka_jars import version_tuple
from sandbox.regent_process import RegentProcess
from tests.support import cluster as clusters
from tests.support.cluster import Cluster
from tests.support.commands import controller_in_this_process
from tests.support.workload import Workload

SESSION_TIMEOUT_MS = 6_000
"""Session timeout of brokers and Regents: some flows wait for the end of such a session."""

_CONTROLLER_ID = 1_000_000_777
"""Of a controller in this process."""

_FORGETTING = ((2, 7), (3, 0))
"""From the first of these versions up to the second, leaders that ask controllers for changes of
ISRs forget those that are answered after the leader epoch was raised."""

_FENCED_SINCE = (2, 2)
"""From here on brokers' controllers write on condition of the controller epoch (KAFKA-6082)."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where a flow takes place: three healthy brokers, one of which is the controller.

    Attributes:
        topic: The topic that is written to with acks=all until the flow is over.
        producer: Who writes. It has had acknowledgements when the flow begins.
        chance: For moments that nobody chooses.
        endings: How often a Regent ends, in the flow that is about that.
        disturbed: Times in which a broker was down, from and to in ms since the epoch.
    """

    cluster: Cluster
    topic: str
    producer: Workload
    chance: random.Random
    endings: int
    disturbed: list[tuple[int, int]] = field(default_factory=list)

    @property
    def version(self) -> tuple[int, ...]:
        """The brokers' Kafka version."""
        return version_tuple(self.cluster.kafka.version)

    @property
    def leaders_may_forget_changes(self) -> bool:
        """Whether a reassignment may come to a standstill under a broker's controller, for good:
        only Regent notices (:mod:`regent.controller.partitions.overtaken_answers`)."""
        first, end = _FORGETTING
        asks_controllers = bool(self.cluster.regent_settings)
        return asks_controllers and first <= self.version < end

    def name(self, suffix: str) -> str:
        """A topic of the flow's own, beside the one that is written to."""
        return f"{self.topic}-{suffix}"

    def broker_with_the_controller(self) -> KafkaBroker:
        """The broker whose controller leads; waits until there is one."""
        znodes = self.cluster.znodes
        broker_id = self.cluster.wait(
            znodes.controller,
            "a broker's own controller to be elected",
            until=lambda controller_id: controller_id in self.cluster.broker_ids,
            interval_s=0.001,
        )
        return self.cluster.broker(broker_id)

    def let_go_on(self, paused: KafkaBroker) -> None:
        """A broker that was paused in the middle of something goes on.

        The controller of an old one would go on to write what is out of date, which nobody can
        prevent: such a broker is killed instead, and restarted.
        """
        if self.version >= _FENCED_SINCE:
            paused.resume()
        else:
            paused.kill()
            paused.start()

    @contextlib.contextmanager
    def regent(self, *, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> Iterator[RegentProcess]:
        """A Regent that is the controller; at the end it gives the cluster back."""
        with clusters.regent(
            self.cluster, zookeeper_session_timeout_ms=session_timeout_ms
        ) as process:
            process.wait_until_active()
            yield process

    @contextlib.contextmanager
    def controller(self) -> Iterator[ControllerService]:
        """A controller that takes commands; at the end it gives the cluster back."""
        with controller_in_this_process(self.cluster, _CONTROLLER_ID) as service:
            yield service


@dataclass(frozen=True, kw_only=True)
class Flow:
    """One flow.

    Attributes:
        name: In the table and on the command line; a legal part of a topic's name.
        run: Does it, and checks what is special about it. That the cluster is consistent in the
            end, and that every acknowledged record can be read, is checked for every flow.
        since: The first Kafka version with it.
        assignment: Replicas of the topic that is written to.
        keys: So many keys in turn, which spread the records over the partitions; None: none.
    """

    name: str
    run: Callable[[Stage], None]
    since: str = "1.1"
    assignment: Mapping[int, list[int]] = field(default_factory=lambda: {0: [1, 2, 3]})
    keys: int | None = None

    def runs_on(self, version: str) -> bool:
        """Whether brokers of this version have it."""
        return version_tuple(version) >= version_tuple(self.since)
