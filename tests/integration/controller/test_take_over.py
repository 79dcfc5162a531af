"""A cluster that has lived under a broker's controller is taken over as it is, and given back."""

from __future__ import annotations

import time
from typing import Any

import pytest

from regent.zk_data.stray_replicas import strays_on
from tests.support.cluster import Cluster, regent
from tests.support.figures import Figure
from tests.support.metadata import Partition

pytestmark = [pytest.mark.integration, pytest.mark.slow]

States = dict[Partition, dict[str, Any]]


def test_a_cluster_with_a_past_is_taken_over_and_given_back_unharmed(
    cluster: Cluster, figure: Figure
) -> None:
    znodes, tools = cluster.znodes, cluster.tools
    tools.create_topic("inherited", partitions=6, replication_factor=3)
    tools.topics("--create", "--topic=alone", "--replica-assignment=3")
    tools.create_topic("leaving", partitions=4, replication_factor=3)
    tools.produce("inherited", ["one", "two", "three"])
    assert len(tools.consume("inherited", 3)) == 3  # by a group, whose offsets are a topic, too
    assert len(znodes.assignment("__consumer_offsets") or {}) == 5
    cluster.kill_broker(3)
    cluster.wait_for_a_broker_as_controller()
    assert cluster.wait_for_leader("alone", -1)
    tools.topics("--delete", "--topic=leaving")
    assert znodes.get("/admin/delete_topics/leaving")
    cluster.wait_for_consistency(ignore=["leaving"])
    lasting = [topic for topic in znodes.topics() if topic != "leaving"]
    before = znodes.states(*lasting)

    with regent(cluster) as process:
        began = time.monotonic()
        process.wait_until_active()
        figure("the controller after the start", f"{time.monotonic() - began:.1f} s")
        cluster.wait_for_announced_controller()
        cluster.wait_for_consistency(ignore=["leaving"])
        taken_over = znodes.states(*lasting)
        assert_sound(cluster, taken_over)
        assert taken_over.keys() == before.keys()
        for tp, state in taken_over.items():
            assert (state["leader"], state["isr"]) == (before[tp]["leader"], before[tp]["isr"]), tp
            assert state["leader_epoch"] >= before[tp]["leader_epoch"], tp
        # a broker's controller would wait for broker 3
        cluster.wait(lambda: znodes.assignment("leaving") is None, "the deletion to be completed")
        assert znodes.get("/admin/delete_topics/leaving") is None
        assert list(cluster.broker(3).state_path.glob("data-*/leaving-[0-9]"))
        assert len(tools.consume("inherited", 3)) == 3

        cluster.broker(3).start()
        began = time.monotonic()
        cluster.wait(
            lambda: znodes.children(strays_on(3)), "the rest to be deleted", until=lambda x: not x
        )
        figure("the rest deleted after the broker's return", f"{time.monotonic() - began:.1f} s")
        assert not list(cluster.broker(3).state_path.glob("data-*/leaving-[0-9]"))
        assert (
            cluster.wait_for_leader("alone", 3)["leader_epoch"] > before["alone", 0]["leader_epoch"]
        )
        cluster.wait_in_sync()
        cluster.wait_for_consistency()
        of_regent = znodes.states()
        assert_sound(cluster, of_regent)

    cluster.wait_for_a_broker_as_controller()
    cluster.wait_for_consistency()
    given_back = znodes.states()
    assert_sound(cluster, given_back)
    assert given_back.keys() == of_regent.keys()
    for tp, state in given_back.items():
        assert state["leader_epoch"] >= of_regent[tp]["leader_epoch"], tp
    tools.create_topic("afterwards", partitions=2, replication_factor=3)
    assert len(tools.consume("inherited", 3)) == 3


def assert_sound(cluster: Cluster, states: States) -> None:
    """What holds for every partition that is not being deleted, whoever is the controller."""
    epoch, live = cluster.znodes.controller_epoch(), cluster.znodes.broker_ids()
    for (topic, partition), state in states.items():
        where = f"{topic}-{partition}: {state}"
        assert state["controller_epoch"] <= epoch, where
        assert state["isr"], where
        assert set(state["isr"]) <= set((cluster.znodes.assignment(topic) or {})[partition]), where
        if state["leader"] == -1:
            assert not set(state["isr"]) & set(live), where
        else:
            assert state["leader"] in state["isr"], where
            assert state["leader"] in live, where
