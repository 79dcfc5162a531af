"""Two Regents that know each other, on brokers of two versions, while records are written with
acks=all: one that dies, freezes or stops is followed by the other, and by no broker in between."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox.regent_process import RegentProcess
from tests.integration.controller.cluster import (
    Cluster,
    cluster_of,
    controller_id_of,
    regent,
)
from tests.integration.controller.reassigning import create_topic
from tests.integration.controller.workload import consume_all, workload
from tests.integration.controller.znodes import difference
from tests.support.figures import Figure

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SESSION_TIMEOUT_MS = 40_000
"""Longer than any of this takes: what is seen does not come from the end of a session."""

OF_REPLICAS = "/regent/"


@pytest.fixture(
    scope="module",
    params=[("2.8.2", "2.6"), ("3.9.1", None)],
    ids=["2.8.2", "3.9.1"],
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    version, protocol = request.param
    with cluster_of(version, inter_broker_protocol=protocol) as cluster:
        cluster.restore()
        yield cluster


class Pair:
    """Two Regents.

    Attributes:
        active: The one that leads.
        standby: The other one, whose cache is current, and which is asked by the active one.
    """

    def __init__(self, cluster: Cluster, active: RegentProcess, standby: RegentProcess) -> None:
        self.cluster = cluster
        self.active = active
        self.standby = standby

    def wait_until_prepared(self) -> None:
        def is_prepared() -> list[Any]:
            statuses = [process.status() or {} for process in (self.active, self.standby)]
            others = [(status.get("replicas") or {}).get("others") for status in statuses]
            phase = (statuses[1].get("warmStandby") or {}).get("phase")
            return [phase, *(list((other or {"none": ""}).values()) for other in others)]

        self.cluster.wait(
            is_prepared,
            "replicas that know each other",
            until=lambda seen: seen == ["current", [None], [None]],
            logs=[self.active.log_path, self.standby.log_path],
        )

    def wait_for_take_over(self) -> float:
        """Wait until the standby holds ``/controller``. When that was seen, monotonic seconds."""
        self.cluster.wait(
            self.cluster.znodes.controller,
            "the standby to be elected",
            until=lambda controller_id: controller_id == controller_id_of(self.standby),
            interval_s=0.001,
            logs=[self.active.log_path, self.standby.log_path],
        )
        return time.monotonic()


@pytest.fixture
def pair(cluster: Cluster) -> Iterator[Pair]:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(
                regent(
                    cluster,
                    name=name,
                    warm_standby=True,
                    replica_host="127.0.0.1",
                    zookeeper_session_timeout_ms=SESSION_TIMEOUT_MS,
                )
            )
            for name in ("regent-a", "regent-b")
        )
        first.wait_until_active()
        pair = Pair(cluster, first, second)
        pair.wait_until_prepared()
        cluster.wait_for_announced_controller()
        yield pair


@contextmanager
def written(cluster: Cluster, topic: str, directory: Path, figure: Figure) -> Iterator[None]:
    """Records are written meanwhile, and each that was acknowledged is there afterwards."""
    create_topic(cluster, topic, {p: [1 + (p + i) % 3 for i in range(3)] for p in range(6)})
    with workload(cluster.tools, topic, directory) as producer:
        producer.wait_for_progress()
        yield
        producer.wait_for_progress()
    assert producer.failed() == []
    acknowledged = producer.acknowledged()
    assert acknowledged.keys() <= set(consume_all(cluster.tools, topic))
    figure(f"{topic}: longest time without an acknowledgement", f"{producer.longest_gap_ms()} ms")


def log_of(process: RegentProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in process.process.log_of_this_run().splitlines()]


def has_logged(process: RegentProcess, message: str) -> bool:
    return any(entry["message"] == message for entry in log_of(process))


def test_one_that_is_killed_is_followed_at_once(pair: Pair, tmp_path: Path, figure: Figure) -> None:
    cluster, epoch = pair.cluster, pair.cluster.znodes.controller_epoch()
    with written(cluster, "killed", tmp_path, figure):
        began = time.monotonic()
        pair.active.kill()
        elected = pair.wait_for_take_over()
        pair.standby.wait_until_active()
        cluster.wait_for_announced_controller()
        announced = time.monotonic()
        figure("SIGKILL to elected", f"{(elected - began) * 1000:.0f} ms")
        figure("SIGKILL to all brokers knowing it", f"{(announced - began) * 1000:.0f} ms")
    # Each election raises it by one: there was no other.
    assert cluster.znodes.controller_epoch() == epoch + 1
    cluster.wait_for_consistency()
    assert suspicions(pair.standby)["dead"] == 1
    pair.active.start()


def test_one_that_is_frozen_is_followed_and_does_no_harm_when_it_wakes_up(
    pair: Pair, tmp_path: Path, figure: Figure
) -> None:
    cluster, znodes = pair.cluster, pair.cluster.znodes
    epoch, successor = znodes.controller_epoch(), controller_id_of(pair.standby)
    with written(cluster, "frozen", tmp_path, figure):
        began = time.monotonic()
        pair.active.pause()
        elected = pair.wait_for_take_over()
        figure("SIGSTOP to elected", f"{(elected - began) * 1000:.0f} ms")
        pair.standby.wait_until_active()
        assert cluster.wait_for_announced_controller() == successor
        cluster.wait_for_consistency()
        before = znodes.dump()
        obeyed: set[int] = set()

        def has_resigned() -> bool:
            obeyed.update(cluster.metadata(broker_id).controller_id for broker_id in before_ids)
            return (
                has_logged(pair.active, "Controller resigned")
                and len(znodes.children("/regent/election")) == 2
            )

        before_ids = cluster.broker_ids
        pair.active.resume()
        cluster.wait(has_resigned, "it to resign", interval_s=0.01, logs=[pair.active.log_path])
        obeyed.update(cluster.metadata(broker_id).controller_id for broker_id in before_ids)
        changed = difference(before, znodes.dump())
        # Leaders below inter.broker.protocol.version 2.7 may change an ISR; nobody else writes.
        assert all(path.startswith(OF_REPLICAS) for path in changed), changed
        assert obeyed == {successor}
    assert znodes.controller_epoch() == epoch + 1
    assert suspicions(pair.standby)["frozen"] == 1
    assert pair.standby.wait_until_active()["isActive"]
    assert sum(suspicions(pair.active).values()) == 0
    cluster.wait_for_consistency()


def test_one_that_is_stopped_hands_over_to_the_other(
    pair: Pair, tmp_path: Path, figure: Figure
) -> None:
    cluster, epoch = pair.cluster, pair.cluster.znodes.controller_epoch()
    with written(cluster, "stopped", tmp_path, figure):
        began = time.monotonic()
        pair.active.process.terminate()
        elected = pair.wait_for_take_over()
        figure("SIGTERM to elected", f"{(elected - began) * 1000:.0f} ms")
        pair.standby.wait_until_active()
        pair.active.stop()
        assert pair.active.process.exit_code == 0
        assert has_logged(pair.active, "Another replica has taken over")
    assert cluster.znodes.controller_epoch() == epoch + 1
    assert sum(suspicions(pair.standby).values()) == 0
    cluster.wait_for_consistency()

    # Nobody is left to hand over to.
    pair.standby.process.terminate()
    cluster.wait_for_a_broker_as_controller()
    pair.standby.stop()
    assert has_logged(pair.standby, "No other replica is ready to take over")
    assert cluster.znodes.controller_epoch() == epoch + 2


def test_pods_are_replaced_one_by_one_without_a_broker_in_between(
    pair: Pair, tmp_path: Path, figure: Figure
) -> None:
    """As by a RollingUpdate: the new one first, then the old one stops."""
    cluster, epoch = pair.cluster, pair.cluster.znodes.controller_epoch()
    with written(cluster, "replaced", tmp_path, figure):
        for _ in range(2):
            pair.active.stop()
            pair.active.start()
            pair.standby.wait_until_active()
            pair.active, pair.standby = pair.standby, pair.active
            pair.wait_until_prepared()
    assert cluster.znodes.controller_epoch() == epoch + 2
    cluster.wait_for_consistency()


def suspicions(process: RegentProcess) -> dict[str, int]:
    """How often it has suspected another one, by reason."""
    found: dict[str, int] = (process.status() or {})["replicas"]["suspicions"]
    return found
