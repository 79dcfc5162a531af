"""A topic that is deleted while a broker with replicas of it is down."""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import (
    DescribeLogDirsResponse,
    StopReplicaPartition,
    StopReplicaResponse,
)
from regent.zk_data import paths
from regent.zk_data.stray_replicas import strays_of
from tests.unit.controller.world import T0, T1, World, stop_replica

NOTE = strays_of(3, "t")
STORAGE_ERROR = 56


def cluster(**settings: bool) -> tuple[World, ActiveController]:
    """A topic on brokers 1 and 3, 2 and 3. Broker 3 is down, and the topic is to be deleted."""
    world = World(**settings)
    world.start_broker(1, 2, 3)
    world.create_led_topic("t", {0: (1, 3), 1: (2, 3)}, config={"retention.ms": "1"})
    active = world.fail_over()
    world.stop_broker(3, seen_by=active)
    return world, active


def delete(world: World, active: ActiveController) -> None:
    world.mark_for_deletion("t", seen_by=active)
    answer(world, active, 1, T0)
    answer(world, active, 2, T1)
    world.driver.take_sent()


def answer(
    world: World, active: ActiveController, broker_id: int, *tps: TopicPartition, error: int = 0
) -> None:
    errors = dict.fromkeys(tps, error) if error else {}
    asked = {tp: StopReplicaPartition(-2, delete=True) for tp in tps}
    response = StopReplicaResponse(broker_id, 0, errors, asked)
    world.run(answers.process_stop_replica_responses(active, [response]))


def asked_for_log_dirs(world: World) -> list[int]:
    """The brokers that were asked for their log directories since the last call."""
    return [broker_id for sent in world.driver.take_sent() for broker_id in sent.describe_log_dirs]


def describe_log_dirs(
    world: World, active: ActiveController, *, offline: bool = False, error: int = 0
) -> None:
    """Broker 3 answers the question for its log directories, which it has been asked."""
    assert asked_for_log_dirs(world) == [3]
    log_dirs = {} if error else {"/data-0": 0, "/data-1": STORAGE_ERROR if offline else 0}
    response = DescribeLogDirsResponse(3, error, log_dirs)
    world.run(answers.process_describe_log_dirs_response(active, response))


def delete_after_a_restart(world: World, active: ActiveController) -> None:
    """Broker 3 starts anew, is asked to delete both replicas again, and has: the note goes."""
    world.bounce_broker(3, seen_by=active)
    assert deletions(world) == [(3, T0), (3, T1)]
    answer(world, active, 3, T0, T1)
    describe_log_dirs(world, active)
    assert not world.exists(NOTE)


def deletions(world: World) -> list[tuple[int, TopicPartition]]:
    """The replicas whose deletion was asked for."""
    return [(sent[0], sent[1]) for sent in stop_replica(world.driver.sent) if sent[3]]


def is_gone(world: World, active: ActiveController) -> bool:
    nodes = (paths.topic("t"), paths.topic_config("t"), paths.delete_topic("t"))
    return not any(map(world.exists, nodes)) and not active.context.cluster.has_topic("t")
