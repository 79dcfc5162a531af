"""Two brokers' registrations with one address, with a real broker."""

from __future__ import annotations

import json

import pytest

from sandbox import KafkaBroker, KafkaTools, ZooKeeper, wait_until
from sandbox.regent_process import RegentProcess
from tests.support.znodes import Znodes

pytestmark = pytest.mark.integration

COPY = 7
REQUEST = "/admin/reassign_partitions"


def test_a_broker_deletes_nothing_that_another_one_with_its_address_was_to_delete(
    zookeeper: ZooKeeper,
) -> None:
    """Brokers before 2.6 delete whatever a StopReplica names. They cannot tell that it was meant
    for another one: its broker epoch is higher than theirs, as it has registered later."""
    connect_string = f"{zookeeper.connect_string}/shared-address"
    with (
        KafkaBroker(zookeeper=connect_string, version="2.4.1") as broker,
        Znodes(connect_string) as znodes,
        RegentProcess(zookeeper=connect_string, forked=True) as regent,
    ):
        regent.wait_until_active()
        # not by today's tools: they ask the controller, and this Regent serves no endpoint
        znodes.create_topic("orders", {0: [broker.broker_id]})
        wait_until(
            lambda: znodes.state("orders").get("leader"),
            until=lambda leader: leader == broker.broker_id,
            describe="the topic to have its leader",
            watch=[regent.process],
        )
        tools = KafkaTools(broker.bootstrap_servers)
        tools.produce("orders", ["one", "two"])
        [log] = broker.state_path.glob("data-1/orders-0/*.log")
        registration = znodes.json(f"/brokers/ids/{broker.broker_id}")
        znodes.client.create(
            f"/brokers/ids/{COPY}", json.dumps(registration).encode(), ephemeral=True
        )
        said = wait_until(
            lambda: (regent.status() or {"unreachedBrokers": {}})["unreachedBrokers"],
            until=lambda problems: str(COPY) in problems,
            describe="the broker to be named that another one answers for",
            watch=[regent.process],
        )
        assert "another broker answers there: Unexpected broker id" in said[str(COPY)]
        # the copy never comes in sync: the reassignment to it does not end, and is replaced
        for replicas, under_way in (([broker.broker_id, COPY], True), ([broker.broker_id], False)):
            _request(znodes, replicas)
            _wait_for(znodes, regent, replicas, under_way=under_way)
        tools.produce("orders", ["three"])
        # without a group: the broker would make the topic of the groups' offsets, and would place
        # some of its partitions on the copy, which leads them as far as any controller knows
        assert tools.consume("orders", 3, partition=0) == ["one", "two", "three"]
        assert log.exists()


def _request(znodes: Znodes, replicas: list[int]) -> None:
    """Ask for other replicas of the only partition, instead of those asked for before."""
    partition = {"topic": "orders", "partition": 0, "replicas": replicas}
    content = json.dumps({"version": 1, "partitions": [partition]}).encode()
    if znodes.get(REQUEST) is None:
        znodes.client.create(REQUEST, content)
    else:
        znodes.client.set(REQUEST, content)


def _wait_for(
    znodes: Znodes, regent: RegentProcess, replicas: list[int], *, under_way: bool
) -> None:
    """Wait until the topic's node names these replicas, and the request is there or gone."""
    wait_until(
        lambda: (znodes.assignment("orders"), znodes.get(REQUEST) is not None),
        until=lambda found: found == ({0: replicas}, under_way),
        describe=f"the replicas to be {replicas}",
        watch=[regent.process],
    )
