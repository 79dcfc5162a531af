"""A figure counts only if what brokers were sent is what ZooKeeper holds."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.delivery import Delivery
from benchmarks.errors import BenchmarkError
from regent.model.partition import (
    LeaderAndIsr,
    ReplicaAssignment,
    TopicPartition,
)
from regent.protocol.control_requests import ControlRequests
from tests.unit.benchmarks.exchanges import BROKER_EPOCHS, ELECTION, batch, sent

T0 = TopicPartition("t", 0)
REPLICAS = (1, 2)
STATE = LeaderAndIsr(1, 4, (1, 2), 3, 9)


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


def test_wrong_leadership_gives_no_figure() -> None:
    wrong = msgspec.structs.replace(STATE, isr=(1,))
    seen = delivery(with_state(STATE), with_state(wrong))
    with pytest.raises(BenchmarkError, match="is true"):
        seen.leaders_known_at({T0: STATE}, {T0: REPLICAS})
