"""What a standby makes beforehand of what a take-over sends."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import chain

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regent.controller.state import leadership_entries
from regent.controller.state.cluster_state import ClusterState
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from regent.protocol.collected_entries import NOTHING_COLLECTED
from regent.protocol.leader_and_isr import usual_suffix
from regent.protocol.partition_state import PartitionState, prefixes_of
from regent.standby.prepared_states import PreparedStates
from tests.support.leadership_entries import entries_of, is_usual
from tests.unit.controller.state.test_cluster_state_copies import (
    A0,
    A1,
    B0,
    CHANGES,
    Change,
    cluster,
)

EVERYTHING = 1_000

USUAL_CHANGES: dict[str, Change] = {
    "other replicas": lambda c: c.set_assignments("a", {A0: ReplicaAssignment((3, 1))}),
    "other replicas of b": lambda c: c.set_assignments("b", {B0: ReplicaAssignment((3, 2))}),
    "another leader of b": lambda c: c.load_leadership({B0: LeaderAndIsr(2, 5, (2,), 3, 5)}),
    "a leader that recovers": lambda c: c.load_leadership({A1: LeaderAndIsr(1, 6, (1,), 3, 6, 1)}),
    "one that has recovered": lambda c: c.load_leadership({A1: LeaderAndIsr(1, 6, (1,), 3, 7, 0)}),
}


def prepared_all(prepared: PreparedStates, state: ClusterState, *, most: int) -> None:
    while prepared.prepare(state, most=most):
        pass


def wanted(state: ClusterState) -> dict[TopicPartition, PartitionState]:
    """Made when it is sent."""
    return {
        tp: PartitionState(tp.partition, state.leadership[tp], assignment)
        for topic in state.topics
        for tp, assignment in state.partitions_of(topic).items()
        if tp in state.leadership
    }


@given(
    steps=st.lists(st.sampled_from([*CHANGES, "prepare", "hand over"]), max_size=30),
    most=st.sampled_from([1, 2, EVERYTHING]),
)
def test_prepared_values_equal_values_made_later(steps: list[str], most: int) -> None:
    state, prepared = cluster(), PreparedStates()
    for step in steps:
        if step == "prepare":
            prepared.prepare(state, most=most)
        elif step == "hand over":
            given_away = prepared.hand_over(state)
            assert given_away.items() <= wanted(state).items()
        else:
            CHANGES[step](state)
        assert state.announced_states.items() <= wanted(state).items()
    prepared_all(prepared, state, most=most)
    assert state.announced_states == wanted(state)
    made = list(state.announced_states.values())
    assert [each.flexible for each in made] == prefixes_of(
        [PartitionState(s.partition, s.leader_and_isr, s.assignment) for s in made], flexible=True
    )


def hosted(
    state: ClusterState, states: Mapping[TopicPartition, PartitionState]
) -> dict[int, list[TopicPartition]]:
    """Of topics all of whose partitions have a usual value, by broker."""
    topics = [
        partitions
        for partitions in map(state.partitions_of, state.topics)
        if all(tp in states and is_usual(states[tp]) for tp in partitions)
    ]
    found: dict[int, list[TopicPartition]] = {}
    for tp, assignment in chain.from_iterable(partitions.items() for partitions in topics):
        for broker_id in assignment.replicas:
            found.setdefault(broker_id, []).append(tp)
    return found


@given(
    steps=st.lists(
        st.sampled_from([*CHANGES, *USUAL_CHANGES, "prepare", "hand over"]), max_size=40
    ),
    most=st.sampled_from([1, 2, EVERYTHING]),
)
@example(
    steps=["a topic less", "another leader", "other replicas", "prepare", "a leader that recovers"],
    most=2,
).via("leadership of a partition that its topic does not have")
def test_entries_of_usual_topics_are_collected(steps: list[str], most: int) -> None:
    state, prepared = cluster(), PreparedStates()
    for step in [*steps, "all"]:
        if step == "prepare":
            prepared.prepare(state, most=most)
        elif step == "all":
            prepared_all(prepared, state, most=most)
        elif step == "hand over":
            prepared.hand_over(state)
        else:
            (CHANGES | USUAL_CHANGES)[step](state)
        states = wanted(state)
        collected = state.announced_states.entries
        found = {} if collected is None else collected.up_to_date
        for broker_id, partitions in hosted(state, states).items():
            expected = entries_of(partitions, states)
            some = found.get(broker_id, NOTHING_COLLECTED).topics
            assert all(expected.topics[topic] == entries for topic, entries in some.items())
            if step == "all":
                assert some == expected.topics
        assert found.keys() <= {1, 2, 3}


def test_brokers_of_another_protocol_version_have_all_entries_collected_again() -> None:
    state, prepared = cluster(), PreparedStates()
    prepared_all(prepared, state, most=EVERYTHING)
    assert prepared.is_complete(state)
    state.inter_broker_protocol = (3, 6)
    assert not prepared.is_complete(state)
    prepared_all(prepared, state, most=1)
    assert prepared.is_complete(state)
    collected = state.announced_states.entries
    assert collected is not None
    for broker_id, partitions in hosted(state, wanted(state)).items():
        expected = entries_of(partitions, wanted(state), suffix=usual_suffix((3, 6)))
        assert collected.up_to_date[broker_id] == expected


@pytest.mark.parametrize("section", [2, leadership_entries.SECTION])
def test_entries_are_replaced_in_place(section: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ISR of each partition shrinks and grows, in any order."""
    monkeypatch.setattr(leadership_entries, "SECTION", section)
    state, prepared = cluster(), PreparedStates()
    everybody = ReplicaAssignment((1, 2, 3))
    partitions = [TopicPartition("many", number) for number in range(5)]
    state.add_topic("many", None)
    state.set_assignments("many", dict.fromkeys(partitions, everybody))
    chance = random.Random(1)
    for epoch in range(100):
        changed = partitions if not epoch else chance.sample(partitions, 2)
        isrs = [chance.choice([(1,), (1, 2), (1, 2, 3)]) for _ in changed]
        state.load_leadership(
            {
                tp: LeaderAndIsr(1, epoch, isr, 1, epoch)
                for tp, isr in zip(changed, isrs, strict=True)
            }
        )
        prepared_all(prepared, state, most=EVERYTHING)
        collected = state.announced_states.entries
        assert collected is not None
        expected = entries_of(partitions, wanted(state)).topics["many"]
        assert {
            broker_id: collected.up_to_date[broker_id].topics["many"] for broker_id in (1, 2, 3)
        } == dict.fromkeys((1, 2, 3), expected)
