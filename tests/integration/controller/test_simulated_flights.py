"""``regent simulate`` says what happens to a real cluster: the same steps there and here."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.command_line import run_regent
from tests.support.reassigning import create_topic
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, pytest.mark.slow]

MIN_ISR = 2
TOPICS = {
    "three": {p: [(p + k) % 5 + 1 for k in range(3)] for p in range(12)},
    "two": {p: [p % 5 + 1, (p + 2) % 5 + 1] for p in range(7)},
    "one": {p: [p % 5 + 1] for p in range(6)},
}
STEPS = ("--kill", "3", "--kill", "5", "--stop", "1", "--start", "3", "--start", "1,5")


def as_simulated(step: dict[str, Any]) -> dict[str, Any]:
    return {
        "leaders": {int(broker): led for broker, led in step["leaders"].items()},
        "leaderless": sorted(step["withoutLeader"]),
        "below min isr": sorted(step["belowMinIsr"]),
        "under-replicated": step["underReplicated"],
    }


def as_it_is(cluster: Cluster) -> dict[str, Any]:
    """The same of the real cluster, by its znodes."""
    states = {f"{topic}-{p}": s for (topic, p), s in cluster.znodes.states(*TOPICS).items()}
    replicas = {f"{topic}-{p}": r for topic, listed in TOPICS.items() for p, r in listed.items()}
    led = Counter(state["leader"] for state in states.values())
    return {
        "leaders": {broker: led[broker] for broker in cluster.znodes.broker_ids()},
        "leaderless": sorted(name for name, state in states.items() if state["leader"] == -1),
        "below min isr": sorted(
            name
            for name, state in states.items()
            if name.startswith("three-") and state["leader"] != -1 and len(state["isr"]) < MIN_ISR
        ),
        "under-replicated": sum(
            len(state["isr"]) < len(replicas[name]) for name, state in states.items()
        ),
    }


def carry_out(cluster: Cluster, option: str, brokers: list[int]) -> None:
    match option:
        case "--kill":
            for broker in brokers:
                cluster.kill_broker(broker)
        case "--stop":
            for broker in brokers:
                cluster.broker(broker).stop()
        case "--start":
            for broker in brokers:
                cluster.broker(broker).launch()
            for broker in brokers:
                cluster.broker(broker).wait_until_ready()


@soak("controller")
@pytest.mark.parametrize("controller", ["regent", "broker"])
def test_a_real_cluster_does_what_was_simulated(controller: str, tmp_path: Path) -> None:
    """Whoever is the controller: the rules are Kafka's."""
    protocol = None if controller == "regent" else "2.6"
    file = tmp_path / "snapshot.json"
    with (
        cluster_of("3.9.1", brokers=5, inter_broker_protocol=protocol) as cluster,
        regent(cluster) if controller == "regent" else contextlib.nullcontext(),
    ):
        for topic, assignment in TOPICS.items():
            create_topic(cluster, topic, assignment)
        config = {"version": 1, "config": {"min.insync.replicas": str(MIN_ISR)}}
        cluster.znodes.client.set("/config/topics/three", json.dumps(config).encode())
        taken = run_regent("snapshot", "--zookeeper", cluster.kafka.zookeeper, "-o", file)
        assert taken.exit_code in (0, 9), taken  # sizes may be missing

        flown = run_regent("simulate", file, *STEPS, "--no-leader-balance", "--json")
        assert flown.exit_code == 5, flown
        report = json.loads(flown.stdout)
        assert as_simulated(report["start"]) == as_it_is(cluster)

        for option, value, step in zip(STEPS[::2], STEPS[1::2], report["steps"], strict=True):
            carry_out(cluster, option, [int(broker) for broker in value.split(",")])
            cluster.wait(
                lambda: as_it_is(cluster),
                f"{option} {value} to have the simulated outcome {as_simulated(step)}",
                until=lambda found, step=step: found == as_simulated(step),
            )
        assert any(step["withoutLeader"] for step in report["steps"])
        assert any(step["belowMinIsr"] for step in report["steps"])
        assert report["steps"][-1]["underReplicated"] == 0


def test_a_min_isr_that_cannot_be_read_is_told(cluster: Cluster, tmp_path: Path) -> None:
    cluster.znodes.client.create("/config/topics/odd", b'{"version":1,"config":{}}')
    create_odd = b'{"version":1,"partitions":{"0":[1,2]}}'
    cluster.znodes.client.create("/brokers/topics/odd", create_odd)
    cluster.wait_in_sync("odd")
    cluster.znodes.client.set(
        "/config/topics/odd", b'{"version":1,"config":{"min.insync.replicas":"few"}}'
    )
    file = tmp_path / "snapshot.json"
    taken = run_regent("snapshot", "--zookeeper", cluster.kafka.zookeeper, "-o", file)
    cluster.znodes.client.set("/config/topics/odd", b'{"version":1,"config":{}}')
    assert taken.exit_code in (0, 9), taken
    assert "/config/topics/odd" in taken.stderr
    assert "min.insync.replicas 'few' is no number" in taken.stderr
    assert "odd" not in json.loads(file.read_text()).get("topics", {})
    # A broker that had to create its replica meanwhile has none, and gets none by itself.
    cluster.znodes.client.create("/admin/delete_topics/odd")
    cluster.wait(
        lambda: cluster.znodes.client.exists("/brokers/topics/odd") is not None,
        "the topic to be deleted",
        until=lambda is_there: not is_there,
    )
