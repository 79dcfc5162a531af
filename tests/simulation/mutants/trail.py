"""Defects in what concerns the state-change trail."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller.state.causes import ChangeKind
from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.state_change_trail import StateChangeTrail
from tests.simulation.mutants.registry import defect


@defect(caught_by="the trail of")
def changes_of_isrs_leave_no_trail(patch: pytest.MonkeyPatch) -> None:
    """The trail has elections only."""

    def record(self: Any, kind: ChangeKind, changes: Any, *, known: Any) -> None:
        if kind is not ChangeKind.REPLICA_OFFLINE:
            original(self, kind, changes, known=known)

    original = StateChangeTrail.record
    patch.setattr(StateChangeTrail, "record", record)


@defect(caught_by="the trail of .* has ,")
def causes_outlive_their_event(patch: pytest.MonkeyPatch) -> None:
    """Whatever happens in a term is taken for its failover."""
    patch.setattr(StateChangeTrail, "begin_event", lambda *_: None)


@defect(caught_by="a step is missing")
def unannounced_changes_leave_no_trail(patch: pytest.MonkeyPatch) -> None:
    """What a leader has changed before an election is taken for the election's doing."""

    def set_leadership(self: Any, changes: Any, *kind: ChangeKind, based_on: Any = None) -> None:
        original(self, changes, *kind)

    original = ClusterState.set_leadership
    patch.setattr(ClusterState, "set_leadership", set_leadership)
