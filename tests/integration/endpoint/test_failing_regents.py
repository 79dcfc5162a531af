"""Regents are killed, paused and restarted while brokers need an answer of them.

There are two, so that the other one takes over. Brokers are at their own protocol version: leaders
ask for every ISR change, and what was sent to a Regent that does not answer has to be asked again.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from sandbox import KafkaBroker
from sandbox.regent_process import RegentProcess
from tests.integration.endpoint.stopping import assert_stopped_cleanly, has_begun_to_stop, led_by
from tests.support.cluster import (
    Cluster,
    cluster_of,
    regent,
)
from tests.support.figures import Figure
from tests.support.metadata import Partition
from tests.support.reassigning import create_topic
from tests.support.soak import soak
from tests.support.workload import Workload, consume_all, workload

pytestmark = [pytest.mark.integration, pytest.mark.slow, soak("endpoint")]

PARTITIONS = 30
SHRINKING = "Shrinking ISR"
"""Leaders log it when they ask."""
LAG_MS = 2_000
"""A follower that has fetched nothing for so long leaves the ISR."""
REGENT_SESSION_MS = 15_000
"""Of a paused Regent: until leaders have asked in vain there is no other one, also on a busy
machine."""

KILLED_SESSION_MS = 6_000
"""Session timeout of a killed Regent: the second Regent leads when that session ends."""

BROKER_SESSION_MS = 60_000
"""Of brokers: a paused follower has to leave ISRs by the leaders' requests, not by its session."""
KEYS = 1_000
"""Every partition is written to: a follower that has all of a partition stays in its ISR."""


class Failure(NamedTuple):
    """What happens to a Regent.

    Attributes:
        begin: It does not answer any more.
        end: It is there again, on standby: called when the other one is the controller.
    """

    name: str
    begin: Callable[[RegentProcess], None]
    end: Callable[[RegentProcess], None]

    def __str__(self) -> str:
        return self.name


KILLED = Failure("killed", RegentProcess.kill, RegentProcess.start)
PAUSED = Failure("paused for longer than its session", RegentProcess.pause, RegentProcess.resume)
RESTARTED = Failure("restarted", RegentProcess.stop, RegentProcess.start)
FAILURES = (KILLED, PAUSED, RESTARTED)
STOPS = (
    (KILLED, True),
    (KILLED, False),
    (PAUSED, True),
    (PAUSED, False),
    (RESTARTED, False),
)
"""How Regent fails while a broker stops, and whether that is before it has read the request."""


class Scene:
    """A cluster under load, and two Regents."""

    def __init__(
        self, cluster: Cluster, regents: tuple[RegentProcess, RegentProcess], producer: Workload
    ) -> None:
        self.cluster = cluster
        self.producer = producer
        self._regents = regents

    def leading(self) -> RegentProcess:
        """The Regent that is the controller, while the other one is on standby."""

        def look() -> RegentProcess | None:
            statuses = [each.status() for each in self._regents]
            leading = [
                each
                for each, status in zip(self._regents, statuses, strict=True)
                if status and status["isActive"]
            ]
            return leading[0] if len(leading) == 1 and all(statuses) else None

        found = self.cluster.wait(look, "one Regent to lead and the other one to answer")
        assert isinstance(found, RegentProcess)
        return found

    def fail(self, leading: RegentProcess, failure: Failure) -> float:
        """The leading Regent fails, the other one leads, and the first is there again.

        Returns:
            When the other one was the controller; monotonic seconds.
        """
        (other,) = (each for each in self._regents if each is not leading)
        failure.begin(leading)
        other.wait_until_active()
        active_at = time.monotonic()
        failure.end(leading)
        return active_at

    def settle(self) -> None:
        """Everything is well again."""
        self.cluster.wait_in_sync()
        self.producer.wait_for_progress()

    @contextlib.contextmanager
    def no_broker_exits(self, *, but: int = 0) -> Iterator[None]:
        """All brokers but one are the same processes at the end of the block."""
        brokers = [b for b in self.cluster.kafka.brokers if b.broker_id != but]
        before = [broker.process.pid for broker in brokers]
        yield
        assert all(broker.is_running for broker in brokers)
        assert [broker.process.pid for broker in brokers] == before

    def count_in_logs(self, words: str) -> int:
        return sum(b.process.log_of_this_run().count(words) for b in self.cluster.running)


