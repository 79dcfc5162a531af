"""What a batch says, and to whom."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from regent.controller.effects import SendRequests
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol.control_requests import ControlRequests, StopReplicaPartition
from regent.protocol.partition_state import PartitionState
from tests.unit.controller.world import make_context

A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)
B0 = TopicPartition("b", 0)


def loaded(*broker_ids: int) -> ControllerContext:
    """Partitions a-0, a-1 and b-0 on brokers 1 to 3, led by broker 1."""
    context = make_context(*broker_ids, epoch=4)
    for tp in (A0, A1, B0):
        context.cluster.add_topic(tp.topic, uuid.UUID(int=ord(tp.topic)))
        context.set_assignment(tp, ReplicaAssignment((1, 2, 3)))
        context.cluster.set_leadership({tp: LeaderAndIsr(1, 5, (1, 2, 3), 4, 7)})
    return context


def sealed(
    context: ControllerContext, fill: Callable[[ControllerBrokerRequestBatch], None]
) -> ControlRequests | None:
    """What one batch sends, if anything."""
    batch = ControllerBrokerRequestBatch(context)
    fill(batch)
    return sent(batch)


def sent(batch: ControllerBrokerRequestBatch) -> ControlRequests | None:
    process = batch.send()
    try:
        effect = process.send(None)
    except StopIteration:
        return None
    assert isinstance(effect, SendRequests)
    process.close()
    return effect.requests


def requests_of(
    context: ControllerContext, fill: Callable[[ControllerBrokerRequestBatch], None]
) -> ControlRequests:
    requests = sealed(context, fill)
    assert requests is not None
    return requests


def test_what_is_sent_of_a_partition_is_its_state_at_the_end() -> None:
    context = loaded(1, 2)
    last = LeaderAndIsr(2, 6, (2,), 4, 8)
    batch = ControllerBrokerRequestBatch(context)
    batch.add_leader_and_isr((1,), [A0], is_new=False)
    context.cluster.set_leadership({A0: last})
    context.set_assignment(A0, ReplicaAssignment((2, 1)))
    requests = sent(batch)
    assert requests is not None
    assert requests.partitions[A0] == PartitionState(0, last, ReplicaAssignment((2, 1)))


def test_batches_share_the_value_of_a_partition_until_it_changes() -> None:
    """With it they share its bytes: a broker's start and a failover cost no encoding."""
    context = loaded(1, 2, 3)

    def values() -> list[PartitionState]:
        requests = requests_of(context, lambda b: b.add_update_metadata([A0, A1, B0]))
        return [requests.partitions[tp] for tp in (A0, A1, B0)]

    def unchanged(before: list[PartitionState], after: list[PartitionState]) -> list[bool]:
        return [old is new for old, new in zip(before, after, strict=True)]

    first = values()
    assert unchanged(first, values()) == [True, True, True]
    context.cluster.set_leadership({A0: LeaderAndIsr(2, 6, (2,), 4, 8)})
    context.set_assignment(A1, ReplicaAssignment((3, 2, 1)))
    second = values()
    assert unchanged(first, second) == [False, False, True]
    assert second[0].leader_and_isr.leader == 2
    assert second[1].assignment.replicas == (3, 2, 1)
    context.remove_topic("b")
    context.cluster.forget_leadership(A1)
    assert list(context.cluster.announced_states) == [A0]


def test_dead_and_negative_receivers_are_dropped() -> None:
    def fill(batch: ControllerBrokerRequestBatch) -> None:
        batch.add_leader_and_isr((-1, 1, 9), [A0], is_new=False)
        batch.add_stop_replica(9, [A0], delete=False)
        batch.add_update_metadata(broker_ids=(1, 9))

    requests = requests_of(loaded(1), fill)
    assert list(requests.leader_and_isr) == [1]
    assert requests.stop_replica == {}
    assert requests.update_metadata_receivers == (1,)


