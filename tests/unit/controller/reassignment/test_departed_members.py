"""A predecessor has stored assignments, and has left in the ISRs who is not assigned any more."""

from __future__ import annotations

import pytest

from regent.controller.state.states import ReplicaState
from regent.model.partition import ReplicaAssignment
from tests.unit.controller.predecessor import cluster, left_by
from tests.unit.controller.reassignment.moving import Cluster
from tests.unit.controller.world import T0, leader_and_isr

LEFT = "In-sync replicas that were not assigned have left the ISR"


@pytest.mark.parametrize(
    ("replicas", "isr", "kept"),
    [((2,), (1, 3, 2), (2,)), ((2, 1), (3, 2), (2,)), ((2, 3), (1, 3, 2), (3, 2))],
)
def test_who_is_no_replica_leaves_the_isr_at_a_failover(
    replicas: tuple[int, ...], isr: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    world = cluster(replicas, 2, isr)
    assert left_by(world) == (2, kept, 6)
    assert set(leader_and_isr(world.driver.sent)) == set(replicas)


def test_a_leader_that_is_no_replica_is_replaced_by_one_in_sync() -> None:
    assert left_by(cluster((2, 3), 1, (1, 3))) == (3, (3,), 6)


def test_where_no_replica_is_in_sync_nothing_changes() -> None:
    world = cluster((2,), 1, (1,))
    assert left_by(world) == (1, (1,), 5)
    assert world.log.errors("In-sync replicas that are not assigned stay in the ISR")
    assert not world.log.warnings(LEFT)


@pytest.mark.parametrize("target", [(1,), (2, 1)])
def test_a_leader_that_was_not_assigned_can_be_assigned_again(target: tuple[int, ...]) -> None:
    """So the partition is put right where no replica was in sync."""
    cluster = Cluster((2,), isr=(1,), leader=1).start()
    cluster.move(*target)
    sent = leader_and_isr(cluster.world.driver.sent)
    assert sent[1] == {T0: False}, "it has the replica"
    assert cluster.active.context.replica_state(1, T0) is ReplicaState.ONLINE
    cluster.sync(*sorted(target))
    assert cluster.stored() == ReplicaAssignment(target)
    assert cluster.leadership()[:2] == (1, tuple(sorted(target)))
    assert not cluster.world.log.errors("A new replica cannot be the leader")
