"""Defects in the controlled shutdown of brokers."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller.brokers import abandoned_shutdowns, broker_notes, controlled_shutdown
from regent.controller.commands import ControlledShutdownResult
from regent.controller.state.cluster_state import ClusterState
from regent.controller.transitions import election
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.election import Elected
from regent.zk_data.broker_notes import SHUTTING_DOWN
from tests.simulation.mutants.registry import defect, nothing


@defect(caught_by="which is not noted", story="a broker stops in order")
def not_noted(patch: pytest.MonkeyPatch) -> None:
    """The set is kept in memory only, as upstream."""
    patch.setattr(broker_notes, "remember", lambda *_: nothing())


@defect(caught_by="noted as shutting down for ever", story="a failover while a broker stops")
def notes_not_read(patch: pytest.MonkeyPatch) -> None:
    """A successor knows of nobody."""
    patch.setattr(controlled_shutdown, "resume", lambda *_: nothing())


@defect(caught_by="noted as shutting down for ever", story="a broker dies while it stops")
def notes_outlive_their_broker(patch: pytest.MonkeyPatch) -> None:
    """What has stopped is noted for ever."""
    patch.setattr(broker_notes, "forget", lambda *_: nothing())


@defect(caught_by="which are gone", story="a broker stops in order")
def stops_outlive_their_broker(patch: pytest.MonkeyPatch) -> None:
    """A broker that returns is taken for the one that was stopping."""

    def remove(self: ClusterState, broker_ids: Any) -> None:
        marked = dict(self.shutting_down)
        original(self, broker_ids)
        self.shutting_down = marked

    original = ClusterState.remove_brokers
    patch.setattr(ClusterState, "remove_brokers", remove)


@defect(caught_by="which stops", story="a broker stops in order")
def leaders_not_moved(patch: pytest.MonkeyPatch) -> None:
    """A broker that stops leads what it led."""
    patch.setattr(election, "controlled_shutdown", lambda *_, **__: None)


@defect(caught_by="which stops", story="all brokers stop in order")
def stopping_leader_elected(patch: pytest.MonkeyPatch) -> None:
    """Another broker that is stopping becomes the leader."""

    def elect(
        assignment: tuple[int, ...], isr: tuple[int, ...], present: Any, leaving: Any, **_: Any
    ) -> Elected | None:
        leader = next((r for r in reversed(assignment) if r in present and r in isr), None)
        return None if leader is None else Elected(leader, isr, 0)

    patch.setattr(election, "controlled_shutdown", elect)


@defect(caught_by="is free, but it leads", story="all brokers stop in order")
def remaining_not_named(patch: pytest.MonkeyPatch) -> None:
    """Every broker is said to be free."""

    def result(*args: Any) -> Any:
        original(*args)
        return ControlledShutdownResult()

    original = controlled_shutdown._result
    patch.setattr(controlled_shutdown, "_result", result)


@defect(caught_by="shutting down are|replica states are", story="a broker stops, and lives on")
def excluded_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A broker that lives on never leads again."""
    patch.setattr(abandoned_shutdowns, "take_answer", lambda *_: nothing())


@defect(caught_by="ISR of|does not follow", story="a broker stops, and lives on")
def taken_back_in_the_same_epoch(patch: pytest.MonkeyPatch) -> None:
    """A broker that lives on is sent what it knows already."""

    async def announce(active: Any, partitions: Any) -> None:
        batch = ControllerBrokerRequestBatch(active.context)
        for tp in partitions:
            batch.add_leader_and_isr(active.context.cluster.replicas(tp), (tp,), is_new=False)
        await batch.send()

    patch.setattr(abandoned_shutdowns, "announce", announce)


@defect(caught_by="ISR of|does not follow", story="a broker stops, and lives on")
def note_removed_first(patch: pytest.MonkeyPatch) -> None:
    """A broker that lives on is forgotten before it was sent new epochs."""

    async def take_back(active: Any, broker_id: int) -> None:
        await broker_notes.forget(active.context, SHUTTING_DOWN, [broker_id])
        await original(active, broker_id)

    original = abandoned_shutdowns._take_back
    patch.setattr(abandoned_shutdowns, "_take_back", take_back)
