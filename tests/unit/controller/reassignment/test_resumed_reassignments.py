"""Reassignments that another controller has begun."""

from __future__ import annotations

import pytest

from regent.controller.brokers.answers import (
    process_describe_log_dirs_response,
    process_stop_replica_responses,
)
from regent.model.partition import ReplicaAssignment
from regent.protocol.control_requests import (
    DescribeLogDirsResponse,
    StopReplicaPartition,
    StopReplicaResponse,
)
from regent.zk_data.stray_replicas import strays_of
from tests.unit.controller.reassignment.moving import Cluster
from tests.unit.controller.world import T0, leader_and_isr, stop_replica


class TestOrigins:
    """What a failover finds: each phase, begun by whomever."""

    @pytest.mark.parametrize(
        ("assignment", "leader", "isr"),
        [
            pytest.param(ReplicaAssignment((3, 1), (3,), (1,)), 1, (1,), id="after U1"),
            pytest.param(ReplicaAssignment((3, 1), (3,), (1,)), 1, (1, 3), id="in sync"),
            pytest.param(ReplicaAssignment((3, 1), (3,), (1,)), 3, (1, 3), id="after B3"),
            pytest.param(ReplicaAssignment((3, 1), (3,), (1,)), 3, (3,), id="after B4"),
        ],
    )
    def test_it_is_brought_to_its_target(
        self, assignment: ReplicaAssignment, leader: int, isr: tuple[int, ...]
    ) -> None:
        cluster = Cluster(assignment, isr=isr, leader=leader)
        cluster.fail_over()
        if 3 not in isr:
            received = leader_and_isr(cluster.world.driver.sent)
            assert received[3] == {T0: True}
            cluster.sync(*isr, 3)
        assert cluster.stored() == ReplicaAssignment((3,))
        assert cluster.leadership()[:2] == (3, (3,))
        assert stop_replica(cluster.world.driver.sent)[-1][0::3] == (1, True)

    def test_a_replica_that_leaves_is_noted_until_its_broker_has_deleted_it(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.move(2, 3)
        cluster.sync(1, 2, 3)
        (asked,) = [s for s in stop_replica(cluster.world.driver.sent) if s[3]]
        assert cluster.world.exists(strays_of(1, "t"))
        broker_id, tp, epoch, delete = asked
        response = StopReplicaResponse(broker_id, 0, {}, {tp: StopReplicaPartition(epoch, delete)})
        cluster.world.run(process_stop_replica_responses(cluster.active, [response]))
        assert cluster.world.driver.sent[-1].describe_log_dirs == (1,)
        disks = DescribeLogDirsResponse(broker_id, 0, {"/data": 0})
        cluster.world.run(process_describe_log_dirs_response(cluster.active, disks))
        assert not cluster.world.exists(strays_of(1, "t"))
