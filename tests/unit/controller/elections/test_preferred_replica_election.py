"""Requests for preferred leaders in ``/admin/preferred_replica_election``."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.active_controller import ActiveController
from regent.controller.elections.preferred_replica_election import process_replica_leader_election
from regent.controller.state.causes import CauseKind, ChangeKind
from regent.model.partition import TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.support.broker_znodes import encode_preferred_replica_election
from tests.unit.controller.driving import once
from tests.unit.controller.world import T0, T1, World, active_of

PATH = paths.PREFERRED_REPLICA_ELECTION
UNBORN = TopicPartition("unborn", 0)


def cluster() -> World:
    """Both partitions are led by their second replica."""
    world = World()
    world.start_broker(1, 2, 3)
    world.create_topic("t", {0: (1, 2, 3), 1: (2, 3)})
    world.set_state(T0, 2, (2, 3, 1), leader_epoch=5)
    world.set_state(T1, 3, (2, 3), leader_epoch=5)
    return world


def request(world: World, *partitions: TopicPartition) -> None:
    world.put(PATH, encode_preferred_replica_election(partitions))


def running() -> tuple[World, ActiveController]:
    world = cluster()
    active = world.fail_over()
    world.driver.client.take_events()
    return world, active


def leaders(world: World) -> list[int]:
    return [state.leader for tp in (T0, T1) if (state := world.state(tp))]


def test_the_watch_reports_the_next_request_and_the_one_after() -> None:
    world = cluster()
    controller = world.active_controller()
    for tp, expected in ((T0, [1, 3]), (T1, [1, 2])):
        request(world, tp)
        assert e.ReplicaLeaderElection() in world.deliver(controller)
        assert leaders(world) == expected
        assert not world.exists(PATH)
        (change,) = active_of(controller).context.trail.partitions[tp].changes
        assert change.kind is ChangeKind.ELECTED_PREFERRED
        assert change.cause.kind is CauseKind.ELECTION_REQUESTED


@pytest.mark.parametrize("content", [b"", b"{", b'{"version":1}', b'{"partitions":{}}'])
def test_a_malformed_request_is_logged_and_removed(content: bytes) -> None:
    world, active = running()
    world.put(PATH, content)
    world.run(process_replica_leader_election(active))
    (line,) = world.log.errors("Malformed preferred replica election removed")
    assert line["path"] == PATH
    assert not world.exists(PATH)
    assert leaders(world) == [2, 3]


def test_a_request_that_cannot_be_removed_is_logged_and_not_tried_for_ever() -> None:
    world = cluster()
    controller = world.active_controller()
    request(world, T0)
    world.put(f"{PATH}/child")
    world.deliver(controller)
    (line,) = world.log.errors("Preferred replica election not removed")
    assert line["answer"] == "NOTEMPTY"
    assert leaders(world) == [1, 3]
    world.delete(PATH)
    request(world, T1)
    world.deliver(controller)
    assert leaders(world) == [1, 2]


def test_what_cannot_be_elected_keeps_no_other_from_it_and_goes_with_the_request() -> None:
    world = cluster()
    world.create_topic("unborn", {0: (8, 9)})
    world.create_topic("marked", {0: (1, 2)})
    active = world.fail_over()
    active.context.queue_topic_for_deletion("marked")
    marked, unknown = TopicPartition("marked", 0), TopicPartition("nobody", 0)
    request(world, unknown, UNBORN, marked, T0)
    world.run(process_replica_leader_election(active))
    assert leaders(world) == [1, 3]
    assert not world.exists(PATH)
    (line,) = (r.fields for r in world.log.records if r.message == "Preferred replica election")
    assert line["outcomes"] == {
        "UNKNOWN_TOPIC_OR_PARTITION": 1,
        "PREFERRED_LEADER_NOT_AVAILABLE": 1,
        "INVALID_TOPIC_EXCEPTION": 1,
        "NONE": 1,
    }


def test_a_request_that_was_replaced_meanwhile_is_carried_out_next() -> None:
    world = cluster()
    controller = world.active_controller()
    request(world, T0)
    world.driver.before = once(zk_effects.Write, lambda: request(world, T1))
    world.deliver(controller)
    assert leaders(world) == [1, 2]
    assert not world.exists(PATH)


def test_a_failover_carries_a_request_out_after_the_deletions_were_resumed() -> None:
    world = cluster()
    world.create_topic("u", {0: (1, 2)})
    world.set_state(TopicPartition("u", 0), 2, (2, 1), leader_epoch=5)
    world.mark_for_deletion("t")
    request(world, T0, TopicPartition("u", 0))
    active = world.fail_over()
    assert active.context.topics_with_deletion_started == {"t": None}
    assert active.context.cluster.leadership[TopicPartition("u", 0)].leader == 1
    (line,) = (r.fields for r in world.log.records if r.message == "Preferred replica election")
    assert line["outcomes"] == {"INVALID_TOPIC_EXCEPTION": 1, "NONE": 1}
    assert not world.exists(PATH)
