"""Defects in what follows when somebody removes nodes behind the controller's back."""

from __future__ import annotations

import pytest

from regent.controller.topics import topic_changes
from regent.controller.transitions import partition_epochs
from regent.model.partition import TopicPartition
from tests.simulation.mutants.registry import defect


@defect(caught_by="assignments are|never born|topic ids are|leadership are|ISR of")
def replaced_topics_taken_for_the_former(patch: pytest.MonkeyPatch) -> None:
    """A topic node that was deleted and created again is the one that is known."""
    patch.setattr(topic_changes, "_is_another", lambda *_: False)


@defect(caught_by="has no leader|leadership are|partition states are|without a leader|ISR of")
def missing_states_stay_missing(patch: pytest.MonkeyPatch) -> None:
    """Nobody is elected by a state that somebody has deleted."""

    async def stays_missing(*_: object, **__: object) -> frozenset[TopicPartition]:
        return frozenset()

    patch.setattr(partition_epochs, "restore_missing", stays_missing)
