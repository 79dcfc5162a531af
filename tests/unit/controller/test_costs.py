"""No event costs more than what it changes, however large the cluster is."""

from __future__ import annotations

import pytest

from regent.controller import effects
from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.controller.giving_way import LookedAt, after_announcement_ms
from regent.controller.state.deletion_progress import (
    DeletionProgress,
    TopicDeletionProgress,
)
from regent.controller.state.states import PartitionState, ReplicaState
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import StopReplicaPartition, StopReplicaResponse
from regent.zk_data import paths
from tests.unit.controller.driving import once
from tests.unit.controller.world import World

MANY = 60


def cluster_without_broker_3() -> tuple[World, ActiveController]:
    """Many partitions that have no leader because broker 3 is down, and one on broker 2."""
    world = World()
    world.start_broker(1, 2)
    world.create_topic("gone", dict.fromkeys(range(MANY), (3,)))
    world.create_topic("here", {0: (2,)})
    for p in range(MANY):
        world.set_state(TopicPartition("gone", p), 3, (3,), leader_epoch=5)
    world.set_state(TopicPartition("here", 0), 2, (2,), leader_epoch=5)
    active = world.fail_over()
    world.log.records.clear()
    world.driver.performed.clear()
    return world, active


def paths_read(world: World) -> list[str]:
    reads = [e for e in world.driver.performed if isinstance(e, effects.ReadData)]
    return [path for read in reads for path in read.paths]


def test_a_bounce_costs_nothing_for_partitions_of_other_brokers() -> None:
    world, active = cluster_without_broker_3()
    world.bounce_broker(2, seen_by=active)
    assert active.context.partition_state(TopicPartition("here", 0)) is PartitionState.ONLINE
    assert not [path for path in paths_read(world) if "/gone/" in path]
    assert world.log.errors("No leader elected") != []
    assert "gone" not in str(world.log.errors("No leader elected"))


def test_many_failed_elections_are_one_line_with_a_few_examples() -> None:
    world, active = cluster_without_broker_3()
    world.run(active.partitions.trigger_online())
    (line,) = world.log.errors("No leader elected")
    assert line["partitions"] == MANY
    assert "gone-0: " in str(line["examples"])
    assert "gone-59" not in str(line["examples"])


@pytest.mark.parametrize("event", ["bounce", "stop"])
def test_an_election_that_failed_for_an_unreadable_state_is_repeated_at_any_broker_change(
    event: str,
) -> None:
    """No watch reports that a znode was corrected."""
    world, active = cluster_without_broker_3()
    tp = TopicPartition("here", 0)
    good = world.node(paths.partition_state(tp))
    world.put(paths.partition_state(tp), b"{")
    world.bounce_broker(2, seen_by=active)
    assert active.context.partition_state(tp) is PartitionState.OFFLINE
    world.put(paths.partition_state(tp), good.data)
    if event == "bounce":
        world.bounce_broker(1, seen_by=active)
    else:
        world.stop_broker(1, seen_by=active)
    assert active.context.partition_state(tp) is PartitionState.ONLINE
    assert not active.context.elections_to_repeat


def test_an_answer_about_one_topic_does_not_walk_over_the_others_that_are_being_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.start_broker(1, 2)
    topics = [f"t{n}" for n in range(MANY)]
    for topic in topics:
        world.create_topic(topic, {0: (1, 2)})
    active = world.fail_over()
    world.mark_for_deletion(*topics, seen_by=active)
    context = active.context
    asked: list[str] = []
    progress_of = context.deletion_progress

    def noted(topic: str) -> TopicDeletionProgress:
        asked.append(topic)
        return progress_of(topic)

    monkeypatch.setattr(context, "deletion_progress", noted)
    tp = TopicPartition("t7", 0)
    for broker_id in (1, 2):
        response = StopReplicaResponse(broker_id, 0, {}, {tp: StopReplicaPartition(-2, True)})
        world.run(answers.process_stop_replica_responses(active, [response]))
    assert asked == ["t7", "t7"]
    assert not context.cluster.has_topic("t7")
    assert context.replicas_to_delete_count == 2 * (MANY - 1)


