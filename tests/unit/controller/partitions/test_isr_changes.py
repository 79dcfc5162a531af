"""ISR changes that leaders write to ZooKeeper themselves."""

from __future__ import annotations

from typing import cast

from regent.controller.active_controller import ActiveController
from regent.controller.partitions.isr_changes import process_isr_change_notification
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.support.broker_znodes import encode_isr_change_notification
from tests.unit.controller.driving import once
from tests.unit.controller.world import T0, T1, World


def cluster() -> tuple[World, ActiveController]:
    world = World()
    world.start_broker(1, 2)
    world.create_led_topic("t", {0: (1, 2), 1: (2, 1)})
    return world, world.lead()


def notify(world: World, number: int, *partitions: TopicPartition) -> str:
    path = paths.isr_change_notification(f"isr_change_{number:010d}")
    world.put(path, encode_isr_change_notification(partitions))
    return path


def test_a_changed_isr_is_read_and_announced_to_everybody() -> None:
    world, active = cluster()
    world.set_state(T0, 1, (1,), leader_epoch=5)
    notify(world, 1, T0)
    world.run(process_isr_change_notification(active))
    assert active.context.cluster.leadership[T0] == LeaderAndIsr(1, 5, (1,), 0, 1)
    (requests,) = world.driver.sent
    assert tuple(requests.partitions) == (T0,)
    assert requests.update_metadata_receivers == (1, 2)
    assert requests.leader_and_isr == {}
    assert requests.partitions[T0].leader_and_isr == active.context.cluster.leadership[T0]
    assert world.driver.views == [frozenset({"t"})]


def test_malformed_ones_and_unknown_partitions_do_not_disturb_the_others() -> None:
    world, active = cluster()
    world.set_state(T0, 1, (1,), leader_epoch=5)
    broken = [paths.isr_change_notification(f"isr_change_000000000{n}") for n in (1, 3)]
    for path in broken:
        world.put(path, b"{")
    notify(world, 2, TopicPartition("unknown", 0), T0)
    world.run(process_isr_change_notification(active))
    (requests,) = world.driver.sent
    assert tuple(requests.partitions) == (T0,)
    (reported,) = world.log.errors("Malformed notifications")
    assert reported["znodes"] == 2
    for path, example in zip(broken, cast("list[str]", reported["examples"]), strict=True):
        assert example.startswith(f"{path}: ")
    assert world.zookeeper.children(paths.ISR_CHANGE_NOTIFICATION) == ()


def test_a_notification_that_vanishes_meanwhile_is_no_obstacle() -> None:
    world, active = cluster()
    path = notify(world, 1, T0)
    notify(world, 2, T1)
    world.driver.before = once(zk_effects.ReadData, lambda: world.delete(path))
    world.run(process_isr_change_notification(active))
    (requests,) = world.driver.sent
    assert tuple(requests.partitions) == (T1,)
