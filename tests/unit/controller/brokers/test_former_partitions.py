"""A broker whose process has outlived its session forgets what was deleted meanwhile."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.kafka_controller import KafkaController
from regent.controller.state.former_partitions import FormerPartitions
from regent.controller.topics import topic_changes
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import ControlRequests
from regent.zk_data import paths
from tests.unit.controller.topics.deleting import cluster, delete
from tests.unit.controller.world import T0, T1, World

T2 = TopicPartition("t", 2)


def told_to_forget(sent: list[ControlRequests]) -> dict[int, set[TopicPartition]]:
    """The partitions that each broker was told to forget."""
    found: dict[int, set[TopicPartition]] = {}
    for requests in sent:
        for broker_id in requests.update_metadata_receivers:
            found.setdefault(broker_id, set()).update(requests.deleted_partitions)
    return {broker_id: forgotten for broker_id, forgotten in found.items() if forgotten}


def come_back(world: World, active: ActiveController) -> list[ControlRequests]:
    """Broker 3 is registered again; what was sent then."""
    world.driver.take_sent()
    world.start_broker(3, seen_by=active)
    return world.driver.take_sent()


def test_a_broker_that_comes_back_is_told_what_was_deleted() -> None:
    world, active = cluster()
    delete(world, active)
    sent = come_back(world, active)
    assert told_to_forget(sent) == {3: {T0, T1}}
    assert all(requests.partitions.keys() >= requests.deleted_partitions for requests in sent)


def test_partitions_that_exist_again_are_not_forgotten() -> None:
    world, active = cluster()
    delete(world, active)
    world.create_topic("t", {0: (1,)}, seen_by=active)
    sent = come_back(world, active)
    assert told_to_forget(sent) == {3: {T1}}
    announced = [r for r in sent if T0 in r.partitions and 3 in r.update_metadata_receivers]
    assert announced, "it learns of the new one all the same"


def test_partitions_of_a_topic_that_cannot_be_read_are_not_forgotten() -> None:
    world, active = cluster()
    delete(world, active)
    world.put(paths.topic("t"), b"no JSON")
    world.run(topic_changes.process_topic_change(active))
    assert told_to_forget(come_back(world, active)) == {}


def test_a_failover_tells_a_broker_that_is_back_already() -> None:
    world, active = cluster()
    delete(world, active)
    world.driver.take_sent()
    world.start_broker(3)
    world.fail_over()
    assert told_to_forget(world.driver.take_sent()) == {3: {T0, T1}}


def test_the_oldest_ones_are_dropped_first() -> None:
    former = FormerPartitions(limit=2)
    former.add([T0, T1])
    former.add([T0, T2])
    assert list(former) == [T0, T2]


def deleted_while_away(*brokers: int) -> tuple[World, KafkaController]:
    """A topic of a broker that is down was deleted while other brokers were, too."""
    world = World()
    world.start_broker(1, 2, 3)
    world.create_topic("t", {0: (3,), 1: (3,)})
    controller = world.active_controller()
    world.stop_broker(3, *brokers)
    world.deliver(controller)
    world.mark_for_deletion("t")
    world.deliver(controller)
    assert not world.exists(paths.topic("t"))
    world.driver.take_sent()
    return world, controller


def test_brokers_that_came_back_between_two_terms_are_told() -> None:
    world, controller = deleted_while_away(2)
    world.elect_rival()
    world.deliver(controller)
    world.start_broker(2)
    world.delete(paths.CONTROLLER)
    world.deliver(controller)
    assert told_to_forget(world.driver.take_sent()) == {1: {T0, T1}, 2: {T0, T1}}