def test_partitions_without_leadership_are_not_announced() -> None:
    context = loaded(1)
    unborn = TopicPartition("a", 2)
    context.set_assignment(unborn, ReplicaAssignment((1,)))
    requests = requests_of(context, lambda b: b.add_update_metadata([unborn, A0]))
    assert tuple(requests.partitions) == (A0,)
    assert unborn not in requests.partitions


def test_everybody_forgets_a_deleted_partition_whose_leadership_is_unknown() -> None:
    context = loaded(1)
    damaged = TopicPartition("a", 2)
    context.set_assignment(damaged, ReplicaAssignment((1,)))
    context.queue_topic_for_deletion("a")
    requests = requests_of(context, lambda b: b.add_update_metadata([damaged, A0]))
    assert tuple(requests.partitions) == (damaged, A0)
    assert requests.deleted_partitions == {damaged, A0}
    assert requests.partitions[damaged].leader_and_isr.isr == ()


def test_the_deletion_of_a_stray_replica_skips_the_epoch_check() -> None:
    requests = requests_of(loaded(1), lambda b: b.add_stray_deletion(1, [A0]))
    assert requests.stop_replica == {1: {A0: StopReplicaPartition(-1, True)}}


def test_stop_replica_of_a_topic_being_deleted_skips_the_epoch_check() -> None:
    context = loaded(1)
    unborn = TopicPartition("c", 0)
    context.set_assignment(unborn, ReplicaAssignment((1,)))
    context.queue_topic_for_deletion("a")
    requests = requests_of(context, lambda b: b.add_stop_replica(1, [A0, B0, unborn], delete=True))
    epochs = {tp: stop.leader_epoch for tp, stop in requests.stop_replica[1].items()}
    assert epochs == {A0: -2, B0: 5, unborn: -1}


def test_replicas_on_dead_brokers_and_failed_dirs_are_named_as_offline() -> None:
    context = loaded(1, 2)
    context.set_replicas_on_offline_dirs(2, [A0])
    requests = requests_of(context, lambda b: b.add_update_metadata([A0, A1, B0]))
    assert requests.offline_replicas == {A0: (2, 3), A1: (3,), B0: (3,)}


partitions = st.sampled_from([A0, A1, B0])
additions = st.lists(
    st.tuples(
        st.sampled_from(["leader_and_isr", "stop_replica"]),
        st.integers(1, 4),
        st.lists(partitions, min_size=1, max_size=3, unique=True),
        st.booleans(),
    ),
    max_size=8,
)


@given(additions)
def test_everything_added_for_a_live_broker_is_sent_exactly_once(
    added: list[tuple[str, int, list[TopicPartition], bool]],
) -> None:
    def fill(batch: ControllerBrokerRequestBatch) -> None:
        for kind, broker_id, members, flag in added:
            if kind == "leader_and_isr":
                batch.add_leader_and_isr((broker_id,), members, is_new=flag)
            else:
                batch.add_stop_replica(broker_id, members, delete=flag)

    def expected(kind: str) -> dict[int, dict[TopicPartition, bool]]:
        merged: dict[int, dict[TopicPartition, bool]] = {}
        for what, broker_id, members, flag in added:
            if what == kind and broker_id != 4:
                entries = merged.setdefault(broker_id, {})
                for tp in members:
                    entries[tp] = entries.get(tp, False) or flag
        return merged

    requests = sealed(loaded(1, 2, 3), fill)
    told = {} if requests is None else requests.leader_and_isr
    stopped = {} if requests is None else requests.stop_replica
    assert told == expected("leader_and_isr")
    assert {b: {tp: s.delete for tp, s in e.items()} for b, e in stopped.items()} == expected(
        "stop_replica"
    )
    if requests is not None:
        named = {tp for kind, _, members, _ in added if kind == "leader_and_isr" for tp in members}
        assert set(requests.partitions) == named
