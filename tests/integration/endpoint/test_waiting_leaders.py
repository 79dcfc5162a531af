"""A leader is refused an ISR change in a way after which it asks for nothing more, or for the same.

Its partition's state was written by somebody else. The version that it knows is out of date, and
nothing is under way to it from which it could learn the new one (KAFKA-14154). Or what it knows is
later than what is stored, as in a ZooKeeper that was restored from a backup. Or Regent may not
write the state.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kazoo.security import make_acl, make_digest_acl

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.figures import Figure
from tests.support.reassigning import create_topic
from tests.support.soak import versions
from tests.support.workload import lossless_workload
from tests.support.znodes import Znodes, state_path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPIC = "written-by-somebody-else"
LAG_MS = 2_000
"""A follower that has fetched nothing for so long leaves the ISR."""
SESSION_MS = 60_000
"""Of brokers: the paused follower leaves by the leader's request, not by the end of its session."""


class Scene(NamedTuple):
    """Brokers one of which is a follower only, and was not the controller before Regent.

    A leader that has not asked Regent yet would ask a broker that was.
    """

    cluster: Cluster
    paused: int
    others: list[int]

    def wait_for_isr(self, partition: int = 0) -> dict[str, Any]:
        """Wait until the leader has its ISR without the paused follower; the state."""
        found: dict[str, Any] = self.cluster.wait(
            lambda: self.cluster.znodes.state(TOPIC, partition),
            f"the leader to have the ISR of {partition} without the paused follower",
            until=lambda state: sorted(state["isr"]) == self.others,
        )
        return found

    def check_session(self) -> None:
        """The paused follower has left by the leader's request."""
        assert self.paused in self.cluster.znodes.broker_ids(), "its session had to end for that"

    @contextlib.contextmanager
    def written(self, directory: Path) -> Iterator[None]:
        """Write to the topic; the follower goes on at the end, and nothing is lost."""
        with lossless_workload(self.cluster.tools, TOPIC, directory) as producer:
            yield
            producer.wait_for_progress()
            self.cluster.broker(self.paused).resume()
            self.cluster.wait_in_sync(TOPIC)


@contextlib.contextmanager
def scene_of(version: str, *, partitions: int = 1) -> Iterator[Scene]:
    with cluster_of(
        version,
        inter_broker_protocol=None,
        session_timeout_ms=SESSION_MS,
        replica_lag_time_max_ms=LAG_MS,
    ) as cluster:
        paused = min({*cluster.broker_ids} - {cluster.wait_for_a_broker_as_controller()})
        others = [broker_id for broker_id in cluster.broker_ids if broker_id != paused]
        create_topic(cluster, TOPIC, {p: [*others, paused] for p in range(partitions)})
        yield Scene(cluster, paused, others)


@contextlib.contextmanager
def led(scene: Scene) -> Iterator[RegentProcess]:
    with regent(scene.cluster) as process:
        process.wait_until_active()
        yield process


@pytest.mark.parametrize("version", versions("3.9.1", others=("2.8.2",)))
def test_a_leader_that_was_refused_as_out_of_date_goes_on(version: str, tmp_path: Path) -> None:
    with scene_of(version) as scene, led(scene), scene.written(tmp_path):
        znodes = scene.cluster.znodes
        before = znodes.state(TOPIC)
        znodes.client.set(state_path(TOPIC), json.dumps(before).encode())
        scene.cluster.broker(scene.paused).pause()
        after = scene.wait_for_isr()
        scene.check_session()
        assert after["leader"] == before["leader"]
        assert after["leader_epoch"] > before["leader_epoch"]


@pytest.mark.parametrize("version", versions("3.9.1", others=("2.8.2",)))
def test_a_leader_whose_state_zookeeper_has_lost_goes_on_with_all_its_partitions(
    version: str, tmp_path: Path
) -> None:
    with scene_of(version, partitions=2) as scene:
        znodes = scene.cluster.znodes
        backup = znodes.state(TOPIC)
        known = {**backup, "leader_epoch": backup["leader_epoch"] + 5}
        for _ in range(5):  # a partition epoch is the number of writes
            znodes.client.set(state_path(TOPIC), json.dumps(known).encode())
        with led(scene), scene.written(tmp_path):
            scene.cluster.wait_for_consistency()
            znodes.client.delete(state_path(TOPIC))
            znodes.client.create(state_path(TOPIC), json.dumps(backup).encode())
            scene.cluster.broker(scene.paused).pause()
            for partition in (0, 1):
                assert scene.wait_for_isr(partition)["leader"] == backup["leader"]
            scene.check_session()
            assert znodes.state(TOPIC)["leader_epoch"] > known["leader_epoch"]


OWNER = ("owner", "secret")
READ_ONLY = [make_acl("world", "anyone", read=True), make_digest_acl(*OWNER, all=True)]
REFUSALS = 5
"""So many in a row are waited for."""


def refusals(process: RegentProcess) -> int:
    """How many writes were refused, also those that had no room in the log."""
    entries = [e for e in process.log_entries() if e["message"] == "ISR changes not written"]
    return sum(1 + (entry["entries_left_out"] or 0) for entry in entries)


def test_a_leader_whose_state_may_not_be_written_goes_on_when_it_may(
    tmp_path: Path, figure: Figure
) -> None:
    """It asks in vain meanwhile, and asks no storm."""
    with (
        scene_of("3.9.1") as scene,
        led(scene) as process,
        Znodes(scene.cluster.kafka.zookeeper, auth_data=[("digest", ":".join(OWNER))]) as znodes,
        scene.written(tmp_path),
    ):
        rights, _ = znodes.client.get_acls(state_path(TOPIC))
        znodes.client.set_acls(state_path(TOPIC), READ_ONLY)
        scene.cluster.broker(scene.paused).pause()
        scene.cluster.wait(
            lambda: refusals(process),
            "changes to be refused",
            until=lambda count: count >= REFUSALS,
        )
        messages = Counter(entry["message"] for entry in process.log_entries())
        figure("log entries until five changes were refused", messages.most_common(3))
        znodes.client.set_acls(state_path(TOPIC), rights)
        scene.wait_for_isr()
