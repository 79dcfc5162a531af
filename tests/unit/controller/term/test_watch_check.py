"""A watch that was lost without a word costs the cluster a minute, not its controller."""

from __future__ import annotations

import pytest

from regent.controller.kafka_controller import KafkaController
from regent.model.partition import TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.reassign_partitions import encode_reassign_partitions
from tests.unit.controller.processes import denying
from tests.unit.controller.world import T0, World, active_of


@pytest.fixture
def world() -> World:
    world = World()
    world.start_broker(1, 2, 3)
    world.create_led_topic("t", {0: (1, 2)})
    return world


def lose_watches(world: World) -> None:
    """As by a ZooKeeper that reports nothing to who may not read the node just now."""
    world.driver.client.take_events()


def check(world: World, controller: KafkaController) -> None:
    """The timer fires, and everything that follows is processed."""
    world.process(controller, world.driver.timers.pop("watch check").event)
    enqueued, world.driver.enqueued = world.driver.enqueued, []
    world.process(controller, *enqueued)


def test_a_controller_whose_epoch_somebody_has_written_is_elected_again(world: World) -> None:
    """``/controller`` is ours, and no write passes the fence."""
    controller = world.active_controller()
    epoch = active_of(controller).context.term.epoch
    world.put(paths.CONTROLLER_EPOCH, str(epoch).encode())
    check(world, controller)
    world.process(controller, world.driver.timers.pop("reelect").event)
    assert controller.active is not None
    assert active_of(controller).context.term.epoch > epoch


def test_a_broker_that_is_gone_and_a_topic_that_came_are_found(world: World) -> None:
    controller = world.active_controller()
    world.stop_broker(1)
    world.create_topic("u", {0: (2, 3)})
    world.put(paths.REASSIGN_PARTITIONS, encode_reassign_partitions({T0: (3,)}))
    lose_watches(world)
    check(world, controller)
    context = active_of(controller).context
    assert list(context.cluster.brokers) == [2, 3]
    assert context.cluster.leadership[T0].leader == 2
    assert context.cluster.leadership[TopicPartition("u", 0)].leader == 2
    assert T0 in context.cluster.partitions_being_reassigned


@pytest.mark.parametrize("closed", [paths.BROKER_IDS, paths.BROKER_TOPICS, paths.DELETE_TOPICS])
def test_who_may_no_longer_read_what_it_needs_gives_the_controller_up(
    world: World, closed: str
) -> None:
    controller = world.active_controller()
    world.driver.before = denying(closed, zk_effects.ReadChildren)
    check(world, controller)
    assert controller.active is None
    assert world.holder() is None
    assert f"NOAUTH for {closed}" in (controller.life.refusal or "")


@pytest.mark.parametrize(
    "path",
    [
        paths.DELETE_TOPICS,
        paths.CONFIG_CHANGES,
        paths.TOPIC_CONFIGS,
        paths.ISR_CHANGE_NOTIFICATION,
        paths.LOG_DIR_EVENT_NOTIFICATION,
    ],
)
def test_a_parent_that_somebody_deleted_is_there_again_and_watched(world: World, path: str) -> None:
    """People delete ``/admin/delete_topics`` to stop a deletion."""
    controller = world.active_controller()
    world.delete(path)
    world.deliver(controller)
    check(world, controller)
    assert world.exists(path)
    assert controller.active is not None


def test_an_election_that_zookeeper_kept_from_succeeding_is_repeated(world: World) -> None:
    """No watch reports that a right was given or a quota raised, or that a znode was corrected."""
    controller = world.active_controller()
    world.create_topic("u", {0: (2, 3)})
    new = TopicPartition("u", 0)

    def refuse(effect: zk_effects.Effect[object]) -> None:
        if isinstance(effect, zk_effects.Write) and paths.partition_state(new) in [
            operation.path for operation in effect.operations
        ]:
            world.delete(paths.topic_partition(new))

    world.driver.before = refuse
    world.deliver(controller)
    world.driver.before = lambda _: None
    context = active_of(controller).context
    assert new in context.partitions_without_leader
    world.driver.views.clear()
    check(world, controller)
    assert new not in context.partitions_without_leader
    assert frozenset({"u"}) in world.driver.views


def test_a_topic_that_may_be_read_again_is_read_and_watched_again(world: World) -> None:
    controller = world.active_controller()
    cluster = active_of(controller).context.cluster
    world.driver.before = denying(paths.topic("t"), zk_effects.ReadData)
    world.create_topic("t", {0: (1, 2), 1: (2, 3)})
    world.deliver(controller)
    assert "t" in cluster.unreadable_topics
    world.driver.before = lambda _: None
    check(world, controller)
    assert not cluster.unreadable_topics
    assert cluster.leadership[TopicPartition("t", 1)].leader == 2
    world.create_topic("t", {0: (1, 2), 1: (2, 3), 2: (3, 1)})
    world.deliver(controller)
    assert cluster.leadership[TopicPartition("t", 2)].leader == 3


def test_it_can_be_switched_off(world: World) -> None:
    world = World(watch_check_interval_s=None)
    world.fail_over()
    assert "watch check" not in world.driver.timers
