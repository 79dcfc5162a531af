"""The tables of legal transitions, against those of Kafka's documentation."""

from __future__ import annotations

import pytest

from regent.controller.state.states import (
    PARTITION_PREVIOUS_STATES,
    REPLICA_PREVIOUS_STATES,
    PartitionState,
    ReplicaState,
)


@pytest.mark.parametrize(
    ("target", "previous"),
    [
        ("NEW", {"NON_EXISTENT"}),
        ("ONLINE", {"NEW", "ONLINE", "OFFLINE"}),
        ("OFFLINE", {"NEW", "ONLINE", "OFFLINE"}),
        ("NON_EXISTENT", {"OFFLINE"}),
    ],
)
def test_partitions_enter_a_state_only_from_these(target: str, previous: set[str]) -> None:
    assert {s.name for s in PARTITION_PREVIOUS_STATES[PartitionState[target]]} == previous


@pytest.mark.parametrize(
    ("target", "previous"),
    [
        ("NEW", {"NON_EXISTENT"}),
        ("ONLINE", {"NEW", "ONLINE", "OFFLINE", "DELETION_INELIGIBLE"}),
        ("OFFLINE", {"NEW", "ONLINE", "OFFLINE", "DELETION_INELIGIBLE"}),
        ("DELETION_STARTED", {"OFFLINE"}),
        ("DELETION_SUCCESSFUL", {"DELETION_STARTED"}),
        ("DELETION_INELIGIBLE", {"OFFLINE", "DELETION_STARTED"}),
        ("NON_EXISTENT", {"DELETION_SUCCESSFUL"}),
    ],
)
def test_replicas_enter_a_state_only_from_these(target: str, previous: set[str]) -> None:
    assert {s.name for s in REPLICA_PREVIOUS_STATES[ReplicaState[target]]} == previous


def test_every_state_has_a_row() -> None:
    assert set(PARTITION_PREVIOUS_STATES) == set(PartitionState)
    assert set(REPLICA_PREVIOUS_STATES) == set(ReplicaState)


def test_states_have_the_numbers_that_kafka_logs() -> None:
    assert [(s.name, s.value) for s in PartitionState] == [
        ("NEW", 0),
        ("ONLINE", 1),
        ("OFFLINE", 2),
        ("NON_EXISTENT", 3),
    ]
    assert [(s.name, s.value) for s in ReplicaState] == [
        ("NEW", 1),
        ("ONLINE", 2),
        ("OFFLINE", 3),
        ("DELETION_STARTED", 4),
        ("DELETION_SUCCESSFUL", 5),
        ("DELETION_INELIGIBLE", 6),
        ("NON_EXISTENT", 7),
    ]
