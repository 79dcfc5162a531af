"""The balance of leaders is counted in parts, once brokers know of a new term."""

from __future__ import annotations

import pytest

from regent.controller.elections import leader_balance_count
from regent.controller.events import LeaderBalanceUncounted
from regent.controller.state.states import ReplicaState
from tests.unit.controller.world import World


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


def test_then_the_states_of_replicas_are_put_into_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_balance_count, "PARTITIONS_AT_A_TIME", 1)
    world = World()
    world.start_broker(1, 2)
    world.create_topic("a", {0: (1, 2), 1: (2, 1)})
    active = world.fail_over()
    events = 0
    while not events or world.driver.enqueued:
        events += 1
        world.driver.enqueued.clear()
        world.run(leader_balance_count.process_leader_balance_uncounted(active))
    assert events >= 4  # one for each replica
    assert not active.context.tabulate_replica_states(1)
    partitions = active.context.cluster.partitions_of("a")
    for broker_id in (1, 2):
        states = active.context.replica_states_on(broker_id)
        assert states == dict.fromkeys(partitions, ReplicaState.ONLINE)
