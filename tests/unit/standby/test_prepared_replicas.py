"""The replicas of each broker, collected before a take-over needs them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.controller.state.cluster_state import ClusterState
from regent.controller.state.hosted_replicas import Hosted
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.standby.prepared_replicas import MISSING_AT_MOST, PreparedReplicas
from tests.unit.controller.state.test_cluster_state_copies import A0, CHANGES, cluster

EVERYTHING = 1_000


def collected(state: ClusterState) -> Hosted:
    """By going through all assignments."""
    hosted: Hosted = {}
    for topic in state.topics:
        for tp, assignment in state.partitions_of(topic).items():
            for broker_id in assignment.replicas:
                hosted.setdefault(broker_id, {})[tp] = False
    return hosted


def are_adjacent(partitions: Iterable[TopicPartition]) -> bool:
    runs = [topic for topic, _ in groupby(tp.topic for tp in partitions)]
    return len(runs) == len(set(runs))


@given(
    steps=st.lists(st.sampled_from([*CHANGES, "prepare", "hand over"]), max_size=30),
    most=st.sampled_from([1, 2, EVERYTHING]),
)
def test_hand_over_equals_a_full_walk(steps: list[str], most: int) -> None:
    state, prepared = cluster(), PreparedReplicas()
    for step in [*steps, "hand over"]:
        if step == "prepare":
            prepared.prepare(state, most=most)
        elif step == "hand over":
            hosted = prepared.hand_over(state)
            assert hosted == collected(state)
            assert all(map(are_adjacent, hosted.values()))
        else:
            CHANGES[step](state)


def test_only_topics_whose_assignments_have_changed_are_looked_at_again() -> None:
    state, prepared = cluster(), PreparedReplicas()
    while prepared.prepare(state, most=1):
        pass
    assert prepared.is_complete(state)
    CHANGES["another leader"](state)
    assert prepared.is_complete(state)
    CHANGES["another assignment"](state)
    assert not prepared.is_complete(state)
    assert not prepared.prepare(state, most=1)
    assert prepared.is_complete(state)


def test_nothing_is_handed_over_that_would_take_long_to_collect() -> None:
    state, prepared = ClusterState(), PreparedReplicas()
    for number in range(MISSING_AT_MOST + 1):
        topic = f"t{number}"
        state.set_assignments(topic, {TopicPartition(topic, 0): ReplicaAssignment((1,))})
    assert prepared.hand_over(state) is None
    while prepared.prepare(state, most=EVERYTHING):
        pass
    assert prepared.hand_over(state) == collected(state)


@pytest.mark.parametrize("change", ["another assignment", "a partition more", "a topic less"])
def test_a_state_drops_what_was_collected_when_an_assignment_changes(change: str) -> None:
    source = cluster()
    source.hosted = collected(source)
    state = ClusterState()
    state.take_topics(source)
    assert state.hosted == collected(state)
    state.load_leadership({A0: state.leadership[A0]})
    assert state.hosted is not None
    CHANGES[change](state)
    assert state.hosted is None


def test_what_was_collected_is_taken_once() -> None:
    state = cluster()
    state.hosted = collected(state)
    assert state.take_hosted() == collected(state)
    assert state.take_hosted() is None
