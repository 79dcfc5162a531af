"""Kafka's own tools of several releases, with nothing but Regent's address."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sandbox.java import write_properties
from sandbox.process import Outcome
from tests.integration.endpoint.clients_support import TOPIC, ServedCluster, served_cluster
from tests.support.cluster import Cluster
from tests.support.soak import soak, versions
from tests.support.workload import consume_all, workload

pytestmark = [pytest.mark.integration, pytest.mark.slow]

RELEASES = versions("1.1.1", "3.9.1", others=("2.4.1", "2.8.2"))
SINCE_2_4 = versions("3.9.1", others=("2.4.1", "2.8.2"))
AT_ONCE = ("1.1.1", "3.9.1")
MESSAGES = 20

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def served(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCluster]:
    with served_cluster(cluster) as started:
        # Time enough for a busy machine: some of the tools have five seconds.
        properties = tmp_path_factory.mktemp("tools") / "client.properties"
        names = ("request.timeout.ms", "default.api.timeout.ms")
        write_properties(properties, dict.fromkeys(names, 120_000))
        started.command_config = properties
        yield started


def patient(served: ServedCluster, release: str, tool: str, arguments: Sequence[str]) -> list[str]:
    """Arguments of a tool with a longer timeout."""
    if tool == "kafka-console-consumer" or (tool, release) == ("kafka-log-dirs", "1.1.1"):
        return list(arguments)
    more = ["--timeout=120000"] if tool == "kafka-consumer-groups" else []
    return [*arguments, *more, f"--command-config={served.command_config}"]


def run(served: ServedCluster, release: str, tool: str, *arguments: str) -> Outcome:
    """A tool at Regent's address."""
    outcome = run_unchecked(served, release, tool, *arguments)
    assert outcome.exit_code == 0, outcome
    return outcome


def run_unchecked(served: ServedCluster, release: str, tool: str, *arguments: str) -> Outcome:
    server = f"--bootstrap-server={served.address}"
    return served.tools(release).run(
        tool, server, *patient(served, release, tool, arguments), check=False
    )


def same(served: ServedCluster, release: str, tool: str, *arguments: str) -> str:
    """What a tool prints both at Regent's address and at a broker's."""
    found = []
    for tools in (served.tools(release), served.tools_at_a_broker(release)):
        server = f"--bootstrap-server={tools.bootstrap_servers}"
        outcome = tools.run(tool, server, *patient(served, release, tool, arguments), check=False)
        found.append((outcome.exit_code, sorted(outcome.stdout.splitlines())))
    assert found[0] == found[1]
    return "\n".join(found[0][1])


@pytest.mark.parametrize("release", RELEASES)
def test_records_are_produced_and_consumed_by_a_group(served: ServedCluster, release: str) -> None:
    before = served.requests("Metadata")
    tools = served.tools(release)
    group = f"group-{release}-{next(_numbers)}"
    tools.produce(TOPIC, [f"{release}-{number}" for number in range(MESSAGES)])
    outcome = run(
        served,
        release,
        "kafka-console-consumer",
        f"--topic={TOPIC}",
        f"--group={group}",
        "--from-beginning",
        f"--max-messages={MESSAGES}",
    )
    assert len(outcome.stdout.splitlines()) == MESSAGES
    assert served.requests("Metadata") > before
    listed = run(served, release, "kafka-consumer-groups", "--list").stdout.split()
    assert listed.count(group) == 1
    described = same(served, release, "kafka-consumer-groups", "--describe", f"--group={group}")
    assert TOPIC in described


@pytest.mark.parametrize("release", RELEASES)
def test_log_directories_of_all_nodes_are_described(served: ServedCluster, release: str) -> None:
    outcome = run(served, release, "kafka-log-dirs", "--describe")
    answer = json.loads(outcome.stdout.splitlines()[-1])
    by_node = {node["broker"]: node["logDirs"] for node in answer["brokers"]}
    assert sorted(by_node) == [1, 2, 3, served.controller_id]
    (own,) = by_node[served.controller_id]
    assert (own["error"], own["partitions"]) == (None, [])
    assert all(len(by_node[broker_id][0]["partitions"]) >= 6 for broker_id in (1, 2, 3))


