"""Brokers of every release ask the controller, also while they are being upgraded."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller.partitions import alter_partition, isr_change_rules
from regent.model.partition import TopicPartition
from regent.protocol.error_codes import FENCED_LEADER_EPOCH, INVALID_REQUEST, NOT_CONTROLLER
from regent.zk_data import paths
from regent.zk_data.operations import Create, Delete
from tests.simulation.broker import SimulatedBroker
from tests.simulation.convergence import check_converged
from tests.simulation.endpoint_scenarios import fail_over, upgrade
from tests.simulation.isr_change_requests import KEEPS_CHANGES_SINCE, PendingChange
from tests.simulation.playing import calm_world
from tests.simulation.replicated_log import Log, Record, Replica
from tests.simulation.swarm import CALM_SPEEDS, Swarm
from tests.simulation.trace import InvariantViolatedError
from tests.simulation.world import World

A0 = TopicPartition("a", 0)
A1 = TopicPartition("a", 1)


def asking_world(*, protocol: tuple[int, int] = (2, 8), rivals: bool = False) -> World:
    swarm = Swarm(speeds=CALM_SPEEDS, announces=True, protocol=protocol, rivals=rivals)
    return calm_world("endpoint", swarm)


@pytest.mark.parametrize("rivals", [False, True], ids=["Regent alone", "brokers' own, too"])
def test_a_rolling_upgrade_under_load(rivals: bool) -> None:
    world = asking_world(protocol=(2, 4), rivals=rivals)
    for protocol in ((2, 8), (3, 5)):
        for broker in world.brokers.values():
            world.workload.produce()
            upgrade(world, broker, protocol)
            check_converged(world)
    assert world.protocol == (3, 5)


def test_leaders_write_isrs_below_2_7_and_ask_from_then_on() -> None:
    for protocol, asks in (((2, 6), False), ((2, 8), True)):
        lines: list[str] = []
        swarm = Swarm(speeds=CALM_SPEEDS, announces=True, protocol=protocol)
        world = World("style", swarm=swarm, echo=lines.append)
        world.is_turbulent = False
        world.workload.create_topic("a", {0: (1, 2, 3)})
        world.settle()
        world.brokers[3].stop()
        world.settle()
        world.brokers[3].start()
        world.settle()
        check_converged(world)
        assert any("wants ISR" in line for line in lines) == asks
        assert any("notifies" in line for line in lines) != asks


def test_the_high_watermark_waits_for_both_isrs_while_a_change_is_pending() -> None:
    world = asking_world()
    leader = world.brokers[1].replicas[A0]
    state = leader.state
    log = Log(None, [Record(0, 1), Record(0, 2)], 0)
    replica = Replica(log, state, (1, 2, 3), is_leader=True, ends={2: 2, 3: 1})
    replica.pending = PendingChange(A0, replica, (1, 2))
    assert replica.advance_high_watermark(1)
    assert log.high_watermark == 1


def test_who_asks_a_controller_that_has_resigned_finds_its_successor() -> None:
    world = asking_world(rivals=True)
    (process,) = world.regents
    world.brokers[3].stop()
    world.settle()
    world.brokers[3].start()
    world.settle(until=lambda: world.brokers[1].replicas[A0].pending is not None)
    process.shut_down()
    world.settle()
    check_isr(world, (1, 2, 3))


def check_isr(world: World, isr: tuple[int, ...]) -> None:
    replica = world.brokers[1].replicas[A0]
    assert replica.pending is None
    assert sorted(replica.state.isr) == list(isr)


class TestAnAnswer:
    """What a leader does with an error, which some defect makes of a success."""

    @pytest.mark.parametrize("code", [INVALID_REQUEST, FENCED_LEADER_EPOCH])
    def test_a_leader_that_is_out_of_date_asks_for_nothing_more(
        self, code: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = asking_world()
        refuse_once(monkeypatch, code)
        bounce_follower(world)
        with pytest.raises(InvariantViolatedError, match="waits for ever"):
            check_converged(world)

    def test_one_that_has_asked_the_wrong_controller_asks_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = asking_world()
        refuse_once(monkeypatch, NOT_CONTROLLER)
        bounce_follower(world)
        check_converged(world)
        check_isr(world, (1, 2, 3))


def ask_anew_before_the_answer(
    world: World, patch: pytest.MonkeyPatch, target: tuple[int, ...]
) -> SimulatedBroker:
    """Broker 2 asks for an ISR of A1, and a reassignment gives it a higher leader epoch while that
    is on its way. Leaders that can ask again before the answer do. Returns the broker."""
    leader = world.brokers[2]
    world.brokers[3].stop()
    world.settle()
    world.brokers[3].start()

    def is_pending() -> bool:
        return leader.replicas[A1].pending is not None

    with patch.context() as held:
        held.setattr(world.endpoint, "act", lambda: False)  # the request is on its way
        world.settle(until=lambda: is_pending() and not world.endpoint.is_idle)
        before = leader.replicas[A1]
        world.workload.reassign({A1: target})
        world.settle(until=lambda: leader.replicas[A1] is not before)
        if leader.protocol < KEEPS_CHANGES_SINCE:
            world.settle(until=is_pending)
    return leader


@pytest.mark.parametrize("protocol", [(2, 8), (3, 0), (3, 2), (3, 5)])
def test_an_answer_to_what_was_asked_in_a_former_leader_epoch(
    protocol: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader has asked anew before it comes. In Kafka 2.7 and 2.8 that is lost."""
    world = asking_world(protocol=protocol)
    leader = ask_anew_before_the_answer(world, monkeypatch, (2, 3, 1))
    world.settle()
    check_converged(world)
    assert sorted(leader.replicas[A1].state.isr) == [1, 2, 3]


