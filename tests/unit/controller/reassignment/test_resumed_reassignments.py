"""Reassignments that another controller has begun."""

from __future__ import annotations

import pytest

from regent.controller import effects
from regent.controller.brokers.answers import (
    process_describe_log_dirs_response,
    process_stop_replica_responses,
)
from regent.controller.reassignment.algebra import reassign_to
from regent.controller.reassignment.reassignments import begin
from regent.model.errors import ZooKeeperUnavailableError
from regent.model.partition import ReplicaAssignment
from regent.protocol.control_requests import (
    DescribeLogDirsResponse,
    StopReplicaPartition,
    StopReplicaResponse,
)
from regent.zk_data.stray_replicas import strays_of
from tests.unit.controller.driving import once
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

    def test_a_replica_that_left_while_its_broker_was_down_is_deleted_at_its_return(self) -> None:
        cluster = Cluster((1, 2)).start()
        cluster.ask({T0: (2, 3)})
        cluster.stop_broker(1)
        cluster.sync(2, 3)
        assert cluster.stored() == ReplicaAssignment((2, 3))
        cluster.forget()
        cluster.start_broker(1)
        assert [s[0::3] for s in stop_replica(cluster.world.driver.sent)] == [(1, True)]

    def test_a_connection_lost_in_the_middle_is_put_right_by_the_next_term(self) -> None:
        cluster = Cluster((1,)).start()

        def break_off() -> None:
            raise ZooKeeperUnavailableError("a test")

        cluster.world.driver.before = once(effects.Write, break_off, skip=1)
        with pytest.raises(ZooKeeperUnavailableError):
            cluster.world.run(
                begin(cluster.active, {T0: reassign_to(ReplicaAssignment((1,)), (2,))})
            )
        cluster.world.driver.before = lambda _: None
        cluster.fail_over()
        cluster.sync(1, 2)
        assert cluster.stored() == ReplicaAssignment((2,))