@pytest.mark.parametrize("release", RELEASES)
def test_every_node_says_what_it_serves(served: ServedCluster, release: str) -> None:
    outcome = run(served, release, "kafka-broker-api-versions")
    nodes = [line for line in outcome.stdout.splitlines() if " (id: " in line]
    assert len(nodes) == 4
    assert any(f"{served.address} (id: {served.controller_id} " in node for node in nodes)
    assert "ERROR" not in outcome.stdout


@pytest.mark.parametrize("release", SINCE_2_4)
def test_topics_are_described_alike(served: ServedCluster, release: str) -> None:
    assert same(served, release, "kafka-topics", "--describe", f"--topic={TOPIC}").count(TOPIC) >= 7
    assert TOPIC in same(served, release, "kafka-topics", "--list")


@pytest.mark.parametrize("release", SINCE_2_4)
def test_acls_are_listed_alike(served: ServedCluster, release: str) -> None:
    """The brokers have no authorizer, and say so."""
    outcome = run_unchecked(served, release, "kafka-acls", "--list")
    assert "No Authorizer is configured on the broker" in outcome.stdout + outcome.stderr


@pytest.mark.parametrize("release", versions("3.9.1", others=("2.8.2",)))
def test_configurations_are_changed_and_described(served: ServedCluster, release: str) -> None:
    topic = ("--entity-type=topics", f"--entity-name={TOPIC}")
    value = str(60_000 + next(_numbers))
    run(served, release, "kafka-configs", *topic, "--alter", f"--add-config=segment.ms={value}")
    described = served.cluster.wait(
        lambda: run(served, release, "kafka-configs", *topic, "--describe").stdout,
        "the configuration to be described",
        until=lambda text: f"segment.ms={value}" in text,
    )
    assert described
    broker = ("--entity-type=brokers", "--entity-name=1")
    assert "advertised" in same(served, release, "kafka-configs", *broker, "--describe", "--all")
    own = ("--entity-type=brokers", f"--entity-name={served.controller_id}")
    outcome = run(served, release, "kafka-configs", *own, "--describe", "--all")
    assert str(served.controller_id) in outcome.stdout
    assert "=" not in outcome.stdout
    refused = run_unchecked(
        served, release, "kafka-configs", *own, "--alter", "--add-config=log.cleaner.threads=2"
    )
    assert "Regent" in refused.stdout + refused.stderr


@soak("endpoint")
def test_clients_of_all_releases_at_once_and_a_broker_killed_in_the_middle(
    served: ServedCluster, tmp_path: Path
) -> None:
    cluster, topic = served.cluster, TOPIC
    before = len(consume_all(served.tools("3.9.1"), topic))
    with workload(served.tools("3.9.1"), topic, tmp_path) as producer:
        producer.wait_for_progress()
        failures: list[str] = []

        def describe(release: str) -> None:
            for _ in range(2):
                outcome = run_unchecked(served, release, "kafka-consumer-groups", "--list")
                if outcome.exit_code:
                    failures.append(f"{release}: {outcome.stdout} {outcome.stderr}")

        threads = [threading.Thread(target=describe, args=(release,)) for release in AT_ONCE]
        for thread in threads:
            thread.start()
        cluster.kill_broker(2)
        producer.wait_for_progress()
        for thread in threads:
            thread.join()
        assert failures == []
        producer.wait_for_progress()
        cluster.kafka.start()
        cluster.wait_in_sync(topic)
        producer.wait_for_progress()
        acknowledged = producer.acknowledged()
    assert producer.failed() == []
    served.wait_until_announced()
    assert len(consume_all(served.tools("3.9.1"), topic)) >= before + len(acknowledged)
