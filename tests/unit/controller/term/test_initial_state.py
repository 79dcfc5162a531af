"""A failover that loads the standby's copy, and one that reads everything."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from regent.cluster.reads import LISTED, Listing
from regent.controller import effects
from regent.controller.active_controller import ActiveController
from regent.controller.events import TopicsUnwatched
from regent.controller.state.standby_copy import StandbyCopy
from regent.controller.state.states import PartitionState
from regent.controller.topics.unwatched_topics import TIMER, process_topics_unwatched
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.standby.cache import StandbyCache
from regent.standby.prepared_states import PreparedStates
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.operations import WatchedEvent, WatchedEventType
from tests.support.broker_znodes import encode_isr_change_notification
from tests.unit.controller.driving import once
from tests.unit.controller.term.test_failover import writing
from tests.unit.controller.world import T0, T1, World

U0 = TopicPartition("u", 0)


def copy_of(world: World) -> StandbyCopy:
    """What a standby has that has read everything."""
    cache = StandbyCache()
    cache.expect_anything(Listing.of([world.zookeeper.children(path) for path in LISTED]))
    while reads := cache.next_reads(1_000):
        cache.apply(reads, [world.zookeeper.get(path) for path in reads.paths])
    return cache.copy()


@pytest.fixture
def world() -> World:
    """Broker 3 is down; t-1 has never had a leader; u is on its way to broker 2."""
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", {0: (3, 1), 1: (1, 2)}, topic_id=uuid.UUID(int=8))
    world.set_state(T0, 3, (3, 1), leader_epoch=5)
    world.create_topic("u", {0: ReplicaAssignment((2, 1), (2,), ())}, topic_id=uuid.UUID(int=9))
    world.set_state(U0, 1, (1,), leader_epoch=5)
    world.driver.standby = lambda: copy_of(world)
    return world


def loaded_from(world: World) -> list[object]:
    return [
        record.fields["topics_from"]
        for record in world.log.records
        if record.message == "Controller failover completed"
    ]


def paths_read(world: World) -> list[str]:
    reads = [e for e in world.driver.performed if isinstance(e, zk_effects.ReadData)]
    return [path for read in reads for path in read.paths]


def described(active: ActiveController) -> dict[str, object]:
    """What depends on no term."""
    context, cluster = active.context, active.context.cluster
    return {
        "topics": sorted(cluster.topics),
        "ids": dict(cluster.topic_ids),
        "names": {i: cluster.topic_name(i) for i in cluster.topic_ids.values()},
        "czxids": dict(cluster.topic_czxids),
        "assignments": {t: dict(cluster.partitions_of(t)) for t in cluster.topics},
        "count": cluster.partition_count,
        "reassigning": sorted(cluster.partitions_being_reassigned),
        "leaders": {tp: (s.leader, s.isr, s.leader_epoch) for tp, s in cluster.leadership.items()},
        "states": dict(context.partition_states),
        "replicas": {b: dict(context.replica_states_on(b)) for b in (1, 2, 3)},
        "imbalanced": context.balance.imbalance_count,
        "metric names": {t: list(cluster.topics_with_metric_name(t)) for t in cluster.topics},
        "changed": sorted(cluster.take_changed_topics()),
    }


def test_the_copy_is_loaded_without_reading_topics_and_states(world: World) -> None:
    active = world.fail_over()
    assert loaded_from(world) == ["standby"]
    assert paths.topic("t") not in paths_read(world)
    assert paths.partition_state(T0) not in paths_read(world)
    assert active.context.cluster.leadership[T0] == LeaderAndIsr(1, 7, (1,), 1, 2)
    assert active.context.cluster.leadership[T1] == LeaderAndIsr(1, 0, (1, 2), 1, 0)


Standby = Callable[[World], StandbyCopy | None]


def no_copy(_: World) -> None:
    """What there is without a standby's cache."""


def test_the_context_is_that_of_a_failover_that_reads_everything() -> None:
    def context_with(standby: Standby) -> dict[str, object]:
        made = World()
        made.start_broker(1, 2)
        made.create_topic("t", {0: (3, 1), 1: (1, 2)}, topic_id=uuid.UUID(int=8))
        made.set_state(T0, 3, (3, 1), leader_epoch=5)
        made.create_topic("u", {0: ReplicaAssignment((2, 1), (2,), ())})
        made.set_state(U0, 1, (1,), leader_epoch=5)
        made.create_topic("a_b", {0: (1,)})
        made.create_topic("a.b", {0: (2,)})
        made.create_topic("marked", {0: (1,), 1: (3,)})
        made.mark_for_deletion("marked")
        made.driver.standby = lambda: standby(made)
        return described(made.fail_over())

    warm = context_with(copy_of)
    assert warm == context_with(no_copy)
    assert warm["reassigning"] == [U0]


