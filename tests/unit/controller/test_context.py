"""The controller's context: lookups, and counts that must equal a recount."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from regent.controller.context import ControllerContext
from regent.controller.states import PartitionState, ReplicaState
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from tests.unit.controller.world import make_broker, make_context

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


class TestBrokers:
    def test_brokers_are_kept_in_order_of_their_ids(self) -> None:
        context = make_context(3, 1)
        context.add_live_brokers([make_broker(2)])
        assert list(context.live_or_shutting_down_brokers) == [1, 2, 3]

    def test_a_registration_replaces_the_one_before(self) -> None:
        context = make_context(1)
        context.add_live_brokers([make_broker(1, epoch=9)])
        assert context.live_or_shutting_down_brokers[1].epoch == 9

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

    def test_an_emptied_list_leaves_no_trace(self) -> None:
        context = make_context(1)
        context.set_replicas_on_offline_dirs(1, [TP])
        context.set_replicas_on_offline_dirs(1, [])
        assert not context.has_offline_replicas
        assert context.is_replica_online(1, TP)

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
        context.add_topic("t", uuid.UUID(int=7))
        context.set_assignment(TP, ReplicaAssignment((1, 2), (2,), ()))
        context.set_leadership({TP: LeaderAndIsr(1, 0, (1,), 1, 0)})
        context.set_partition_state(TP, PartitionState.OFFLINE)
        context.set_replica_state(1, TP, ReplicaState.ONLINE)
        context.queue_topic_for_deletion("t")
        context.topics_with_deletion_started["t"] = None
        context.topics_ineligible_for_deletion["t"] = None
        context.remove_topic("t")
        assert not context.has_topic("t")
        assert list(context.all_partitions()) == []
        assert context.partition_count == 0
        assert context.topic_ids == {}
        assert context.leadership == {}
        assert context.partition_states == {}
        assert context.replica_states_on(1) == {}
        assert list(context.partitions_being_reassigned) == []
        assert not context.is_topic_queued_for_deletion("t")
        assert context.topics_with_deletion_started == {}
        assert context.topics_ineligible_for_deletion == {}
        assert context.offline_partition_count == 0

    def test_a_topic_without_an_id_keeps_the_one_that_is_known(self) -> None:
        context = make_context()
        context.add_topic("t", uuid.UUID(int=7))
        context.add_topic("t", None)
        assert context.topic_ids == {"t": uuid.UUID(int=7)}

    def test_an_unknown_partition_has_no_replicas(self) -> None:
        context = make_context()
        context.set_assignment(TP, ReplicaAssignment((1,)))
        assert context.assignment(OTHER) is None
        assert context.assignment(TopicPartition("u", 0)) is None
        assert context.replicas(OTHER) == ()

    def test_a_partition_is_being_reassigned_while_replicas_come_or_go(self) -> None:
        context = make_context()
        context.set_assignment(TP, ReplicaAssignment((1, 2), (2,), ()))
        context.set_assignment(OTHER, ReplicaAssignment((1,), (), (1,)))
        assert list(context.partitions_being_reassigned) == [TP, OTHER]
        context.set_assignment(TP, ReplicaAssignment((1, 2)))
        assert list(context.partitions_being_reassigned) == [OTHER]

    def test_assignments_of_one_topic_can_be_set_together(self) -> None:
        context = make_context()
        context.set_assignments("t", {TP: ReplicaAssignment((1, 2), (2,), ())})
        assert list(context.partitions_being_reassigned) == [TP]
        finished = {TP: ReplicaAssignment((1, 2)), OTHER: ReplicaAssignment((2,))}
        context.set_assignments("t", finished)
        assert dict(context.partitions_of("t")) == finished
        assert list(context.partitions_being_reassigned) == []


class TestReplicas:
    def test_unknown_replicas_do_not_exist(self) -> None:
        context = make_context(1)
        assert context.replica_state(1, TP) is ReplicaState.NON_EXISTENT
        context.set_replica_state(1, TP, ReplicaState.NON_EXISTENT)
        assert context.replica_states_on(1) == {}

    def test_forgotten_replicas_do_not_exist_any_more(self) -> None:
        context = make_context(1)
        context.set_replica_states(1, [TP, OTHER], ReplicaState.DELETION_SUCCESSFUL)
        context.set_replica_state(1, TP, ReplicaState.NON_EXISTENT)
        assert list(context.replica_states_on(1)) == [OTHER]

    def test_replicas_of_a_topic_in_a_state_by_broker(self) -> None:
        context = make_context(1, 2)
        for tp in (TP, OTHER):
            context.set_assignment(tp, ReplicaAssignment((1, 2)))
            context.set_replica_state(1, tp, ReplicaState.OFFLINE)
        context.set_replica_state(2, OTHER, ReplicaState.OFFLINE)
        found = context.replicas_of_topic_in_state("t", ReplicaState.OFFLINE)
        assert found == {1: [TP, OTHER], 2: [OTHER]}

    def test_partitions_led_by_a_broker(self) -> None:
        context = make_context(1, 2)
        for tp, leader in ((TP, 1), (OTHER, 2)):
            context.set_assignment(tp, ReplicaAssignment((1, 2)))
            context.set_replica_states(1, [tp], ReplicaState.ONLINE)
            context.set_leadership({tp: LeaderAndIsr(leader, 0, (1, 2), 1, 0)})
        assert context.partitions_led_by(1) == [TP]


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
        assert context.new_partition_count == len(context.partitions_in_state(PartitionState.NEW))


@given(st.lists(st.tuples(st.sampled_from(PARTITIONS), st.sampled_from(PartitionState))))
def test_states_are_what_was_last_set_and_listed_in_order_of_appearance(
    changes: list[tuple[TopicPartition, PartitionState]],
) -> None:
    context = make_context(1)
    last: dict[TopicPartition, PartitionState] = {}
    for tp, state in changes:
        context.set_partition_state(tp, state)
        if state is PartitionState.NON_EXISTENT:
            last.pop(tp, None)
        else:
            last[tp] = state
    assert dict(context.partition_states) == last
    for state in PartitionState:
        assert context.partitions_in_state(state) == [tp for tp, s in last.items() if s is state]