@pytest.fixture(scope="module", params=["2.8.2", "3.9.1"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster_of(
        request.param,
        inter_broker_protocol=None,
        replica_lag_time_max_ms=LAG_MS,
        zookeeper_session_timeout_ms=BROKER_SESSION_MS,
        # The attempts last for longer than a failover.
        controlled_shutdown_max_retries=60,
        controlled_shutdown_retry_backoff_ms=500,
    ) as started:
        started.wait_for_a_broker_as_controller()
        yield started


@contextlib.contextmanager
def scene_of(
    cluster: Cluster,
    directory: Path,
    topic: str,
    orders: Sequence[Sequence[int]],
    *,
    regent_session_ms: int = KILLED_SESSION_MS,
) -> Iterator[Scene]:
    """Two Regents, and a topic that is written to. What was acknowledged is there in the end."""
    assignment = {p: list(orders[p % len(orders)]) for p in range(PARTITIONS)}
    with contextlib.ExitStack() as stack:

        def started(name: str) -> RegentProcess:
            return stack.enter_context(
                regent(cluster, name=name, zookeeper_session_timeout_ms=regent_session_ms)
            )

        first = started("regent-1")
        first.wait_until_active()
        second = started("regent-2")
        create_topic(cluster, topic, assignment)
        with workload(cluster.tools, topic, directory, keys=KEYS) as producer:
            producer.wait_for_progress()
            yield Scene(cluster, (first, second), producer)
            producer.wait_for_progress()
        cluster.wait_for_consistency()
        assert producer.failed() == []
        assert set(producer.acknowledged()) <= set(consume_all(cluster.tools, topic))


def stop_while_it_fails(
    scene: Scene, broker: KafkaBroker, failure: Failure, *, is_unanswered: bool
) -> None:
    """Regent fails before it has read the request, or when it has moved a leader."""
    led = led_by(scene.cluster, broker.broker_id)
    assert led, f"{broker.name} leads nothing"
    leading = scene.leading()
    with scene.no_broker_exits(but=broker.broker_id):
        if is_unanswered:
            leading.pause()
        broker.process.terminate()
        if is_unanswered:
            scene.cluster.wait(lambda: has_begun_to_stop(broker), "the broker to ask")
        else:
            scene.cluster.wait(
                lambda: len(led_by(scene.cluster, broker.broker_id)) < len(led),
                "leaders to move",
                interval_s=0.001,
            )
        scene.fail(leading, failure)
        scene.cluster.wait(lambda: not broker.is_running, f"{broker.name} to have stopped")
        assert_stopped_cleanly(broker)
        assert not led_by(scene.cluster, broker.broker_id)
        broker.start()
        scene.settle()


def test_brokers_stop_cleanly_while_regents_fail(
    cluster: Cluster, tmp_path: Path, figure: Figure
) -> None:
    with scene_of(cluster, tmp_path, "led-by-all", [(1, 2, 3), (2, 3, 1), (3, 1, 2)]) as scene:
        for broker, (failure, is_unanswered) in zip(
            itertools.cycle(cluster.kafka.brokers), STOPS, strict=False
        ):
            stop_while_it_fails(scene, broker, failure, is_unanswered=is_unanswered)
    figure("longest time without an acknowledgement", f"{scene.producer.longest_gap_ms()} ms")


def test_isr_changes_are_made_by_the_next_regent(
    cluster: Cluster, tmp_path: Path, figure: Figure
) -> None:
    """A follower stops fetching: acks=all producers wait until it has left the ISRs.

    It was not the controller before Regent. Leaders that have not asked Regent yet would ask that
    one, and wait half a minute for it.
    """
    topic = "followed"
    follower = cluster.broker(
        min({*cluster.broker_ids} - {cluster.wait_for_a_broker_as_controller()})
    )
    one, two = (broker_id for broker_id in cluster.broker_ids if broker_id != follower.broker_id)
    orders = [(one, two, follower.broker_id), (two, one, follower.broker_id)]
    session_ms = REGENT_SESSION_MS
    with scene_of(cluster, tmp_path, topic, orders, regent_session_ms=session_ms) as scene:
        for failure in FAILURES:
            active_at = shrink_while_it_fails(scene, topic, follower, failure)
            figure(
                f"Regent {failure}: ISRs had shrunk after the other one led for at most",
                f"{time.monotonic() - active_at:.1f} s",
            )
            # Leaders before 3.0 acknowledge only when another record follows (KAFKA-13091): the
            # producer's retry, after 10 s.
            scene.producer.wait_for_progress()
            follower.resume()
            scene.settle()
    figure("longest time without an acknowledgement", f"{scene.producer.longest_gap_ms()} ms")


def shrink_while_it_fails(
    scene: Scene, topic: str, follower: KafkaBroker, failure: Failure
) -> float:
    """A follower stops fetching, and Regent fails before it has read that leaders ask.

    The ISRs shrink because leaders ask: the follower's session lasts. (Leader epochs may rise: a
    leader of 2.7 or 2.8 can lose a change in a take-over, and a new epoch has it ask again.)

    Returns:
        When the other Regent was the controller; monotonic seconds.
    """
    cluster, leading = scene.cluster, scene.leading()

    def in_isrs() -> list[Partition]:
        states = cluster.znodes.states(topic)
        return [tp for tp, state in states.items() if follower.broker_id in state["isr"]]

    registration = f"/brokers/ids/{follower.broker_id}"
    before = cluster.znodes.dump(registration)
    with scene.no_broker_exits():
        asked = scene.count_in_logs(SHRINKING)
        leading.pause()
        follower.pause()
        cluster.wait(
            lambda: scene.count_in_logs(SHRINKING) > asked, "leaders to ask for a smaller ISR"
        )
        assert in_isrs(), "the ISRs have shrunk without the controller"
        active_at = scene.fail(leading, failure)
        cluster.wait(in_isrs, "the ISRs to shrink", until=lambda found: not found)
    assert cluster.znodes.dump(registration) == before, "the follower's session had to end for that"
    return active_at
