"""A leader is refused an ISR change in a way after which it asks for nothing more, or for the same.

Its partition's state was written by somebody else. The version that it knows is out of date, and
nothing is under way to it from which it could learn the new one (KAFKA-14154). Or what it knows is
later than what is stored, as in a ZooKeeper that was restored from a backup. Or Regent may not
write the state.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from kazoo.security import make_acl, make_digest_acl

from sandbox.regent_process import RegentProcess
from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.figures import Figure
from tests.support.reassigning import create_topic
from tests.support.soak import versions
from tests.support.workload import Workload, consume_all, workload
from tests.support.znodes import Znodes, state_path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TOPIC = "written-by-somebody-else"
LAG_MS = 2_000
"""A follower that has fetched nothing for so long leaves the ISR."""
SESSION_MS = 60_000
"""Of brokers: the paused follower leaves by the leader's request, not by the end of its session."""


def brokers_of(version: str) -> AbstractContextManager[Cluster]:
    return cluster_of(
        version,
        inter_broker_protocol=None,
        session_timeout_ms=SESSION_MS,
        replica_lag_time_max_ms=LAG_MS,
    )


def written_to_the_end(cluster: Cluster, producer: Workload, paused: int) -> None:
    """The follower goes on, and so does the producer."""
    producer.wait_for_progress()
    cluster.broker(paused).resume()
    cluster.wait_in_sync(TOPIC)
    producer.wait_for_progress()


def assert_nothing_is_lost(cluster: Cluster, producer: Workload) -> None:
    assert producer.failed() == []
    assert set(producer.acknowledged()) <= set(consume_all(cluster.tools, TOPIC))


@pytest.mark.parametrize("version", versions("3.9.1", others=("2.8.2",)))
def test_a_leader_that_was_refused_as_out_of_date_goes_on(version: str, tmp_path: Path) -> None:
    with brokers_of(version) as cluster:
        controller_before = cluster.wait_for_a_broker_as_controller()
        with regent(cluster) as process:
            process.wait_until_active()
            # A leader that has not asked Regent yet would ask that one.
            paused = min({*cluster.broker_ids} - {controller_before})
            others = [broker_id for broker_id in cluster.broker_ids if broker_id != paused]
            create_topic(cluster, TOPIC, {0: [*others, paused]})
            with workload(cluster.tools, TOPIC, tmp_path) as producer:
                producer.wait_for_progress()
                before = cluster.znodes.state(TOPIC)
                cluster.znodes.client.set(state_path(TOPIC), json.dumps(before).encode())
                cluster.broker(paused).pause()
                after = cluster.wait(
                    lambda: cluster.znodes.state(TOPIC),
                    "the leader to have its ISR without the paused follower",
                    until=lambda state: sorted(state["isr"]) == others,
                )
                assert paused in cluster.znodes.broker_ids(), "its session had to end for that"
                assert after["leader"] == before["leader"]
                assert after["leader_epoch"] > before["leader_epoch"]
                written_to_the_end(cluster, producer, paused)
        assert_nothing_is_lost(cluster, producer)


@pytest.mark.parametrize("version", versions("3.9.1", others=("2.8.2",)))
def test_a_leader_whose_state_zookeeper_has_lost_goes_on_with_all_its_partitions(
    version: str, tmp_path: Path
) -> None:
    with brokers_of(version) as cluster:
        controller_before = cluster.wait_for_a_broker_as_controller()
        paused = min({*cluster.broker_ids} - {controller_before})
        others = [broker_id for broker_id in cluster.broker_ids if broker_id != paused]
        create_topic(cluster, TOPIC, {0: [*others, paused], 1: [*others, paused]})
        backup = cluster.znodes.state(TOPIC)
        known = {**backup, "leader_epoch": backup["leader_epoch"] + 5}
        for _ in range(5):  # a partition epoch is the number of writes
            cluster.znodes.client.set(state_path(TOPIC), json.dumps(known).encode())
        with regent(cluster) as process:
            process.wait_until_active()
            with workload(cluster.tools, TOPIC, tmp_path) as producer:
                producer.wait_for_progress()
                cluster.wait_for_consistency()
                cluster.znodes.client.delete(state_path(TOPIC))
                cluster.znodes.client.create(state_path(TOPIC), json.dumps(backup).encode())
                cluster.broker(paused).pause()
                for partition in (0, 1):
                    after = cluster.wait(
                        partial(cluster.znodes.state, TOPIC, partition),
                        f"the leader to have the ISR of {partition} without the paused follower",
                        until=lambda state: sorted(state["isr"]) == others,
                    )
                    assert after["leader"] == backup["leader"]
                assert paused in cluster.znodes.broker_ids(), "its session had to end for that"
                assert cluster.znodes.state(TOPIC)["leader_epoch"] > known["leader_epoch"]
                written_to_the_end(cluster, producer, paused)
        assert_nothing_is_lost(cluster, producer)


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
    with brokers_of("3.9.1") as cluster:
        controller_before = cluster.wait_for_a_broker_as_controller()
        with regent(cluster) as process:
            process.wait_until_active()
            paused = min({*cluster.broker_ids} - {controller_before})
            others = [broker_id for broker_id in cluster.broker_ids if broker_id != paused]
            create_topic(cluster, TOPIC, {0: [*others, paused]})
            with (
                Znodes(cluster.kafka.zookeeper, auth_data=[("digest", ":".join(OWNER))]) as znodes,
                workload(cluster.tools, TOPIC, tmp_path) as producer,
            ):
                producer.wait_for_progress()
                rights, _ = znodes.client.get_acls(state_path(TOPIC))
                znodes.client.set_acls(state_path(TOPIC), READ_ONLY)
                cluster.broker(paused).pause()
                cluster.wait(
                    lambda: refusals(process),
                    "changes to be refused",
                    until=lambda count: count >= REFUSALS,
                )
                messages = Counter(entry["message"] for entry in process.log_entries())
                figure("log entries until five changes were refused", messages.most_common(3))
                znodes.client.set_acls(state_path(TOPIC), rights)
                cluster.wait(
                    lambda: cluster.znodes.state(TOPIC),
                    "the leader to have its ISR without the paused follower",
                    until=lambda state: sorted(state["isr"]) == others,
                    timeout_s=120,
                )
                written_to_the_end(cluster, producer, paused)
        assert_nothing_is_lost(cluster, producer)
