"""Znodes that whoever asks may not read: everything else is shown, and they are named."""

from __future__ import annotations

from typing import Any

import pytest

from regent.model.errors import ConfigurationError, MalformedZNodeError
from regent.model.partition import TopicPartition
from regent.status.cluster import read_cluster
from regent.status.reader import ClusterReader
from regent.status.report import ExitStatus, exit_status
from regent.status.sample import left_out_of
from regent.status.snapshot import read_view
from regent.status.text import render_status
from regent.status.topic import Target, read_topic
from regent.zk_data import paths
from regent.zk_data.broker_notes import DEPOSED, encode_broker_note
from regent.zk_data.brokers import encode_controller_registration
from tests.support.present import present
from tests.unit.controller.world import CONTROLLER_ID, World, make_broker
from tests.unit.status.telling import Reads

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NO_AUTH = "ZooKeeper answered NOAUTH: the right to read it is missing"


def cluster(*closed: str) -> ClusterReader:
    """Partitions t-0 and t-1, led by brokers 1 and 2; broker 1 is the controller."""
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (1, 2), 1: (2, 1)})
    world.create_topic("u", {0: (2, 1)})
    for partition, leader in ((T0, 1), (T1, 2), (TopicPartition("u", 0), 2)):
        world.set_state(partition, leader, (1, 2), leader_epoch=5)
    world.put(paths.CONTROLLER, b'{"version":1,"brokerid":1,"timestamp":"0"}')
    world.put(paths.CONTROLLER_EPOCH, b"1")
    return ClusterReader(Reads(world.zookeeper, closed), "")


async def status(*closed: str) -> dict[str, Any]:
    report = await read_cluster(cluster(*closed))
    return {**report, "regent": None, "regentProblem": "nobody was asked"}


async def test_a_regent_that_is_registered_is_no_broker() -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (CONTROLLER_ID, 1)})
    world.set_state(T0, CONTROLLER_ID, (CONTROLLER_ID,))
    world.elect_rival(CONTROLLER_ID)
    content = encode_controller_registration(make_broker(CONTROLLER_ID), 0)
    world.put(paths.broker_id(CONTROLLER_ID), content)
    reader = ClusterReader(Reads(world.zookeeper, ()), "")
    report = await read_cluster(reader)
    assert [broker["id"] for broker in report["brokers"]] == [1, 2]
    assert report["controller"]["kind"] == "regent"
    topic = present(await read_topic(reader, Target("t", None), changed=(), problems=[]))
    assert topic["offline"] == 1


async def test_deposed_controllers_are_named_until_their_brokers_are_restarted() -> None:
    world = World()
    world.start_broker(1, 2, 3)
    reader = ClusterReader(Reads(world.zookeeper, ()), "")
    assert (await read_cluster(reader))["deposedControllers"] == []
    for broker_id in (1, 2):
        registration = present(world.zookeeper.get(paths.broker_id(broker_id)))
        world.put(DEPOSED.path(broker_id), encode_broker_note(registration.czxid))
    world.put(DEPOSED.path(3), b"?")
    world.bounce_broker(1)
    report = await read_cluster(reader)
    assert report["deposedControllers"] == [2]
    assert [problem.split(":")[0] for problem in report["problems"]] == [DEPOSED.path(3)]
    output = render_status({**report, "regent": None, "regentProblem": "nobody was asked"})
    assert "Deposed     2: restart" in output


@pytest.mark.parametrize(
    "closed",
    [
        paths.CLUSTER_ID,
        paths.CONTROLLER,
        paths.CONTROLLER_EPOCH,
        paths.BROKER_IDS,
        paths.BROKER_TOPICS,
        paths.broker_id(1),
        paths.topic("t"),
        paths.partition_state(T0),
    ],
)
async def test_a_closed_znode_is_named_and_taken_neither_for_missing_nor_for_broken(
    closed: str,
) -> None:
    report = await status(closed)
    assert report["problems"] == [f"{closed}: {NO_AUTH}"]
    assert exit_status(report) is ExitStatus.UNREADABLE_ZNODES
    assert report["partitions"]["offline"] == 0
    assert f"Unreadable  {closed}: {NO_AUTH}" in render_status(report)