@pytest.mark.parametrize("standby", [copy_of, no_copy])
def test_topics_that_cannot_be_read_are_named(world: World, standby: Standby) -> None:
    world.put(paths.topic("broken"), b"[1")
    world.put(paths.topic("half"), b'{"version":2,"partitions":{"0":[1],"1":["x"]}}')
    world.driver.standby = lambda: standby(world)
    cluster = world.fail_over().context.cluster
    assert cluster.unreadable_topics.keys() == {"broken", "half"}
    assert cluster.unreadable_topics["half"].startswith("partition 1: ")
    assert {"broken", "half"} <= set(cluster.take_changed_topics())


def test_the_copy_is_asked_for_after_notifications_were_dropped(world: World) -> None:
    """They announce what the copy has to have."""
    notification = paths.isr_change_notification("isr_change_0000000001")
    world.put(notification, encode_isr_change_notification([T0]))
    world.fail_over()
    kinds = [type(effect) for effect in world.driver.performed]
    assert writing(world, notification) < kinds.index(effects.ReadStandby)


def test_what_changes_after_the_copy_is_found_when_its_watches_are_set(world: World) -> None:
    """t is another topic by now, u has grown, v has come, and w grows later."""
    world.create_topic("w", {0: (2,)}, topic_id=uuid.UUID(int=10))

    def change() -> None:
        world.delete(paths.topic("t"))
        world.create_topic("t", {0: (2,)})
        world.create_topic("u", {0: ReplicaAssignment((2, 1), (2,), ()), 1: (2,)})
        world.create_topic("v", {0: (1,)})

    world.driver.after = once(effects.ReadStandby, change)
    active = world.fail_over()
    assert world.driver.enqueued == []
    assert world.driver.timers[TIMER].event == TopicsUnwatched()
    world.run(process_topics_unwatched(active))
    assert dict(active.context.cluster.partitions_of("t")) == {T0: ReplicaAssignment((2,))}
    assert active.context.cluster.leadership[T0].leader == 2
    assert active.context.cluster.leadership[TopicPartition("u", 1)].leader == 2
    listed = WatchedEvent(WatchedEventType.NODE_CHILDREN_CHANGED, paths.BROKER_TOPICS)
    assert listed in world.driver.client.take_events()
    world.create_topic("w", {0: (2,), 1: (1,)})
    grown = WatchedEvent(WatchedEventType.NODE_DATA_CHANGED, paths.topic("w"))
    assert grown in world.driver.client.take_events()


@pytest.mark.parametrize("change", ["one more", "one less"])
def test_a_copy_with_other_topics_than_those_listed_is_not_used(world: World, change: str) -> None:
    copy = copy_of(world)
    if change == "one more":
        world.create_topic("v", {0: (1,)})
    else:
        world.delete(paths.topic("u"))
    world.driver.standby = lambda: copy
    active = world.fail_over()
    assert loaded_from(world) == ["ZooKeeper"]
    assert active.context.cluster.has_topic("v") is (change == "one more")
    assert active.context.cluster.has_topic("u") is (change == "one more")
    assert [r.message for r in world.log.records if r.level == "warning"] == [
        "The standby's copy has other topics than ZooKeeper, reading everything"
    ]


def test_a_partition_whose_state_the_copy_leaves_out_is_not_new(world: World) -> None:
    tp = TopicPartition("v", 0)
    world.create_topic("v", {0: (3,)})
    world.put(paths.partition_state(tp), b"no state")
    active = world.fail_over()
    assert loaded_from(world) == ["standby"]
    assert active.context.partition_state(tp) is PartitionState.OFFLINE
    assert active.context.offline_partition_count == 1
    error = world.log.errors("Malformed partition states skipped")[0]
    assert f"{paths.partition_state(tp)}: " in str(error["examples"])


def test_what_was_prepared_is_sent_as_it_is(world: World) -> None:
    """Of v, whose leader is alive; the others get another leader or another ISR."""
    v0 = TopicPartition("v", 0)
    world.create_topic("v", {0: (1, 2)}, topic_id=uuid.UUID(int=10))
    world.set_state(v0, 2, (2,), leader_epoch=5)
    copy = copy_of(world)
    prepared = PreparedStates()
    while prepared.prepare(copy.cluster, most=1):
        pass
    made = dict(copy.cluster.announced_states)
    world.driver.standby = lambda: copy
    active = world.fail_over()
    (first,) = [batch for batch in world.driver.sent if v0 in batch.partitions]
    assert first.partitions[v0] is made[v0]
    last = next(batch for batch in reversed(world.driver.sent) if T0 in batch.partitions)
    assert last.partitions[T0].leader_and_isr == active.context.cluster.leadership[T0]
