"""Moves that were accepted and do not show yet."""

from __future__ import annotations

from regent.controller.reassignment.algebra import reassign_to
from regent.controller.state.cluster_state import ClusterState
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.steering.expected_moves import ExpectedMoves

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BEFORE = ReplicaAssignment((1, 2))


def cluster() -> ClusterState:
    state = ClusterState()
    state.set_assignments("t", {T0: BEFORE, T1: BEFORE})
    return state


def test_a_move_is_awaited_until_it_shows() -> None:
    state, expected = cluster(), ExpectedMoves()
    expected.expect({T0: (3, 2), T1: (3, 1)})
    assert list(expected.awaited(state)) == ["t"]
    state.set_assignments("t", {T0: reassign_to(BEFORE, (3, 2))})
    assert list(expected.awaited(state)) == ["t"]
    state.set_assignments("t", {T1: ReplicaAssignment((3, 1))})  # it is there already
    assert list(expected.awaited(state)) == []


def test_a_move_that_has_shown_is_not_awaited_again() -> None:
    state, expected = cluster(), ExpectedMoves()
    expected.expect({T0: (3, 2)})
    state.set_assignments("t", {T0: reassign_to(BEFORE, (3, 2))})
    assert not expected.awaited(state)
    state.set_assignments("t", {T0: BEFORE})  # cancelled
    assert not expected.awaited(state)


def test_a_topic_that_is_gone_is_not_waited_for() -> None:
    state, expected = cluster(), ExpectedMoves()
    expected.expect({T0: (3, 2)})
    state.remove_topic("t")
    assert not expected.awaited(state)
