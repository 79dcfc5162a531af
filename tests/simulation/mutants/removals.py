"""Defects in what follows when somebody removes nodes behind the controller's back."""

from __future__ import annotations

import pytest

from regent.controller.topics import topic_changes
from regent.controller.transitions import first_states, partition_epochs
from regent.model.partition import LeaderAndIsr, TopicPartition
from tests.simulation.mutants.registry import defect


@defect(caught_by="has .* at|leads .* by|does not lead")
def removed_topics_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A topic of a former name begins at epochs that brokers ignore."""
    patch.setattr(topic_changes, "_keep_states", lambda *_: None)


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


@defect(caught_by="is in sync without|committed")
def everybody_in_sync_again(patch: pytest.MonkeyPatch) -> None:
    """Who has fallen behind in the former topic is in sync in the next one."""

    def first(
        live: tuple[int, ...], former: LeaderAndIsr | None, controller_epoch: int
    ) -> LeaderAndIsr:
        epoch = 0 if former is None else former.leader_epoch + 1
        return LeaderAndIsr(live[0], epoch, live, controller_epoch, 0)

    patch.setattr(first_states, "_first_state", first)
