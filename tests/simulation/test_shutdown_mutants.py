"""Deliberate defects in the controlled shutdown of brokers. Each is caught by a story."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from regent.controller import effects as fx
from regent.controller.brokers import (
    abandoned_shutdowns,
    broker_notes,
    controlled_shutdown,
)
from regent.controller.commands import ControlledShutdownResult
from regent.controller.state.cluster_state import ClusterState
from regent.controller.transitions import election
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.election import Elected
from regent.zk_data.broker_notes import SHUTTING_DOWN
from tests.simulation.disturbances import Disturbance
from tests.simulation.playing import Cut, play
from tests.simulation.shutdown_scenarios import SHUTDOWN_SCENARIOS
from tests.simulation.trace import InvariantViolatedError

Mutate = Callable[[pytest.MonkeyPatch], None]


async def _nothing(*_: Any) -> None:
    pass


def not_noted(patch: pytest.MonkeyPatch) -> None:
    """The set is kept in memory only, as upstream."""
    patch.setattr(broker_notes, "remember", _nothing)


def notes_not_read(patch: pytest.MonkeyPatch) -> None:
    """A successor knows of nobody."""
    patch.setattr(controlled_shutdown, "resume", _nothing)


def notes_outlive_their_broker(patch: pytest.MonkeyPatch) -> None:
    """What has stopped is noted for ever."""
    patch.setattr(broker_notes, "forget", _nothing)


def stops_outlive_their_broker(patch: pytest.MonkeyPatch) -> None:
    """A broker that returns is taken for the one that was stopping."""

    def remove(self: ClusterState, broker_ids: Any) -> None:
        marked = dict(self.shutting_down)
        original(self, broker_ids)
        self.shutting_down = marked

    original = ClusterState.remove_brokers
    patch.setattr(ClusterState, "remove_brokers", remove)


def leaders_not_moved(patch: pytest.MonkeyPatch) -> None:
    """A broker that stops leads what it led."""
    patch.setattr(election, "controlled_shutdown", lambda *_, **__: None)


def stopping_leader_elected(patch: pytest.MonkeyPatch) -> None:
    """Another broker that is stopping becomes the leader."""

    def elect(
        assignment: tuple[int, ...], isr: tuple[int, ...], present: Any, leaving: Any, **_: Any
    ) -> Elected | None:
        leader = next((r for r in reversed(assignment) if r in present and r in isr), None)
        return None if leader is None else Elected(leader, isr, 0)

    patch.setattr(election, "controlled_shutdown", elect)


def remaining_not_named(patch: pytest.MonkeyPatch) -> None:
    """Every broker is said to be free."""

    def result(*args: Any) -> Any:
        original(*args)
        return ControlledShutdownResult()

    original = controlled_shutdown._result
    patch.setattr(controlled_shutdown, "_result", result)


def excluded_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A broker that lives on never leads again."""
    patch.setattr(abandoned_shutdowns, "take_answer", _nothing)


def taken_back_in_the_same_epoch(patch: pytest.MonkeyPatch) -> None:
    """A broker that lives on is sent what it knows already."""

    async def announce(active: Any, partitions: Any) -> None:
        batch = ControllerBrokerRequestBatch(active.context)
        for tp in partitions:
            batch.add_leader_and_isr(active.context.cluster.replicas(tp), (tp,), is_new=False)
        await batch.send()

    patch.setattr(abandoned_shutdowns, "announce", announce)


def note_removed_first(patch: pytest.MonkeyPatch) -> None:
    """A broker that lives on is forgotten before it was sent new epochs."""

    async def take_back(active: Any, broker_id: int) -> None:
        await broker_notes.forget(active.context, SHUTTING_DOWN, [broker_id])
        await original(active, broker_id)

    original = abandoned_shutdowns._take_back
    patch.setattr(abandoned_shutdowns, "_take_back", take_back)


MUTANTS: dict[Mutate, str] = {
    not_noted: "which is not noted",
    notes_not_read: "noted as shutting down for ever",
    notes_outlive_their_broker: "noted as shutting down for ever",
    stops_outlive_their_broker: "which are gone",
    leaders_not_moved: "which stops",
    stopping_leader_elected: "which stops",
    remaining_not_named: "is free, but it leads",
    excluded_for_ever: "shutting down are|replica states are",
    taken_back_in_the_same_epoch: "ISR of|does not follow",
    note_removed_first: "ISR of|does not follow",
}


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_it_is_caught(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    violations = [v for v in map(violation_of_a_story, SHUTDOWN_SCENARIOS) if v is not None]
    assert violations, "it survives all stories"
    assert any(re.search(MUTANTS[mutate], v) for v in violations), violations


def violation_of_a_story(name: str) -> str | None:
    """What a story breaks, also if the controller crashes at some effect; None if it holds."""
    scenario = SHUTDOWN_SCENARIOS[name]
    try:
        performed = play(scenario)
        for number, effect in enumerate(performed, start=1):
            if isinstance(effect, fx.Write):
                for disturbance in (Disturbance.CRASH_AFTER, Disturbance.LOSE_AFTER):
                    play(scenario, cut=Cut(number, disturbance))
    except InvariantViolatedError as violated:
        return str(violated)
    return None
