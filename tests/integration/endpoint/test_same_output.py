"""Kafka's tools print the same while Regent leads as while a broker does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from regent.app import controller_config
from regent.client_settings import channel_settings, zookeeper_settings
from regent.connections import real_connections
from regent.controller_service import ControllerService
from regent.endpoint.dispatcher import served_apis
from regent.model.cluster import Address
from regent.observability.metrics import EventMetrics
from regent.settings_loading import load_settings
from sandbox import KafkaTools
from sandbox.kafka_jars import version_tuple
from sandbox.ports import lease_port
from tests.integration.controller.cluster import Cluster, cluster_of
from tests.integration.endpoint.tool_script import Call, Printed, calls, tool_runner
from tests.support.routing_proxy import RoutingProxy
from tests.support.served_endpoint import ServedEndpoint

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CONTROLLER_ID = 1_000_000_777

TOPICS = """
topics --list
topics --create --topic=a --replica-assignment=1:2,2:3,3:1
topics --describe --topic=a
topics --create --topic=a --partitions=1 --replication-factor=1
topics --create --topic=a --partitions=1 --replication-factor=1 --if-not-exists
topics --create --topic=b --partitions=4 --replication-factor=2
topics --create --topic=c.d --partitions=1 --replication-factor=3 --config=retention.ms=1000
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
configs --alter --entity-type=users --entity-name=alice --add-config=SCRAM-SHA-256=[password=x]
configs --describe --entity-type=users --entity-name=alice
configs --alter --entity-type=users --entity-name=alice --add-config=SCRAM-SHA-512=[iterations=9000,password=x]
configs --alter --entity-type=users --entity-name=bob%20c --add-config=SCRAM-SHA-512=[iterations=9,password=x]
configs --alter --entity-type=users --entity-name=bob%20c --add-config=SCRAM-SHA-512=[iterations=99999,password=x]
configs --alter --entity-type=users --entity-name=bob --delete-config=SCRAM-SHA-512
configs --describe --entity-type=users
configs --alter --entity-type=users --entity-name=alice --delete-config=SCRAM-SHA-256
configs --alter --entity-type=users --entity-name=alice --delete-config=SCRAM-SHA-512
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
    parts = [TOPICS, ELECTIONS, CONFIGS]
    if version_tuple(version) >= (2, 6):
        parts.append(REASSIGNMENTS)
    if version_tuple(version) >= (2, 7):
        parts.append(USERS)
    text = "".join([*parts, REMOVAL])
    return list(calls(text.format(**{name: directory / f"{name}.json" for name in files})))


@contextlib.contextmanager
def regent_leads(cluster: Cluster) -> Iterator[RoutingProxy]:
    """A controller in this process, which clients reach where it is announced."""
    settings = load_settings(
        {
            "zookeeper": cluster.kafka.zookeeper,
            "controller_id": CONTROLLER_ID,
            "zookeeper_session_timeout_ms": 30_000,
            "auto_leader_rebalance_enable": False,
        }
    )
    endpoint = ServedEndpoint()
    with contextlib.ExitStack() as stack:
        lease = stack.enter_context(lease_port())
        served = {"PLAINTEXT": Address("127.0.0.1", lease.port)}
        service = ControllerService(
            config=msgspec.structs.replace(controller_config(settings), served=served),
            connect=real_connections(
                controller_id=CONTROLLER_ID,
                zookeeper=zookeeper_settings(settings),
                election_path=settings.election_path,
                channels=channel_settings(settings),
            ),
            metrics=EventMetrics(CollectorRegistry()),
            serve=endpoint.serve,
        )
        service.start()
        stack.callback(service.stop)
        cluster.wait(lambda: endpoint.port, "the endpoint to listen")
        proxy = RoutingProxy(
            controller_port=endpoint.port,
            broker_port=cluster.running[0].port,
            api_keys=[api.key for api in served_apis()],
        )
        stack.enter_context(proxy.running(lease.port))
        cluster.wait(lambda: service.view.is_complete, "this process to be the controller")
        cluster.wait_for_announced_controller()
        yield proxy


def run_script(cluster: Cluster, version: str, script: Sequence[Call]) -> list[Printed]:
    tools = KafkaTools(cluster.kafka.bootstrap_servers, version=version)
    printed = []
    with tool_runner(tools) as runner:
        for call in script:
            printed.append(runner.run(call))
            if call.tool == "kafka-reassign-partitions" or "--alter" in call.arguments:
                cluster.wait_in_sync()
            if "--delete" in call.arguments:
                topic = call.arguments[-1].removeprefix("--topic=")
                cluster.wait(
                    lambda: topic not in cluster.znodes.topics(), f"topic {topic} to be gone"
                )
    return printed


@pytest.mark.parametrize("version", ["2.4.1", "2.8.2", "3.9.1"])
def test_the_tools_print_the_same(version: str, tmp_path: Path) -> None:
    wanted = script(version, tmp_path)
    with cluster_of(version, num_partitions=2, default_replication_factor=2) as cluster:
        cluster.wait_for_a_broker_as_controller()
        by_broker = run_script(cluster, version, wanted)
        with regent_leads(cluster) as proxy:
            by_regent = run_script(cluster, version, wanted)
            asked = {api.key for api in served_apis()} & proxy.passed.keys()
        differences = [
            f"{call}\n  broker: {expected}\n  Regent: {found}"
            for call, expected, found in zip(wanted, by_broker, by_regent, strict=True)
            if normalized(expected) != normalized(found)
        ]
    assert asked >= {19, 20, 37, 43}, "the tools have not asked Regent"
    assert not differences, "\n".join([f"{len(differences)} of {len(wanted)}:", *differences])


def normalized(printed: Printed) -> Printed:
    return printed
