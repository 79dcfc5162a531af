"""Two Regents that know each other, on brokers of two versions, while records are written with
acks=all: one that dies, freezes or stops is followed by the other, and by no broker in between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, cluster_of, controller_id_of
from tests.support.clusters import Clusters
from tests.support.figures import Figure
from tests.support.reassigning import create_topic
from tests.support.replica_pair import Pair, pair_of
from tests.support.soak import soak
from tests.support.workload import consume_all, workload
from tests.support.znodes import difference

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SESSION_TIMEOUT_MS = 40_000
"""Longer than any of this takes: what is seen does not come from the end of a session."""

BACKOFF_S = 3_600
"""Longer than a session: a wait between take-overs would last until the session has ended."""

OF_REPLICAS = "/regent/"
QUEUE = "/regent/election"
PRESENCE = "/regent/election-presence"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("2.8.2", "2.6"), id="2.8.2", marks=soak("versions")),
        pytest.param(("3.9.1", None), id="3.9.1"),
    ],
)
def cluster(request: pytest.FixtureRequest, clusters: Clusters) -> Iterator[Cluster]:
    version, protocol = request.param
    if protocol is None:
        yield clusters.healthy(version)
        return
    with cluster_of(version, inter_broker_protocol=protocol) as cluster:
        cluster.restore()
        yield cluster


@pytest.fixture
def pair(cluster: Cluster) -> Iterator[Pair]:
    with pair_of(cluster, session_timeout_ms=SESSION_TIMEOUT_MS) as pair:
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


def has_logged(process: RegentProcess, message: str) -> bool:
    return any(entry["message"] == message for entry in process.log_entries())


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


def test_one_that_was_killed_and_started_again_does_not_wait_for_its_former_self(
    pair: Pair, figure: Figure
) -> None:
    """It stands behind its own former place, which lives as long as the session of the dead one."""
    cluster, znodes = pair.cluster, pair.cluster.znodes
    epoch = znodes.controller_epoch()
    # Registrations are named by their sessions.
    former = set(znodes.children(PRESENCE))
    assert len(former) == 2
    pair.standby.kill()
    pair.standby.start()
    logs = [pair.active.log_path, pair.standby.log_path]
    cluster.wait(lambda: len(znodes.children(QUEUE)) == 3, "it to queue up", logs=logs)
    cluster.wait(lambda: None in others(pair.standby), "it to hear the other one", logs=logs)
    began = time.monotonic()
    pair.active.kill()
    elected = pair.wait_for_take_over()
    # It has not waited for them: both sessions live.
    assert former < set(znodes.children(PRESENCE))
    assert len(znodes.children(QUEUE)) == 1
    figure("SIGKILL to elected, restarted before", f"{(elected - began) * 1000:.0f} ms")
    pair.standby.wait_until_active()
    cluster.wait_for_announced_controller()
    assert znodes.controller_epoch() == epoch + 1
    (reported,) = [
        entry
        for entry in pair.standby.log_entries()
        if entry["message"] == "Taken over from another replica"
    ]
    assert "does not answer" in reported["passed"]
    assert suspicions(pair.standby) == {"dead": 1, "gone": 0, "replaced": 0, "frozen": 0}
    cluster.wait_for_consistency()
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


def test_a_second_killed_one_is_followed_while_the_first_is_registered(cluster: Cluster) -> None:
    """The one that follows both has taken over before, and was deposed when it was frozen."""
    znodes = cluster.znodes
    with pair_of(
        cluster, session_timeout_ms=SESSION_TIMEOUT_MS, suspicion_backoff_s=BACKOFF_S
    ) as pair:
        epoch, logs = znodes.controller_epoch(), [pair.active.log_path, pair.standby.log_path]

        def wait_until_heard() -> None:
            cluster.wait(lambda: None in others(pair.standby), "it to hear the other", logs=logs)

        pair.active.kill()
        pair.wait_for_take_over()
        pair.standby.wait_until_active()
        pair.active.start()
        pair.change_places()
        wait_until_heard()

        pair.active.pause()
        pair.wait_for_take_over()
        pair.standby.wait_until_active()
        pair.active.resume()
        pair.change_places()
        resigned = "Controller resigned"
        cluster.wait(lambda: has_logged(pair.standby, resigned), "it to resign", logs=logs)
        cluster.wait(lambda: len(znodes.children(QUEUE)) == 2, "it to queue up", logs=logs)
        wait_until_heard()

        registered = set(znodes.children(PRESENCE))
        assert len(registered) == 3
        pair.active.kill()
        pair.wait_for_take_over()
        # It has waited for neither of the killed ones: their sessions live.
        assert registered == set(znodes.children(PRESENCE))
        assert znodes.controller_epoch() == epoch + 3
        pair.standby.wait_until_active()
        cluster.wait_for_announced_controller()
        pair.active.start()


def test_one_that_is_stopped_hands_over_to_the_other(pair: Pair, figure: Figure) -> None:
    cluster, epoch = pair.cluster, pair.cluster.znodes.controller_epoch()
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
            pair.change_places()
            pair.wait_until_prepared()
    assert cluster.znodes.controller_epoch() == epoch + 2
    cluster.wait_for_consistency()


def others(process: RegentProcess) -> list[str | None]:
    """Why the others do not answer it, None for one that does."""
    found: dict[str, str | None] = ((process.status() or {}).get("replicas") or {})["others"]
    return list(found.values())


def suspicions(process: RegentProcess) -> dict[str, int]:
    """How often it has suspected another one, by reason."""
    found: dict[str, int] = (process.status() or {})["replicas"]["suspicions"]
    return found
