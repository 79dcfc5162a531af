"""What a channel makes of the batches that wait for one broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol.collected_entries import (
    NOTHING_COLLECTED,
    CollectedEntries,
    TopicEntries,
)
from regent.protocol.control_requests import (
    ControlRequest,
    ControlRequests,
    DescribeLogDirsRequest,
    LeaderAndIsrRequest,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from regent.protocol.metadata_updates import UPDATES_ARE_LARGER, SharedMetadata
from regent.protocol.partition_state import PartitionState
from regent.protocol.pending_requests import MAX_OVERTAKEN, PendingRequests, receivers_of
from tests.simulation.channel_history import (
    BROKERS,
    RECEIVER,
    RECREATED_AND_MOVED_AWAY,
    STEPS,
    ChannelHistory,
    Step,
)
from tests.support.examples import scaled_examples

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
DELETE = StopReplicaPartition(-2, True)
KEEP = StopReplicaPartition(5, False)


class Channel:
    """What waits for the receiver, in short."""

    def __init__(self, *, max_partitions: int = 1_000) -> None:
        self.shared = SharedMetadata(max_partitions=max_partitions)
        self.pending = PendingRequests(RECEIVER, shared=self.shared)

    def add(self, batch: ControlRequests) -> None:
        self.pending.add(batch, self.shared.of(batch))

    def take_all(self) -> list[ControlRequest]:
        requests = []
        while self.pending:
            requests.append(self.pending.take())
        assert self.pending.size == 0
        return requests


def batch(
    *partitions: TopicPartition,
    epoch: int = 5,
    leadership: bool = True,
    new: bool = False,
    deleted: bool = False,
    stops: dict[TopicPartition, StopReplicaPartition] | None = None,
    **changes: Any,
) -> ControlRequests:
    """Partitions, announced, with leadership for the receiver unless it says otherwise."""
    leader = LeaderAndIsr(RECEIVER, epoch, (RECEIVER,), 1, epoch)
    assignment = ReplicaAssignment((RECEIVER,))
    values: dict[str, Any] = {
        "controller_id": 7,
        "controller_epoch": 3,
        "brokers": BROKERS,
        "topic_ids": {},
        "partitions": {tp: PartitionState(tp.partition, leader, assignment) for tp in partitions},
        "offline_replicas": {},
        "leader_and_isr": {RECEIVER: dict.fromkeys(partitions, new)} if leadership else {},
        "update_metadata_receivers": (RECEIVER,),
        "deleted_partitions": frozenset(partitions if deleted else ()),
        "stop_replica": {RECEIVER: stops or {}},
    }
    return ControlRequests(**(values | changes))


def stop(*partitions: TopicPartition, how: StopReplicaPartition, **changes: Any) -> ControlRequests:
    """A batch that only stops replicas."""
    stops = dict.fromkeys(partitions, how)
    return batch(stops=stops, update_metadata_receivers=(), **changes)


def kinds(requests: Iterable[ControlRequest]) -> str:
    """L, U, S or D for each, with the partitions."""

    def text(request: ControlRequest) -> str:
        match request:
            case LeaderAndIsrRequest():
                return "L" + names(request.partitions)
            case UpdateMetadataRequest():
                return "U" + names(request.updates.partitions)
            case DescribeLogDirsRequest():
                return "D"
        delete = "!" if all(s.delete for s in request.partitions.values()) else ""
        return "S" + names(request.partitions) + delete

    def names(partitions: Iterable[TopicPartition]) -> str:
        return "".join(f" {tp.topic}{tp.partition}" for tp in partitions)

    return ", ".join(map(text, requests))


steps = st.lists(st.builds(Step, st.sampled_from(STEPS), st.integers(0, 29)), max_size=40)


@scaled_examples(4)
@given(steps=steps, max_partitions=st.sampled_from([1, 2, 1_000]))
def test_a_broker_ends_as_if_it_had_got_every_batch(steps: list[Step], max_partitions: int) -> None:
    """Whatever the controller does and whenever a request is sent: see the model's docstring for
    the orders that it checks on the way."""
    ChannelHistory(max_partitions=max_partitions).play(steps)


@pytest.mark.parametrize("max_partitions", [1, 2, 1_000])
def test_two_deletions_of_a_name_keep_their_epochs(max_partitions: int) -> None:
    ChannelHistory(max_partitions=max_partitions).play(RECREATED_AND_MOVED_AWAY)


def test_collected_entries_go_with_their_batch_and_with_no_other() -> None:
    entries = {RECEIVER: CollectedEntries(b"", {"a": TopicEntries(1, b"entry")})}
    first = batch(A0, entries=entries)
    for then in (None, batch(B0), batch(A0, epoch=9), stop(A0, how=DELETE)):
        channel = Channel()
        channel.add(first)
        if then is not None:
            channel.add(then)
        found = [r.entries for r in channel.take_all() if isinstance(r, LeaderAndIsrRequest)]
        assert found in ([entries[RECEIVER]] if then is None else [NOTHING_COLLECTED], [])
        assert (then is None) == (found == [entries[RECEIVER]])


def test_one_batch_is_sent_in_the_order_of_kafka_and_with_its_own_values() -> None:
    channel = Channel()
    sealed = batch(A0, B0, stops={A1: DELETE})
    channel.add(sealed)
    requests = channel.take_all()
    assert kinds(requests) == "L a0 b0, U a0 b0, S a1!"
    first, second, third = requests
    assert isinstance(first, LeaderAndIsrRequest)
    assert first.partitions is sealed.leader_and_isr[RECEIVER]
    assert isinstance(second, UpdateMetadataRequest)
    assert second.brokers.brokers is BROKERS
    for request in requests:
        assert request.header == (7, 3, RECEIVER, 100)
    assert isinstance(third, StopReplicaRequest)
    assert third.partitions == {A1: DELETE}


def test_a_deletion_goes_before_the_leadership_of_a_recreated_partition() -> None:
    channel = Channel()
    channel.add(stop(A0, A1, how=DELETE))
    channel.add(batch(A0, epoch=0, new=True))
    assert kinds(channel.take_all()) == "S a0!, L a0, U a0, S a1!"


def test_a_new_broker_is_listed_before_leadership_that_overtakes_older_metadata() -> None:
    channel = Channel()
    channel.add(batch())
    channel.add(batch(A0))
    requests = channel.take_all()
    assert kinds(requests) == "U, L a0, U a0"
    channel.add(batch(B0, leadership=False))
    channel.add(batch(A0))
    assert kinds(channel.take_all()) == "L a0, U b0 a0"
    fewer = {b: BROKERS[b] for b in (RECEIVER, 2)}
    channel.add(batch(B0, leadership=False))
    channel.add(batch(A0, brokers=fewer))
    requests = channel.take_all()
    assert kinds(requests) == "U, L a0, U b0 a0"
    assert [list(r.brokers.brokers) for r in requests if isinstance(r, UpdateMetadataRequest)] == [
        [RECEIVER, 2],
        [RECEIVER, 2],
    ]


def test_deletions_do_not_delay_leadership_and_come_to_an_end() -> None:
    channel = Channel(max_partitions=2)
    many = [TopicPartition("gone", n) for n in range(6)]
    channel.add(stop(*many, how=DELETE))
    sent = [channel.pending.take()]
    for epoch in range(2 * MAX_OVERTAKEN):
        channel.add(batch(A0, epoch=epoch))
        sent.append(channel.pending.take())
    order = kinds(sent).split(", ")
    assert [at for at, kind in enumerate(order) if kind.startswith("S")] == [0, MAX_OVERTAKEN + 1]
    assert "S gone4 gone5!" in kinds(channel.take_all())


def test_metadata_has_its_turn_between_leadership_that_keeps_coming() -> None:
    channel = Channel()
    sent = []
    for epoch in range(6):
        channel.add(batch(A0, epoch=epoch))
        sent.append(channel.pending.take())
    assert [kind[0] for kind in kinds(sent).split(", ")] == ["L", "U", "L", "U", "L", "U"]
    metadata = [r for r in sent if isinstance(r, UpdateMetadataRequest)]
    assert [r.updates.partitions[A0].leader_and_isr.leader_epoch for r in metadata] == [0, 2, 4]


def test_large_requests_are_split_but_for_the_first_leader_and_isr() -> None:
    channel = Channel(max_partitions=2)
    many = [TopicPartition("t", n) for n in range(5)]
    for expected in ("L t0 t1 t2 t3 t4", "L t0 t1, L t2 t3, L t4"):
        channel.add(batch(*many))
        assert kinds(channel.take_all()) == f"{expected}, U t0 t1 t2 t3 t4"
    channel.add(batch(*many, deleted=True, leadership=False))
    assert kinds(channel.take_all()) == "U t0 t1, U t2 t3, U t4"
    channel.add(stop(*many, how=DELETE))
    channel.add(stop(A0, how=KEEP))
    assert kinds(channel.take_all()) == "S t0 t1!, S t2 t3!, S t4!, S a0"


def test_an_update_that_removes_no_partition_may_be_several_times_as_large() -> None:
    """A broker that has started denies to clients what its first one does not name."""
    channel = Channel(max_partitions=2)
    many = [TopicPartition("t", n) for n in range(2 * UPDATES_ARE_LARGER + 1)]
    channel.add(batch(*many, leadership=False))
    channel.add(batch(A0, A1, B0, deleted=True, leadership=False))
    whole = " ".join(f"t{tp.partition}" for tp in many[:-1])
    assert kinds(channel.take_all()) == f"U {whole}, U t{many[-1].partition}, U a0 a1, U b0"


def test_a_broker_that_has_started_is_told_of_all_topics_before_its_first_leadership() -> None:
    """As soon as it names brokers, clients believe it that there is no other topic."""
    channel = Channel(max_partitions=1)
    channel.add(batch(*(TopicPartition("t", n) for n in range(7)), leadership=False))
    channel.add(batch(A0))
    channel.add(batch(A1))
    assert kinds(channel.take_all()) == "U t0 t1 t2 t3 t4, U t5 t6, L a0 a1, U a0, U a1"


def test_the_first_leadership_does_not_wait_for_metadata_of_the_same_batch() -> None:
    """A failover: brokers know the topics, and wait for leaders."""
    channel = Channel()
    channel.add(batch())
    channel.add(batch(A0))
    channel.add(batch(B0))
    assert kinds(channel.take_all()) == "U, L a0 b0, U a0 b0"


@pytest.mark.parametrize("max_partitions", [1, 7, 1_000])
def test_silent_broker_has_bounded_requests(max_partitions: int) -> None:
    channel = Channel(max_partitions=max_partitions)
    names = [TopicPartition(f"t{n % 4}", n) for n in range(40)]
    for round_ in range(50):
        for tp in names:
            channel.add(batch(tp, epoch=round_))
            channel.add(batch(tp, deleted=True, leadership=False, stops={tp: DELETE}))
            channel.add(batch(tp, epoch=0, new=True))
            channel.add(batch(stops={tp: KEEP}))
            assert channel.pending.size <= 9 * len(names) + max_partitions + 1


def test_channels_that_wait_for_the_same_get_the_same_values() -> None:
    shared = SharedMetadata()
    in_step = [PendingRequests(RECEIVER, shared=shared) for _ in range(2)]
    late = PendingRequests(RECEIVER, shared=shared)
    for number, tp in enumerate((A0, A1, B0)):
        sealed = batch(tp, leadership=False)
        metadata = shared.of(sealed)
        for pending in [*in_step, *[late] * (number > 0)]:
            pending.add(sealed, metadata)
    taken = [pending.take() for pending in (*in_step, late)]
    first, second, third = (r.updates for r in taken if isinstance(r, UpdateMetadataRequest))
    assert first is second
    assert list(first.partitions) == [A0, A1, B0]
    assert list(third.partitions) == [A1, B0]


def test_the_receivers_of_a_batch_are_those_that_it_has_something_for() -> None:
    sealed = batch(
        leader_and_isr={4: {A0: False}, 5: {}},
        update_metadata_receivers=(6, 4),
        stop_replica={7: {}, 8: {A0: KEEP}},
    )
    assert receivers_of(sealed) == (4, 6, 8)


def test_a_broker_is_asked_for_its_log_directories_once_and_after_all_else() -> None:
    channel = Channel()
    asking = batch(update_metadata_receivers=(), describe_log_dirs=(RECEIVER,))
    channel.add(asking)
    channel.add(asking)
    assert channel.pending.size == 1
    channel.add(stop(A0, how=DELETE))
    channel.add(batch(B0))
    requests = channel.take_all()
    assert kinds(requests) == "L b0, U b0, S a0!, D"
    assert requests[-1].header == (7, 3, RECEIVER, 100)
    assert receivers_of(asking) == (RECEIVER,)


def test_a_broker_that_is_asked_for_its_replicas_says_the_rest_with_them() -> None:
    channel = Channel()
    channel.add(batch(update_metadata_receivers=(), describe_log_dirs=(RECEIVER,)))
    listing = batch(update_metadata_receivers=(), list_replicas=(RECEIVER,))
    channel.add(listing)
    channel.add(batch(update_metadata_receivers=(), describe_log_dirs=(RECEIVER,)))
    assert channel.pending.size == 1
    (request,) = channel.take_all()
    assert request == DescribeLogDirsRequest(request.header, lists_replicas=True)
    assert receivers_of(listing) == (RECEIVER,)
    channel.add(batch(update_metadata_receivers=(), describe_log_dirs=(RECEIVER,)))
    (request,) = channel.take_all()
    assert request == DescribeLogDirsRequest(request.header, lists_replicas=False)
