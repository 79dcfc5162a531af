"""A znode that may not be read costs what concerns it, and nothing else."""

from __future__ import annotations

import pytest

from regent.controller.brokers import broker_changes
from regent.controller.configs import config_changes
from regent.controller.partitions import isr_changes
from regent.controller.transitions import partition_state_znodes
from regent.controller.transitions.partition_state_znodes import read_partition_states
from regent.model.errors import MalformedZNodeError, UnexpectedZooKeeperError
from regent.model.partition import TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.permitted_reads import UNREADABLE_MAX, UnreadableZNode, read_permitted
from tests.unit.controller.world import World


def deny(world: World, *closed: str, code: str = "NOAUTH") -> None:
    """ZooKeeper refuses every request that reads one of these nodes."""

    def hook(effect: zk_effects.Effect[object]) -> None:
        if isinstance(effect, zk_effects.ReadData):
            for path in effect.paths:
                if path in closed:
                    raise UnexpectedZooKeeperError(code, path)

    world.driver.before = hook


def cluster(*topics: str) -> World:
    world = World()
    world.start_broker(1, 2)
    for topic in topics:
        world.create_led_topic(topic, {0: (1, 2), 1: (2, 1)})
    return world


def test_all_others_are_read() -> None:
    world = World()
    every = [f"/n{i}" for i in range(20)]
    for path in every:
        world.put(path, path.encode())
    deny(world, "/n3", "/n19")
    nodes = world.run(read_permitted([*every, "/missing"]))
    assert nodes[20] is None
    for path, node in zip(every, nodes[:20], strict=True):
        assert node is not None
        if path in ("/n3", "/n19"):
            assert isinstance(node, UnreadableZNode)
            with pytest.raises(MalformedZNodeError, match=f"{path}: ZooKeeper answered NOAUTH"):
                _ = node.data
        else:
            assert node.data == path.encode()


def test_rights_that_are_missing_everywhere_are_an_error() -> None:
    world = World()
    every = [f"/n{i}" for i in range(UNREADABLE_MAX + 1)]
    deny(world, *every)
    with pytest.raises(UnexpectedZooKeeperError, match="NOAUTH"):
        world.run(read_permitted(every))


def test_other_answers_are_errors() -> None:
    world = World()
    deny(world, "/n", code="SYSTEMERROR")
    with pytest.raises(UnexpectedZooKeeperError, match="SYSTEMERROR"):
        world.run(read_permitted(["/n"]))


class TestWhileActive:
    def test_a_live_broker_whose_registration_may_not_be_read_any_more_is_kept(self) -> None:
        world = cluster("t")
        active = world.fail_over()
        deny(world, paths.broker_id(1))
        world.start_broker(3, seen_by=active)
        world.run(broker_changes.process_broker_modifications(active, 1))
        assert list(active.context.cluster.brokers) == [1, 2, 3]

    def test_a_notification_that_may_not_be_read_does_not_hide_others(self) -> None:
        world = cluster("t")
        active = world.fail_over()
        world.put(paths.config_change("config_change_0000000001"))
        world.put(paths.isr_change_notification("isr_change_0000000001"))
        deny(
            world,
            paths.config_change("config_change_0000000001"),
            paths.isr_change_notification("isr_change_0000000001"),
        )
        world.run(config_changes.process_config_change(active))
        world.run(isr_changes.process_isr_change_notification(active))
        assert len(world.log.errors("Malformed notifications")) == 2


@pytest.mark.parametrize("closed", [False, True])
def test_states_of_many_partitions_are_read_as_those_of_a_few(
    closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are decoded as they come, unless some may not be read."""
    world, a, b = cluster("a", "b"), TopicPartition("a", 0), TopicPartition("b", 0)
    missing = TopicPartition("a", 7)
    world.put(paths.partition_state(b), b"{")
    if closed:
        deny(world, paths.partition_state(TopicPartition("a", 1)))
    partitions = [*(TopicPartition(topic, n) for topic in "ab" for n in range(2)), missing]
    few = world.run(read_partition_states(partitions, world.log))
    assert few.missing == [missing]
    assert list(few.failures) == ([TopicPartition("a", 1), b] if closed else [b])
    assert a in few.states
    monkeypatch.setattr(partition_state_znodes, "MANY", 1)
    assert world.run(read_partition_states(partitions, world.log)) == few
    logged = world.log.errors("Malformed partition states skipped")
    assert [entry["znodes"] for entry in logged] == 2 * [len(few.failures)]
