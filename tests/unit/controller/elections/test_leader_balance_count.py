"""The balance of leaders is counted in parts, once brokers know of a new term."""

from __future__ import annotations

import pytest

from regent.controller.elections import leader_balance_count
from regent.controller.events import LeaderBalanceUncounted
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

    for expected in ([LeaderBalanceUncounted()], [LeaderBalanceUncounted()], []):
        assert balance.known_imbalance_count is None
        world.driver.enqueued.clear()
        world.run(leader_balance_count.process_leader_balance_uncounted(active))
        assert world.driver.enqueued == expected
    assert balance.known_imbalance_count == 0
