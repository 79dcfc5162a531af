"""Kafka's tools print the same while Regent leads as while a broker does."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from sandbox import KafkaTools
from sandbox.kafka_jars import version_tuple
from tests.integration.endpoint.clients_support import SETTINGS, ServedCluster
from tests.integration.endpoint.tool_script import Call, Printed, calls, tool_runner
from tests.support.cluster import Cluster, cluster_of, regent
from tests.support.figures import Figure
from tests.support.metadata import Partition
from tests.support.reassigning import under_way
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, pytest.mark.slow, soak("endpoint")]

OWN_ID = r"1\d{9}\b"
"""Under which tests run Regents."""
BROKERS = 3
OFFSETS_TOPIC = "__consumer_offsets"

TOPICS = """
topics --list
topics --create --topic=a --replica-assignment=1:2,2:3,3:1
topics --describe --topic=a
topics --create --topic=a --partitions=1 --replication-factor=1
topics --create --topic=a --partitions=1 --replication-factor=1 --if-not-exists
topics --create --topic=b --partitions=4 --replication-factor=2
topics --create --topic=c.d --replica-assignment=2:3:1 --config=retention.ms=1000
topics --create --topic=c_d --partitions=1 --replication-factor=1
topics --create --topic=defaults
topics --create --topic=too-many --partitions=1 --replication-factor=4
topics --create --topic=none --partitions=0 --replication-factor=1
topics --create --topic=none --partitions=1 --replication-factor=0
topics --create --topic=white%20space --partitions=1 --replication-factor=1
topics --create --topic=.. --partitions=1 --replication-factor=1
topics --create --topic=none --partitions=1 --replication-factor=1 --config=retention.ms=soon
topics --create --topic=none --partitions=1 --replication-factor=1 --config=retention.ms=-2
topics --create --topic=none --partitions=1 --replication-factor=1 --config=no.such.key=1
topics --create --topic=none --partitions=1 --replication-factor=1 --config=cleanup.policy=x
topics --create --topic=none --replica-assignment=1:1
topics --create --topic=none --replica-assignment=1:2,3
topics --list
topics --describe --topic=c.d
topics --describe --under-replicated-partitions
topics --describe --unavailable-partitions
topics --describe --topic=none
topics --alter --topic=a --partitions=2
topics --alter --topic=a --partitions=3
topics --alter --topic=a --partitions=5 --replica-assignment=1:2,2:3,3:1,1:3,2:1
topics --alter --topic=a --partitions=6 --replica-assignment=1:2,2:3,3:1,1:3,2:1,9:1
topics --alter --topic=a --partitions=6 --replica-assignment=1:2,2:3,3:1,1:3,2:1,1:1
topics --alter --topic=a --partitions=6 --replica-assignment=1:2,2:3,3:1,1:3,2:1,1
topics --alter --topic=none --partitions=6
topics --describe --topic=a
topics --alter --topic=b --partitions=8
topics --delete --topic=none
topics --delete --topic=none --if-exists
"""

NODES = """
consumer-groups --list
{groups} --reset-offsets --group=g --topic=a --to-earliest --execute
{groups} --reset-offsets --group=g --topic=none --to-earliest --execute
{groups} --describe --group=g
{groups} --describe --group=g --state
{groups} --describe --group=g --members
{groups} --describe --group=none
consumer-groups --list
{groups} --delete-offsets --group=g --topic=a
{groups} --delete --group=g
{groups} --delete --group=none
log-dirs --describe --topic-list=a
log-dirs --describe --topic-list=a --broker-list=1,2,3
broker-api-versions
acls --list
acls --add --allow-principal=User:alice --operation=Read --topic=a
configs --describe --entity-type=brokers
configs --describe --entity-type=brokers --entity-name=1
configs --alter --entity-type=brokers --entity-name=1 --add-config=log.cleaner.threads=2
configs --alter --entity-type=brokers --entity-name=1 --delete-config=log.cleaner.threads
"""

CLIENTS = """
configs --alter --entity-type=clients --entity-name=c --add-config=producer_byte_rate=1000
configs --alter --entity-type=clients --entity-name=c --add-config=no_such_rate=1000
configs --describe --entity-type=clients --entity-name=c
configs --alter --entity-type=clients --entity-name=c --delete-config=producer_byte_rate
configs --describe --entity-type=clients
"""

ELECTIONS = """
leader-election --election-type=preferred --topic=a --partition=0
leader-election --election-type=preferred --topic=a --partition=99
leader-election --election-type=preferred --topic=none --partition=0
leader-election --election-type=unclean --topic=a --partition=0
leader-election --election-type=preferred --path-to-json-file={elections}
leader-election --election-type=preferred --all-topic-partitions
"""

CONFIGS = """
configs --alter --entity-type=topics --entity-name=a --add-config=retention.ms=5000
configs --describe --entity-type=topics --entity-name=a
configs --alter --entity-type=topics --entity-name=a --delete-config=retention.ms
topics --describe --topic=a
"""

REASSIGNMENTS = """
reassign-partitions --list
reassign-partitions --reassignment-json-file={moves} --execute
reassign-partitions --reassignment-json-file={moves} --verify
reassign-partitions --reassignment-json-file={back} --execute
reassign-partitions --reassignment-json-file={back} --verify
reassign-partitions --reassignment-json-file={moves} --cancel
reassign-partitions --reassignment-json-file={unknown_topic} --execute
reassign-partitions --reassignment-json-file={unknown_broker} --execute
reassign-partitions --reassignment-json-file={twice} --execute
reassign-partitions --list
"""

USERS = """
{alter_user}=alice --add-config=SCRAM-SHA-256=[password=x]
configs --describe --entity-type=users --entity-name=alice
{alter_user}=alice --add-config=SCRAM-SHA-512=[iterations=9000,password=x]
{alter_user}=bob%20c --add-config=SCRAM-SHA-512=[iterations=9,password=x]
{alter_user}=bob%20c --add-config=SCRAM-SHA-512=[iterations=99999,password=x]
{alter_user}=bob --delete-config=SCRAM-SHA-512
configs --describe --entity-type=users
{alter_user}=alice --delete-config=SCRAM-SHA-256
{alter_user}=alice --delete-config=SCRAM-SHA-512
configs --describe --entity-type=users
features describe
features upgrade --metadata=3.4
features upgrade --feature=some.feature=1
"""

REMOVAL = """
topics --delete --topic=a
topics --delete --topic=b
topics --delete --topic=c.d
topics --delete --topic=defaults
topics --list
"""


def _moves(*partitions: tuple[str, int, Sequence[int]]) -> str:
    return json.dumps(
        {
            "version": 1,
            "partitions": [
                {"topic": topic, "partition": partition, "replicas": list(replicas)}
                for topic, partition, replicas in partitions
            ],
        }
    )


def script(version: str, directory: Path) -> list[Call]:
    """What the tools of a release can be asked."""
    files = {
        "elections": json.dumps({"partitions": [{"topic": "a", "partition": p} for p in (1, 2)]}),
        "moves": _moves(("a", 0, (2, 3)), ("a", 1, (3, 1))),
        "back": _moves(("a", 0, (1, 2)), ("a", 1, (2, 3))),
        "unknown_topic": _moves(("none", 0, (2, 3))),
        "unknown_broker": _moves(("a", 0, (1, 9))),
        "twice": _moves(("a", 0, (1, 1))),
    }
    for name, text in files.items():
        (directory / f"{name}.json").write_text(text)
    parts = [TOPICS, NODES, ELECTIONS, CONFIGS]
    if version_tuple(version) >= (2, 6):
        parts += [REASSIGNMENTS, CLIENTS]
    if version_tuple(version) >= (2, 7):
        parts.append(USERS)
    text = "".join([*parts, REMOVAL])
    names = {name: str(directory / f"{name}.json") for name in files}
    names["groups"] = "consumer-groups --timeout=60000"
    names["alter_user"] = "configs --alter --entity-type=users --entity-name"
    return list(calls(text.format(**names)))


def run_script(
    cluster: Cluster, address: str, version: str, script: Sequence[Call]
) -> list[Printed]:
    """Run calls one after the other, each on what the one before has left."""
    printed = []
    with tool_runner(KafkaTools(address, version=version)) as runner:
        for call in script:
            printed.append(runner.run(call))
            if call.tool == "kafka-reassign-partitions":
                _wait_until_moved(cluster)
            if call.tool == "kafka-reassign-partitions" or "--alter" in call.arguments:
                cluster.wait_in_sync()
            if {"--create", "--alter", "--execute", "--cancel"} & {*call.arguments}:
                _wait_until_known(cluster)
            if call.tool == "kafka-topics" and "--delete" in call.arguments:
                _wait_until_gone(cluster, call.arguments[-1].removeprefix("--topic="))
    return printed


def _create_offsets_topic(cluster: Cluster) -> None:
    """The first group has it created; it is to be there before anything is compared."""
    server = f"--bootstrap-server={cluster.kafka.bootstrap_servers}"
    cluster.tools.run("kafka-consumer-groups", server, "--describe", "--group=first", check=False)
    cluster.wait(lambda: OFFSETS_TOPIC in cluster.znodes.topics(), "groups to have a topic")
    cluster.wait_in_sync(OFFSETS_TOPIC)
    _wait_until_known(cluster)


def _wait_until_moved(cluster: Cluster) -> None:
    """Replicas that are being added are in sync before those that leave are gone."""
    cluster.wait(
        lambda: [topic for topic in cluster.znodes.topics() if under_way(cluster, topic)],
        "the moves to be over",
        until=lambda moving: not moving,
    )


def _wait_until_known(cluster: Cluster) -> None:
    """Tools ask any broker, so each has to know every partition, and its replicas."""

    def unknown() -> dict[int, set[tuple[Partition, tuple[int, ...]]]]:
        wanted = {
            ((topic, partition), tuple(replicas))
            for topic in cluster.znodes.topics()
            for partition, replicas in (cluster.znodes.assignment(topic) or {}).items()
        }
        return {
            broker.broker_id: missing
            for broker in cluster.running
            if (missing := wanted - _known_by(cluster, broker.broker_id))
        }

    cluster.wait(unknown, "all brokers to know all partitions", until=lambda found: not found)


def _known_by(cluster: Cluster, broker_id: int) -> set[tuple[Partition, tuple[int, ...]]]:
    partitions = cluster.metadata(broker_id).partitions
    return {(tp, known.replicas) for tp, known in partitions.items()}


def _wait_until_gone(cluster: Cluster, topic: str) -> None:
    def known() -> set[str]:
        told = (cluster.metadata(broker.broker_id).partitions for broker in cluster.running)
        return {*cluster.znodes.topics(), *(name for partitions in told for name, _ in partitions)}

    cluster.wait(known, f"topic {topic} to be gone", until=lambda topics: topic not in topics)


def differences(
    wanted: Sequence[Call], expected: Sequence[Printed], found: Sequence[Printed]
) -> list[str]:
    return [
        f"{call}\n  broker: {a}\n  Regent: {b}"
        for call, a, b in zip(
            wanted,
            map(normalized, wanted, expected),
            map(normalized, wanted, found),
            strict=True,
        )
        if a != b
    ]


def normalized(call: Call, printed: Printed) -> Printed:
    """Without what is drawn anew each time, and without an order where there is none.

    Clients see the controller's node, too: of tools that ask all nodes, its part is left out.
    """
    text = "\n".join(printed.lines)
    text = re.sub(r"TopicId: \S+", "TopicId: drawn", text)
    text = re.sub(r"\[I@[0-9a-f]+", "[I@drawn", text)  # Java's name of an array
    text = re.sub(r"(?<=brokers )[\d,]+", _other_brokers, text)
    lines = text.split("\n")
    if call.tool == "kafka-broker-api-versions":
        nodes = re.findall(r"^\S+ \(id: .*?^\)", text, re.MULTILINE | re.DOTALL)
        lines = sorted(node for node in nodes if not re.search(rf"\(id: {OWN_ID}", node))
        assert len(lines) == BROKERS, text
    elif call.tool == "kafka-log-dirs":
        lines = [_log_dirs(line) if line.startswith("{") else line for line in lines]
    elif "--entity-type=brokers" in call.arguments:
        lines = [line for line in lines if not re.search(rf"for broker {OWN_ID} are", line)]
    elif call.tool == "kafka-consumer-groups":
        lines.sort()
    return Printed(printed.exit_code, tuple(lines))


def _other_brokers(found: re.Match[str]) -> str:
    others = (each for each in found[0].split(",") if not re.fullmatch(OWN_ID, each))
    return ",".join(sorted(others))


def _log_dirs(answer: str) -> str:
    nodes = json.loads(answer)["brokers"]
    for node in nodes:
        for directory in node["logDirs"]:
            directory["partitions"].sort(key=lambda replica: replica["partition"])
    brokers = [node for node in nodes if not re.fullmatch(OWN_ID, str(node["broker"]))]
    return json.dumps(sorted(brokers, key=lambda node: int(node["broker"])))


@pytest.mark.parametrize("version", ["2.4.1", "2.8.2", "3.9.1"])
def test_the_tools_print_the_same_at_a_broker_and_at_regent(
    version: str, tmp_path: Path, figure: Figure
) -> None:
    wanted = script(version, tmp_path)
    with cluster_of(
        version, inter_broker_protocol=None, num_partitions=2, default_replication_factor=2
    ) as cluster:
        cluster.wait_for_a_broker_as_controller()
        bootstrap = cluster.kafka.bootstrap_servers
        _create_offsets_topic(cluster)
        by_broker = run_script(cluster, bootstrap, version, wanted)
        with regent(cluster, **SETTINGS) as process:
            process.wait_until_active()
            served = ServedCluster(cluster, process)
            served.wait_until_announced()
            by_regent = run_script(cluster, bootstrap, version, wanted)
            at_regent = run_script(cluster, served.address, version, wanted)
            asked = [name for name in ("CreateTopics", "DeleteTopics") if served.requests(name)]
    assert asked == ["CreateTopics", "DeleteTopics"], "the tools have not asked Regent"
    figure("calls", len(wanted))
    different = [
        f"{address}: {difference}"
        for address, found in (("a broker's address", by_regent), ("Regent's address", at_regent))
        for difference in differences(wanted, by_broker, found)
    ]
    assert not different, "\n".join([f"{len(different)} of {2 * len(wanted)}:", *different])
