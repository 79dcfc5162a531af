"""A figure counts only if what brokers were sent is what ZooKeeper holds."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.delivery import Delivery
from benchmarks.errors import BenchmarkError
from regent.model.partition import (
    EPOCH_DURING_DELETE,
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from regent.protocol.control_requests import ControlRequests, StopReplicaPartition
from tests.unit.benchmarks.exchanges import BROKER_EPOCHS, ELECTION, batch, sent

T0 = TopicPartition("t", 0)
REPLICAS = (1, 2)
STATE = LeaderAndIsr(1, 4, (1, 2), 3, 9)
STATES = {T0: (STATE, ReplicaAssignment(REPLICAS))}


def delivery(*batches: ControlRequests) -> Delivery:
    """Batches, the first one answered at 10, the next at 20 and so on."""
    exchanges = [
        exchange
        for number, one in enumerate(batches, 1)
        for exchange in sent(one, answered_at=number * 10)
    ]
    return Delivery(exchanges, ELECTION, BROKER_EPOCHS)


def with_state(state: LeaderAndIsr) -> ControlRequests:
    return batch({T0: (state, ReplicaAssignment(REPLICAS))})


def test_the_first_answer_to_what_is_true_counts() -> None:
    older = msgspec.structs.replace(STATE, leader_epoch=3)
    seen = delivery(with_state(older), with_state(STATE), with_state(STATE))
    assert seen.leaders_known_at({T0: STATE}, {T0: REPLICAS}) == 20


@pytest.mark.parametrize(
    "wrong",
    [
        msgspec.structs.replace(STATE, leader=2),
        msgspec.structs.replace(STATE, leader_epoch=5),
        msgspec.structs.replace(STATE, isr=(1,)),
        msgspec.structs.replace(STATE, controller_epoch=2),
        msgspec.structs.replace(STATE, partition_epoch=8),
    ],
)
def test_a_leadership_that_is_not_the_one_in_zookeeper_gives_no_figure(
    wrong: LeaderAndIsr,
) -> None:
    seen = delivery(with_state(STATE), with_state(wrong))
    with pytest.raises(BenchmarkError, match="is true"):
        seen.leaders_known_at({T0: STATE}, {T0: REPLICAS})


@pytest.mark.parametrize("missing", ["leader_and_isr", "update_metadata_receivers"])
def test_a_broker_that_was_not_sent_something_gives_no_figure(missing: str) -> None:
    whole = with_state(STATE)
    part = (
        {b: named for b, named in whole.leader_and_isr.items() if b != 2}
        if missing == "leader_and_isr"
        else (1, 2)
    )
    seen = delivery(msgspec.structs.replace(whole, **{missing: part}))
    with pytest.raises(BenchmarkError, match="was sent None"):
        seen.leaders_known_at({T0: STATE}, {T0: REPLICAS})


def test_another_controllers_request_gives_no_figure() -> None:
    with pytest.raises(BenchmarkError, match="another's request"):
        delivery(batch(STATES, epoch=4))


def test_another_brokers_epoch_gives_no_figure() -> None:
    exchanges = sent(batch(STATES), answered_at=10)
    with pytest.raises(BenchmarkError, match="broker epoch"):
        Delivery(exchanges, ELECTION, {**BROKER_EPOCHS, 2: 999})


def test_a_list_without_a_live_broker_gives_no_figure() -> None:
    exchanges = sent(batch(STATES), answered_at=10)
    with pytest.raises(BenchmarkError, match="lists only"):
        Delivery(exchanges, ELECTION, {**BROKER_EPOCHS, 4: 104})


def test_a_leader_without_a_replica_gives_no_figure() -> None:
    with pytest.raises(BenchmarkError, match="without a replica"):
        delivery(with_state(msgspec.structs.replace(STATE, leader=3)))


def test_what_a_dead_broker_is_sent_does_not_count() -> None:
    alive = {b: epoch for b, epoch in BROKER_EPOCHS.items() if b != 3}
    seen = Delivery(sent(with_state(STATE), answered_at=10), ELECTION, alive)
    assert seen.requests == 4  # LeaderAndIsr and UpdateMetadata for each of the two


def test_a_deletion_is_complete_when_all_replicas_are_deleted_and_all_brokers_know() -> None:
    removal = batch(STATES, deleted={T0: EPOCH_DURING_DELETE}, is_removed=True)
    seen = delivery(removal)
    seen.require_forgotten([T0])
    seen.require_epoch_of_deletion({T0: REPLICAS})
    assert seen.deletions_answered_at({T0: REPLICAS}) == 10


def test_a_replica_that_is_not_deleted_gives_no_figure() -> None:
    seen = delivery(batch(STATES))
    with pytest.raises(BenchmarkError, match="was not sent the deletion"):
        seen.deletions_answered_at({T0: REPLICAS})
    with pytest.raises(BenchmarkError, match="deleted"):
        seen.require_forgotten([T0])


def test_a_stopped_replica_need_not_take_its_leadership_over() -> None:
    seen = delivery(
        msgspec.structs.replace(
            with_state(STATE),
            leader_and_isr={1: {T0: False}},
            stop_replica={2: {T0: StopReplicaPartition(4, delete=False)}},
        )
    )
    assert seen.announced_at({T0: STATE}, {T0: REPLICAS}) == 10
    assert seen.taken_over_at({T0: STATE}, {T0: REPLICAS}, {T0: (1,)}) == 10
    assert seen.stopped_at(2, [T0]) == 10
    with pytest.raises(BenchmarkError, match="broker 2, LeaderAndIsr, t-0: was sent None"):
        seen.taken_over_at({T0: STATE}, {T0: REPLICAS}, {T0: REPLICAS})
    with pytest.raises(BenchmarkError, match="broker 1 was sent None"):
        seen.stopped_at(1, [T0])


def test_a_replica_that_is_to_be_deleted_is_not_stopped() -> None:
    seen = delivery(batch(STATES, deleted={T0: 4}))
    with pytest.raises(BenchmarkError, match="delete=True"):
        seen.stopped_at(2, [T0])