def test_the_progress_of_a_deletion_is_counted_by_topic_not_by_replica(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", dict.fromkeys(range(MANY), (1, 2)))
    active = world.fail_over()
    counted: list[str] = []
    count = DeletionProgress.count

    def noted(progress: DeletionProgress, topic: str, state: ReplicaState, change: int) -> None:
        counted.append(topic)
        count(progress, topic, state, change)

    world.mark_for_deletion("t", seen_by=active)
    monkeypatch.setattr(DeletionProgress, "count", noted)
    partitions = [TopicPartition("t", p) for p in range(MANY)]
    asked = dict.fromkeys(partitions, StopReplicaPartition(-2, True))
    world.run(
        answers.process_stop_replica_responses(active, [StopReplicaResponse(1, 0, {}, asked)])
    )
    assert active.context.replicas_to_delete_count == MANY
    assert len(counted) == 2  # from started to successful


def test_a_topic_whose_nodes_could_not_be_removed_is_tried_again_with_the_next_answer() -> None:
    world = World()
    world.start_broker(1)
    for topic in ("t", "u"):
        world.create_topic(topic, {0: (1,)})
    active = world.fail_over()
    world.mark_for_deletion("t", "u", seen_by=active)
    context = active.context

    def finish(topic: str) -> None:
        asked = {TopicPartition(topic, 0): StopReplicaPartition(-2, True)}
        world.run(
            answers.process_stop_replica_responses(active, [StopReplicaResponse(1, 0, {}, asked)])
        )

    world.driver.before = once(
        effects.Write, lambda: world.put(paths.topic_partitions("t") + "/7/state")
    )
    finish("t")
    assert context.is_topic_queued_for_deletion("t")
    finish("u")
    assert not context.cluster.has_topic("t")
    assert not context.cluster.has_topic("u")


def test_many_illegal_transitions_are_one_line() -> None:
    world, active = cluster_without_broker_3()
    replicas = {3: [TopicPartition("gone", p) for p in range(MANY)]}
    world.run(active.replicas.handle_state_changes(replicas, ReplicaState.DELETION_SUCCESSFUL))
    (line,) = world.log.errors("Illegal replica transition")
    assert line["partitions"] == MANY
    world.run(active.partitions.handle_state_changes(replicas[3], PartitionState.NEW))
    (line,) = world.log.errors("Illegal partition transition")
    assert line["partitions"] == MANY


def test_a_broker_that_starts_is_sent_the_values_that_others_were_sent() -> None:
    """They keep their bytes: those of partitions that did not change are not encoded again."""
    world = World()
    world.start_broker(1, 2)
    world.create_topic("t", dict.fromkeys(range(MANY), (1, 2)))
    for p in range(MANY):
        world.set_state(TopicPartition("t", p), 1, (1, 2), leader_epoch=5)
    active = world.fail_over()
    before = {tp: state for sent in world.driver.sent for tp, state in sent.partitions.items()}
    world.driver.sent.clear()
    world.start_broker(3, seen_by=active)
    to_broker_3 = [sent for sent in world.driver.sent if 3 in sent.update_metadata_receivers]
    again = {tp: state for sent in to_broker_3 for tp, state in sent.partitions.items()}
    assert len(again) == MANY
    assert all(again[tp] is before[tp] for tp in again)


# Work on all partitions gives way to what brokers wait for.


def test_the_larger_the_cluster_the_later_other_work_on_all_of_it_begins() -> None:
    assert after_announcement_ms(0) == after_announcement_ms(100_000) == 500
    assert after_announcement_ms(1_000_000) == 5_000


def test_a_walk_that_goes_topic_by_topic_gives_way_after_each_part() -> None:
    looked_at = LookedAt(10)
    sizes = [4, 5, 1, 9, 1, 30, 0, 10]
    assert [looked_at.is_a_part_with(size) for size in sizes] == [
        *(False, False, True),
        *(False, True),
        *(True, False, True),
    ]