async def test_what_is_open_is_shown() -> None:
    report = await status(paths.topic("t"), paths.broker_id(1), paths.partition_state(T1))
    assert report["controller"] == {"id": 1, "epoch": 1, "kind": "broker", "customResources": None}
    assert [(b["id"], b["epoch"] is None) for b in report["brokers"]] == [(1, True), (2, False)]
    assert (report["partitions"]["topics"], report["partitions"]["online"]) == (2, 1)


async def test_a_controller_that_cannot_be_read_is_not_said_to_be_missing() -> None:
    report = await status(paths.CONTROLLER)
    assert report["controller"]["kind"] == "unknown"
    assert "Controller  unknown: /controller cannot be read, epoch 1" in render_status(report)


async def test_more_closed_znodes_than_single_ones_are_a_matter_of_the_user() -> None:
    closed = [paths.topic(f"t{n}") for n in range(200)]
    reader = cluster(*closed)
    with pytest.raises(ConfigurationError, match="--zookeeper-sasl-username"):
        await reader.get_data(closed)


@pytest.mark.parametrize(
    ("target", "closed"),
    [
        (Target("t", None), paths.topic("t")),
        (Target("t", 0), paths.topic("t")),
        (Target("t", 0), paths.partition_state(T0)),
    ],
)
async def test_a_closed_topic_or_partition_is_known_to_exist_and_not_called_offline(
    target: Target, closed: str
) -> None:
    problems: list[str] = []
    topic = await read_topic(cluster(closed), target, changed=(), problems=problems)
    assert problems == [f"{closed}: {NO_AUTH}"]
    assert topic is not None
    assert topic["offline"] == 0
    assert [p["createdMs"] for p in topic["partitions"]] == ([None] if "state" in closed else [])


async def test_a_sample_names_what_could_not_be_read() -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (1, 2)})
    created = world.zookeeper.get(paths.topic("t"))
    world.put(paths.topic("broken"), b"no JSON")
    half = b'{"version":2,"partitions":{"0":[1],"1":[2,2],"x":[1],"99999999999":[1]}}'
    world.put(paths.topic("half"), half)
    world.put(paths.topic("secret"), b"{}")
    read = await read_view(ClusterReader(Reads(world.zookeeper, [paths.topic("secret")]), ""))
    assert created is not None
    assert read.view.topics["t"].czxid == created.czxid
    named = [(part.topic, part.partition) for part in left_out_of(read)]
    assert named == [
        ("broken", None), ("half", 1), ("half", None), ("half", None), ("secret", None)
    ]  # fmt: skip
    assert left_out_of(read)[-1].unreadable == f"{paths.topic('secret')}: {NO_AUTH}"
    assert read.problems[0].startswith("topic broken is left out: ")
    assert read.problems[1].startswith("partition half-1 is left out: ")
    assert [part.partition for part in read.view.topics["half"].partitions] == [0]


@pytest.mark.parametrize("closed", [[], [paths.broker_id(7)]])
async def test_a_broker_that_cannot_be_read_is_left_out_if_it_has_no_replica(
    closed: list[str],
) -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (1, 2)})
    world.put(paths.broker_id(7), b"no JSON")
    read = await read_view(ClusterReader(Reads(world.zookeeper, closed), ""))
    assert sorted(read.view.brokers) == [1, 2]
    assert len(read.problems) == 1
    assert read.problems[0].startswith("broker 7 is left out: /brokers/ids/7: ")
    world.create_topic("u", {0: (7, 2)})
    with pytest.raises(MalformedZNodeError, match="/brokers/ids/7"):
        await read_view(ClusterReader(Reads(world.zookeeper, closed), ""))
