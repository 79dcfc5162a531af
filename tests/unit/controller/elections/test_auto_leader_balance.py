"""The balance of leaders: when it is checked, and which leaders are moved."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller import effects
from regent.controller import events as e
from regent.controller.active_controller import ActiveController
from regent.controller.elections import leader_balance_count
from regent.controller.elections.auto_leader_balance import (
    movable_leaders,
    process_auto_preferred_replica_leader_election,
)
from regent.controller.events import LeaderBalanceUncounted
from regent.controller.state.causes import CauseKind, ChangeKind
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.world import World

TIMER = "leader balance"
CHECK = e.AutoPreferredReplicaLeaderElection()


def cluster(led_by_others: int, *, partitions: int = 20, **settings: Any) -> World:
    """All partitions prefer broker 1; some are led by broker 2."""
    world = World(**settings)
    world.start_broker(1, 2)
    world.create_topic("t", dict.fromkeys(range(partitions), (1, 2)))
    for p in range(partitions):
        leader = 2 if p < led_by_others else 1
        world.set_state(TopicPartition("t", p), leader, (1, 2), leader_epoch=5)
    return world


def check(world: World, active: ActiveController) -> None:
    world.run(process_auto_preferred_replica_leader_election(active))


def led_by(world: World, broker_id: int) -> int:
    states = [world.state(TopicPartition("t", p)) for p in range(20)]
    return sum(state is not None and state.leader == broker_id for state in states)


class TestTimer:
    def test_the_first_check_is_five_seconds_after_the_election(self) -> None:
        world = cluster(0)
        world.fail_over()
        timer = world.driver.timers[TIMER]
        assert (timer.after_ms, timer.event) == (5_000, CHECK)

    def test_where_it_is_disabled_nothing_is_ever_checked(self) -> None:
        world = cluster(20, auto_leader_rebalance_enable=False)
        world.fail_over()
        assert TIMER not in world.driver.timers


@pytest.mark.parametrize(
    ("led_by_others", "percentage", "moved"),
    [(3, None, 3), (2, None, 0), (1, 0, 1), (1, 4, 1), (1, 5, 0), (1, 100, 0)],
)
def test_more_than_a_percentage_which_is_ten_by_default_is_out_of_balance(
    led_by_others: int, percentage: int | None, moved: int
) -> None:
    settings: dict[str, Any] = {"leader_imbalance_per_broker_percentage": percentage}
    world = cluster(led_by_others, **({} if percentage is None else settings))
    check(world, world.lead())
    assert led_by(world, 1) == 20 - led_by_others + moved


class TestCandidates:
    def test_one_that_is_not_in_sync_or_on_a_failed_log_directory_does_not_lead(self) -> None:
        world = cluster(20)
        lagging = TopicPartition("t", 7)
        world.set_state(lagging, 2, (2,), leader_epoch=5)
        active = world.lead()
        active.context.set_replicas_on_offline_dirs(1, [TopicPartition("t", 8)])
        check(world, active)
        assert led_by(world, 2) == 2
        assert movable_leaders(active.context, 0) == []

    def test_a_partition_that_the_broker_refuses_stays_where_it_is_served(self) -> None:
        world = cluster(20)
        active = world.lead()
        refused = {TopicPartition("t", 7): "UNKNOWN_SERVER_ERROR"}
        active.context.refusals.update(1, refused=refused, done=())
        check(world, active)
        assert led_by(world, 2) == 1

    def test_no_partition_goes_to_a_broker_that_would_not_learn_of_it(self) -> None:
        world = cluster(20)
        active = world.lead()
        world.driver.silent = (1,)
        check(world, active)
        assert led_by(world, 2) == 20
        world.driver.silent = ()
        check(world, active)
        assert led_by(world, 2) == 0

    @pytest.mark.parametrize("leaving", [False, True])
    def test_the_partitions_of_a_broker_that_is_down_or_leaving_are_not_even_read(
        self, leaving: bool
    ) -> None:
        world = cluster(20)
        if not leaving:
            world.stop_broker(1)
        active = world.lead()
        if leaving:
            active.context.mark_shutting_down(1)
        check(world, active)
        assert not [x for x in world.driver.performed if isinstance(x, zk_effects.ReadData)]
        assert world.driver.sent == []

    def test_a_topic_that_is_being_deleted_is_left_out(self) -> None:
        world = cluster(20)
        active = world.lead()
        active.context.queue_topic_for_deletion("t")
        check(world, active)
        assert led_by(world, 1) == 0

    def test_a_partition_that_is_being_reassigned_is_not(self) -> None:
        """KAFKA-10149."""
        world = cluster(0)
        tp = TopicPartition("u", 0)
        moving = ReplicaAssignment((1, 2, 3), adding_replicas=(3,))
        world.create_topic("u", {0: moving})
        world.set_state(tp, 2, (2, 1), leader_epoch=5)
        active = world.lead()
        assert movable_leaders(active.context, 0) == [tp]


def test_a_check_writes_what_is_imbalanced_and_nothing_else() -> None:
    world = cluster(3)
    active = world.lead()
    check(world, active)
    assert not [x for x in world.driver.performed if isinstance(x, zk_effects.ReadData)]
    (write,) = (x for x in world.driver.performed if isinstance(x, zk_effects.Write))
    assert [operation.path for operation in write.operations] == [
        paths.partition_state(TopicPartition("t", p)) for p in range(3)
    ]
    (change,) = active.context.trail.partitions[TopicPartition("t", 0)].changes
    assert (change.kind, change.cause.kind) == (
        ChangeKind.ELECTED_PREFERRED,
        CauseKind.LEADER_IMBALANCE,
    )
    world.driver.performed.clear()
    check(world, active)
    assert [type(x) for x in world.driver.performed] == [effects.ArmTimer]


# The balance of leaders is counted in parts, once brokers know of a new term.


def test_a_failover_leaves_the_count_to_events_that_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_balance_count, "PARTITIONS_AT_A_TIME", 1)
    world = World()
    world.start_broker(1, 2)
    for topic in ("a", "b", "c"):
        world.create_topic(topic, {0: (1, 2)})
    active = world.fail_over()
    balance = active.context.balance
    assert balance.known_imbalance_count is None
    timer = world.driver.timers[leader_balance_count.TIMER]
    assert timer.event == LeaderBalanceUncounted()

    for _ in range(3):
        assert balance.known_imbalance_count is None
        world.driver.enqueued.clear()
        world.run(leader_balance_count.process_leader_balance_uncounted(active))
        assert world.driver.enqueued == [LeaderBalanceUncounted()]
    assert balance.known_imbalance_count == 0
