"""Defects in what concerns leaders, ISRs and epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from regent.controller.partitions import isr_changes
from regent.controller.state.context import ControllerContext
from regent.controller.transitions import election, partition_state_machine, replica_state_machine
from regent.controller.transitions.election import Elected
from regent.controller.transitions.partition_state_znodes import (
    write_on_known_states,
    write_partition_states,
)
from regent.controller.transitions.replica_state_machine import ReplicaStateMachine
from tests.simulation.mutants.registry import defect


@defect(caught_by="from outside the ISR")
def leader_from_outside_the_isr(patch: pytest.MonkeyPatch) -> None:
    """The first live replica leads, in sync or not."""

    def elect(
        assignment: tuple[int, ...], isr: tuple[int, ...], live: Sequence[int], **_: Any
    ) -> Elected | None:
        leader = next((r for r in assignment if r in live), None)
        return None if leader is None else Elected(leader, (leader,), 0)

    patch.setattr(election, "offline", elect)


@defect(caught_by="leader epoch of")
def no_new_leader_epoch(patch: pytest.MonkeyPatch) -> None:
    """A new leader reigns in the epoch of the old one."""

    def same(states: dict[Any, Any]) -> dict[Any, Any]:
        return {
            tp: msgspec.structs.replace(state, leader_epoch=state.leader_epoch - 1)
            for tp, state in states.items()
        }

    async def write(context: ControllerContext, states: dict[Any, Any]) -> Any:
        return await write_partition_states(context, same(states))

    async def write_on_known(context: ControllerContext, states: dict[Any, Any]) -> Any:
        return await write_on_known_states(context, same(states))

    patch.setattr(partition_state_machine, "write_partition_states", write)
    patch.setattr(partition_state_machine, "write_on_known_states", write_on_known)


@defect(caught_by="ISR of|has .* at")
def shrunk_isr_not_told(patch: pytest.MonkeyPatch) -> None:
    """A leader is not informed that the controller has changed its ISR."""

    async def remove(self: Any, broker_id: int, partitions: Any) -> Any:
        _, failures = await original(self, broker_id, partitions)
        return [], failures

    original = ReplicaStateMachine._remove_from_isr
    patch.setattr(ReplicaStateMachine, "_remove_from_isr", remove)


@defect(caught_by="ISR of|has .* at")
def lost_answer_not_told(patch: pytest.MonkeyPatch) -> None:
    """The same, but only where the write had to be repeated."""

    async def write(context: ControllerContext, states: dict[Any, Any]) -> Any:
        outcome = await write_partition_states(context, states)
        repeated.extend(outcome.conflicts)
        return outcome

    async def write_on_known(context: ControllerContext, states: dict[Any, Any]) -> Any:
        written = await write_on_known_states(context, states)
        repeated.extend(tp for tp in states if tp not in written)
        return written

    async def remove(self: Any, broker_id: int, partitions: Any) -> Any:
        repeated.clear()
        changed, failures = await original(self, broker_id, partitions)
        return [tp for tp in changed if tp not in repeated], failures

    repeated: list[Any] = []
    original = ReplicaStateMachine._remove_from_isr
    patch.setattr(replica_state_machine, "write_partition_states", write)
    patch.setattr(replica_state_machine, "write_on_known_states", write_on_known)
    patch.setattr(ReplicaStateMachine, "_remove_from_isr", remove)


@defect(caught_by="leadership are|has .* as")
def isr_changes_not_read(patch: pytest.MonkeyPatch) -> None:
    """Notifications are removed unread."""

    async def refresh(*_: Any, **__: Any) -> list[Any]:
        return []

    patch.setattr(isr_changes, "refresh_leadership", refresh)
