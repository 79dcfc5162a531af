"""Regent on a ZooKeeper that no broker has ever seen."""

from __future__ import annotations

import pytest

from sandbox import KafkaBroker, KafkaTools, ZooKeeper
from sandbox.regent_process import RegentProcess

pytestmark = pytest.mark.integration


def test_brokers_start_after_regent_and_serve_a_topic() -> None:
    """What Regent creates ahead of the first broker must not keep that broker from starting."""
    with ZooKeeper() as zookeeper:
        chroot = zookeeper.connect_string + "/new/cluster"
        settings = {"missing_cluster": "create"}
        with RegentProcess(zookeeper=chroot, settings=settings, forked=True) as regent:
            assert regent.wait_until_active()["controllerEpoch"] == 1
            with KafkaBroker(
                zookeeper=chroot,
                inter_broker_protocol_version="2.6",
                config={"auto.create.topics.enable": "true"},
            ) as broker:
                # The broker creates the topic, and for the consumer __consumer_offsets.
                tools = KafkaTools(f"127.0.0.1:{broker.port}")
                tools.produce("first", ["one", "two"], acks="all")
                assert sorted(tools.consume("first", 2)) == ["one", "two"]
