"""A partition as a former controller has left it, and what a failover makes of it."""

from __future__ import annotations

from regent.model.partition import LeaderAndIsr
from tests.unit.controller.world import T0, World


def cluster(replicas: tuple[int, ...], leader: int, isr: tuple[int, ...]) -> World:
    """Three live brokers, and a partition as a predecessor has left it."""
    world = World()
    world.driver.inter_broker_protocol = (2, 8)
    world.start_broker(1, 2, 3)
    world.create_topic("t", {0: replicas})
    world.set_state(T0, leader, isr, leader_epoch=5)
    return world


def left_by(world: World) -> tuple[int, tuple[int, ...], int]:
    """Leader, ISR and leader epoch after a failover."""
    world.fail_over()
    state = world.state(T0)
    assert isinstance(state, LeaderAndIsr)
    return state.leader, state.isr, state.leader_epoch
