"""Which states of partitions a controller may send while leaders change them, and afterwards."""

from __future__ import annotations

import pytest

from benchmarks.cluster import Cluster
from benchmarks.errors import BenchmarkError
from benchmarks.verification import Delivery, Verifier, Versions
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from tests.unit.benchmarks.exchanges import BROKER_EPOCHS, ELECTION, batch, sent


class SmallCluster(Cluster):
    """One partition, on the three brokers of the exchanges."""

    def __init__(self) -> None:
        super().__init__(1)
        self.broker_ids = tuple(BROKER_EPOCHS)


CLUSTER = SmallCluster()
(PARTITION,) = CLUSTER.partitions
T0 = TopicPartition(PARTITION.topic, PARTITION.partition)


def verified(state: LeaderAndIsr, versions: Versions) -> Delivery:
    """What is made of a controller that sends this state to everybody."""
    exchanges = sent(batch({T0: (state, ReplicaAssignment(PARTITION.replicas))}), answered_at=10)
    return Verifier(CLUSTER, BROKER_EPOCHS).verify(ELECTION, exchanges, versions)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_every_state_since_the_election_may_be_sent(version: int) -> None:
    versions = Versions({T0: 3}, {T0: 5})
    assert verified(PARTITION.state_at(version), versions).complete_at == 10


@pytest.mark.parametrize("version", [2, 6])
def test_a_state_from_before_the_election_or_one_that_never_was_gives_no_figure(
    version: int,
) -> None:
    with pytest.raises(BenchmarkError, match="is true, or later ones up to 5"):
        verified(PARTITION.state_at(version), Versions({T0: 3}, {T0: 5}))
