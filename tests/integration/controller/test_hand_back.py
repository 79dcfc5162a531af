"""Regent is stopped: a broker takes over at once and finds a cluster like its own."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.support.cluster import Cluster, regent
from tests.support.figures import Figure
from tests.support.resources import Resources, topic
from tests.support.znodes import REPORTS_OF_ISRS, Znode, state_path

pytestmark = pytest.mark.integration


def test_after_sigterm_a_broker_is_the_controller_and_finds_nothing_foreign(
    cluster: Cluster, resources: Resources, figure: Figure
) -> None:
    znodes = cluster.znodes
    cluster.tools.create_topic("by-tool", partitions=2, replication_factor=3)
    stock = znodes.dump()
    with regent(
        cluster, kubeconfig=resources.api.kubeconfig, namespace=resources.namespace
    ) as process:
        process.wait_until_active()
        resources.apply(
            topic("by-regent", partitions=2, config={"retention.ms": 3_600_000}),
            topic("short-lived", partitions=2),
        )
        resources.wait_ready("by-regent", "short-lived")
        resources.delete("short-lived")
        cluster.wait_for_consistency()
        epoch = znodes.controller_epoch()

        began = time.monotonic()
        process.process.terminate()
        cluster.wait(
            znodes.controller,
            "a broker to hold /controller",
            until=lambda controller_id: controller_id in cluster.broker_ids,
            interval_s=0.001,
        )
        elected = time.monotonic()
        cluster.wait_for_announced_controller()
        announced = time.monotonic()
        process.stop()
        figure("SIGTERM to a broker in /controller", f"{(elected - began) * 1000:.0f} ms")
        figure("SIGTERM to all brokers knowing it", f"{(announced - began) * 1000:.0f} ms")
        assert process.process.exit_code == 0
    assert znodes.controller_epoch() == epoch + 1
    cluster.wait_for_consistency()

    handed_back = znodes.dump()
    created = handed_back.keys() - stock.keys()
    assert {path for path in created if not path.startswith(("/regent", REPORTS_OF_ISRS))} == {
        "/brokers/topics/by-regent",
        "/brokers/topics/by-regent/partitions",
        "/brokers/topics/by-regent/partitions/0",
        "/brokers/topics/by-regent/partitions/0/state",
        "/brokers/topics/by-regent/partitions/1",
        "/brokers/topics/by-regent/partitions/1/state",
        "/config/topics/by-regent",
        *(path for path in created if re.fullmatch(r"/config/changes/config_change_\d+", path)),
    }
    # Notes of Regent's that are no longer needed go, and brokers remove old notifications.
    passing = ("/regent/", "/config/changes/", REPORTS_OF_ISRS)
    lasting = {path for path in stock if not path.startswith(passing)}
    assert sorted(lasting - handed_back.keys()) == []
    # Earlier terms may have left nodes there that they needed, and it is noted whom Regent deposed.
    own = {path for path in handed_back if path.startswith("/regent")}
    left_before = {path for path in stock if path.startswith("/regent")}
    noted = {path for path in own if path.startswith("/regent/deposed_controllers")}
    assert {"/regent", "/regent/election"} <= own
    assert sorted(own - noted - left_before - {"/regent", "/regent/election"}) == []
    for by_regent, by_broker in (
        ("/brokers/topics/by-regent", "/brokers/topics/by-tool"),
        (state_path("by-regent"), state_path("by-tool")),
        ("/config/topics/by-regent", "/config/topics/by-tool"),
    ):
        assert shape(handed_back[by_regent]) == shape(stock[by_broker]), by_regent

    # and the broker's controller can go on with it
    cluster.tools.topics("--alter", "--topic=by-regent", "--partitions=3")
    grown = cluster.znodes.assignment("by-regent")
    assert grown is not None
    assert cluster.wait_for_leader("by-regent", grown[2][0], 2)
    cluster.tools.topics("--delete", "--topic=by-regent")
    cluster.wait(
        lambda: znodes.assignment("by-regent") is None, "the broker's controller to delete it"
    )


def test_more_signals_do_not_cut_the_hand_over_short(cluster: Cluster) -> None:
    with regent(cluster) as process:
        process.wait_until_active()
        epoch = cluster.znodes.controller_epoch()

        def holder() -> int | None:
            process.process.terminate()
            return cluster.znodes.controller()

        cluster.wait(
            holder,
            "a broker to hold /controller",
            until=lambda controller_id: controller_id in cluster.broker_ids,
            interval_s=0.001,
        )
        cluster.wait(
            lambda: process.process.exit_code, "it to end well", until=lambda code: code == 0
        )
        assert '"Controller released"' in process.process.log_of_this_run()
    cluster.wait_for_a_broker_as_controller()
    assert cluster.znodes.controller_epoch() == epoch + 1


def shape(node: Znode) -> dict[str, str]:
    """The fields of a node's content and their types."""
    return {name: type(value).__name__ for name, value in json.loads(node.data).items()}