@pytest.mark.parametrize("protocol", [(2, 7), (2, 8), (3, 0), (3, 2), (3, 5)])
def test_a_successor_does_not_know_of_such_an_answer(
    protocol: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes right before the controller is another one, which nothing tells of it."""
    world = asking_world(protocol=protocol)
    # A new leader epoch, and nothing moves.
    leader = ask_anew_before_the_answer(world, monkeypatch, (3, 2))
    world.settle(until=lambda: world.endpoint.is_idle)
    fail_over(world)
    world.settle()
    check_converged(world)
    assert sorted(leader.replicas[A1].state.isr) == [2, 3]


@pytest.mark.parametrize("lost", [1, 3], ids=["leader", "follower"])
def test_a_state_that_was_created_again_is_led_when_a_broker_is_gone(lost: int) -> None:
    """Brokers skip, without an error, what has a lower partition epoch than they know."""
    world = asking_world(protocol=(3, 5))
    for _ in range(5):
        bounce_follower(world)
    path = paths.partition_state(A0)
    node = world.zookeeper.get(path)
    assert node is not None
    assert world.workload.multi(Delete(path), Create(path, node.data))
    world.brokers[lost].stop()
    world.settle()
    world.workload.produce()
    world.settle()
    assert {world.brokers[b].replicas[A0].state.leader for b in {1, 2, 3} - {lost}} == {
        2 if lost == 1 else 1
    }
    world.brokers[lost].start()
    world.settle()
    check_converged(world)


class TestAFollowerThatIsAskedForWhileItCannotBeInSync:
    """Its last fetch brings the leader to ask for it again. Whatever becomes of that must not keep
    it out of the ISR when it is back."""

    @pytest.mark.parametrize("protocol", [(2, 8), (3, 2), (3, 5)])
    def test_because_it_is_stopping(self, protocol: tuple[int, int]) -> None:
        world = asking_world(protocol=protocol)
        world.orderly_stops.begin(world.brokers[3])
        world.settle(until=lambda: sorted(world.brokers[1].replicas[A0].state.isr) == [1, 2])
        ask_for_follower(world)
        world.endpoint.deliver_all()
        world.settle()
        check_converged(world)
        check_isr(world, (1, 2, 3))

    @pytest.mark.parametrize("protocol", [(2, 8), (3, 2), (3, 5)])
    def test_because_it_is_down(self, protocol: tuple[int, int]) -> None:
        world = asking_world(protocol=protocol)
        world.brokers[3].stop()
        world.settle()
        ask_for_follower(world)
        world.settle()
        assert world.brokers[1].replicas[A0].pending is None
        world.brokers[3].start()
        world.settle()
        check_converged(world)
        check_isr(world, (1, 2, 3))


def ask_for_follower(world: World) -> None:
    leader = world.brokers[1]
    assert leader.requests.isr_changes.submit(A0, leader.replicas[A0], (1, 2, 3))


def bounce_follower(world: World) -> None:
    world.brokers[3].stop()
    world.settle()
    world.brokers[3].start()
    world.settle()


def refuse_once(patch: pytest.MonkeyPatch, code: int) -> None:
    def decide(*args: Any, **given: Any) -> Any:
        refused.append(code)
        return code if len(refused) == 1 else original(*args, **given)

    refused: list[int] = []
    original = isr_change_rules.decide
    patch.setattr(alter_partition, "decide", decide)
