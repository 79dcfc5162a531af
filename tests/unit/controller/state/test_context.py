"""The controller's context: lookups, and counts that must equal a recount."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState, ReplicaState
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from tests.unit.controller.world import make_broker, make_context

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


class TestBrokers:
    def test_a_broker_that_is_shutting_down_is_not_live_but_still_there(self) -> None:
        context = make_context(1, 2)
        context.mark_shutting_down(1)
        assert list(context.live_broker_ids) == [2]
        assert not context.is_broker_online(1)
        assert context.is_broker_online(1, include_shutting_down=True)
        context.clear_shutting_down(1)
        assert context.live_broker_ids == (1, 2)

    def test_a_broker_that_is_gone_is_not_there_even_when_it_was_shutting_down(self) -> None:
        context = make_context(1)
        context.mark_shutting_down(1)
        context.remove_live_brokers([1])
        assert not context.is_broker_online(1, include_shutting_down=True)


class TestFailedDirs:
    def test_a_replica_on_a_failed_dir_is_offline_on_a_live_broker(self) -> None:
        context = make_context(1)
        context.set_replicas_on_offline_dirs(1, [TP])
        assert not context.is_replica_online(1, TP)
        assert context.is_replica_online(1, OTHER)
        assert context.is_broker_online(1)

    def test_the_replicas_of_a_removed_topic_leave_no_trace(self) -> None:
        context = make_context(1)
        context.set_assignment(TP, ReplicaAssignment((1,)))
        context.set_replicas_on_offline_dirs(1, [TP])
        context.remove_topic("t")
        assert context.is_replica_online(1, TP)
        assert not context.has_offline_replicas


class TestTopics:
    def test_a_removed_topic_is_forgotten_altogether(self) -> None:
        context = make_context(1, 2)
        context.cluster.add_topic("t", uuid.UUID(int=7))
        context.set_assignment(TP, ReplicaAssignment((1, 2), (2,), ()))
        context.cluster.set_leadership({TP: LeaderAndIsr(1, 0, (1,), 1, 0)})
        context.set_partition_state(TP, PartitionState.OFFLINE)
        context.set_replica_state(1, TP, ReplicaState.ONLINE)
        context.queue_topic_for_deletion("t")
        context.topics_with_deletion_started["t"] = None
        context.topics_ineligible_for_deletion["t"] = None
        context.remove_topic("t")
        assert not context.cluster.has_topic("t")
        assert list(context.cluster.all_partitions()) == []
        assert context.cluster.partition_count == 0
        assert context.cluster.topic_ids == {}
        assert context.cluster.leadership == {}
        assert context.partition_states == {}
        assert context.replica_states_on(1) == {}
        assert list(context.cluster.partitions_being_reassigned) == []
        assert not context.is_topic_queued_for_deletion("t")
        assert context.topics_with_deletion_started == {}
        assert context.topics_ineligible_for_deletion == {}
        assert context.offline_partition_count == 0

    def test_a_topic_without_an_id_keeps_the_one_that_is_known(self) -> None:
        context = make_context()
        context.cluster.add_topic("t", uuid.UUID(int=7))
        context.cluster.add_topic("t", None)
        assert context.cluster.topic_ids == {"t": uuid.UUID(int=7)}


def test_replicas_of_a_topic_in_a_state_by_broker() -> None:
    context = make_context(1, 2)
    for tp in (TP, OTHER):
        context.set_assignment(tp, ReplicaAssignment((1, 2)))
        context.set_replica_state(1, tp, ReplicaState.OFFLINE)
    context.set_replica_state(2, OTHER, ReplicaState.OFFLINE)
    found = context.replicas_of_topic_in_state("t", ReplicaState.OFFLINE)
    assert found == {1: [TP, OTHER], 2: [OTHER]}


PARTITIONS = [TopicPartition(topic, p) for topic in ("a", "b", "c") for p in range(2)]

Step = Callable[[ControllerContext], None]

set_state: st.SearchStrategy[Step] = st.builds(
    lambda tp, state: lambda context: context.set_partition_state(tp, state),
    st.sampled_from(PARTITIONS),
    st.sampled_from(PartitionState),
)
load_states: st.SearchStrategy[Step] = st.builds(
    lambda states: lambda context: context.load_partition_states(states),
    st.dictionaries(
        st.sampled_from(PARTITIONS),
        st.sampled_from([PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE]),
    ),
)
queue: st.SearchStrategy[Step] = st.builds(
    lambda topic: lambda context: context.queue_topic_for_deletion(topic),
    st.sampled_from("abc"),
)


def _remove(context: ControllerContext, topic: str) -> None:
    context.remove_topic(topic)
    for tp in PARTITIONS:
        context.set_assignment(tp, ReplicaAssignment((1,)))


remove: st.SearchStrategy[Step] = st.builds(
    lambda topic: lambda context: _remove(context, topic), st.sampled_from("abc")
)


@given(st.lists(set_state | load_states | queue | remove, max_size=30))
def test_the_counts_of_partitions_equal_a_recount_after_every_step(
    steps: list[Step],
) -> None:
    context = make_context(1)
    for tp in PARTITIONS:
        context.set_assignment(tp, ReplicaAssignment((1,)))
    for step in steps:
        step(context)
        assert context.offline_partition_count == sum(
            state is PartitionState.OFFLINE
            for tp, state in context.partition_states.items()
            if not context.is_topic_queued_for_deletion(tp.topic)
        )
        states = list(context.partition_states.values())
        assert context.new_partition_count == states.count(PartitionState.NEW)


BROKERS = (1, 2, 3)
replica_lists = st.lists(st.sampled_from(BROKERS), unique=True, max_size=3).map(tuple)
partitions = st.sampled_from(PARTITIONS)


def _assign(tp: TopicPartition, replicas: tuple[int, ...], adding: tuple[int, ...]) -> Step:
    return lambda context: context.set_assignment(tp, ReplicaAssignment(replicas, adding, ()))


def _change_replicas(broker_id: int, tps: list[TopicPartition], state: ReplicaState) -> Step:
    def change(context: ControllerContext) -> None:
        if state is ReplicaState.NON_EXISTENT:
            for tp in tps:
                context.set_replica_state(broker_id, tp, state)
        else:
            context.set_replica_states(broker_id, tps, state)

    return change


def _change_dirs(broker_id: int, failed: list[TopicPartition], back: list[TopicPartition]) -> Step:
    return lambda context: context.change_replicas_on_offline_dirs(
        broker_id, failed=failed, recovered=back
    )


def _shut_down(broker_id: int, is_shutting_down: bool, is_live: bool) -> Step:
    def change(context: ControllerContext) -> None:
        if is_shutting_down:
            context.mark_shutting_down(broker_id)
        else:
            context.clear_shutting_down(broker_id)
        if is_live:
            context.add_live_brokers([make_broker(broker_id)])
        else:
            context.remove_live_brokers([broker_id])

    return change


# Without load_partition_states: what a failover loads is published as a whole.
any_change: st.SearchStrategy[Step] = st.one_of(
    set_state,
    queue,
    st.sampled_from("abc").map(lambda topic: lambda context: context.remove_topic(topic)),
    st.builds(_assign, partitions, replica_lists, replica_lists),
    st.builds(
        _change_replicas,
        st.sampled_from(BROKERS),
        st.lists(partitions, max_size=4),
        st.sampled_from(ReplicaState),
    ),
    st.builds(_change_dirs, st.sampled_from(BROKERS), st.lists(partitions), st.lists(partitions)),
    st.builds(_shut_down, st.sampled_from(BROKERS), st.booleans(), st.booleans()),
    st.builds(
        lambda tp, leader: (
            lambda context: context.cluster.set_leadership(
                {tp: LeaderAndIsr(leader, 0, (leader,), 1, 0)}
            )
        ),
        partitions,
        st.sampled_from(BROKERS),
    ),
)


def _replicas_to_delete(context: ControllerContext, topic: str) -> list[ReplicaState]:
    return [
        context.replica_state(broker_id, tp)
        for tp, assignment in context.cluster.partitions_of(topic).items()
        for broker_id in assignment.replicas
    ]


def _pictures(context: ControllerContext) -> dict[str, object]:
    """All that a view tells of each topic."""
    return {
        topic: [
            (
                tp,
                assignment,
                context.cluster.leadership.get(tp),
                context.partition_state(tp),
                context.is_topic_queued_for_deletion(topic),
            )
            for tp, assignment in context.cluster.partitions_of(topic).items()
        ]
        for topic in context.cluster.topics
    }


@given(st.lists(any_change, max_size=40))
def test_whatever_happens_what_is_kept_equals_a_recount(steps: list[Step]) -> None:
    context = make_context(*BROKERS)
    context.cluster.take_changed_topics()
    for step in steps:
        before = _pictures(context)
        step(context)
        queued = {t: _replicas_to_delete(context, t) for t in context.topics_to_be_deleted}
        states = [state for some in queued.values() for state in some]
        deleted = ReplicaState.DELETION_SUCCESSFUL
        assert context.replicas_to_delete_count == len(states) - states.count(deleted)
        assert context.replicas_ineligible_to_delete_count == states.count(
            ReplicaState.DELETION_INELIGIBLE
        )
        for topic, some in queued.items():
            progress = context.deletion_progress(topic)
            assert progress.is_complete == (set(some) <= {deleted})
            assert progress.started == some.count(ReplicaState.DELETION_STARTED)
            assert progress.ineligible == some.count(ReplicaState.DELETION_INELIGIBLE)
        assert context.cluster.partition_count == len(list(context.cluster.all_partitions()))
        assert context.live_broker_count == len(context.live_broker_ids)
        assert sorted(context.partitions_without_leader) == sorted(
            tp
            for tp, state in context.partition_states.items()
            if state in (PartitionState.NEW, PartitionState.OFFLINE)
        )
        assert context.has_offline_replicas == any(
            context.replicas_on_offline_dirs(broker_id) for broker_id in BROKERS
        )
        for topic in context.cluster.topics:
            assert context.cluster.is_topic_being_reassigned(topic) == any(
                a.is_being_reassigned for a in context.cluster.partitions_of(topic).values()
            )
        after = _pictures(context)
        changed = {t for t in before | after if before.get(t) != after.get(t)}
        assert changed <= set(context.cluster.take_changed_topics())


@pytest.mark.usefixtures("without_the_collector")
def test_a_context_is_freed_with_the_last_reference_to_it() -> None:
    """Without the collector, which looks at everything only now and then."""
    context = make_context(1)
    assert context.balance.imbalance_count == 0
    freed = weakref.ref(context.cluster)
    del context
    assert freed() is None
