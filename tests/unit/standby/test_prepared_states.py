"""What a standby makes beforehand of what a take-over sends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regent.controller.state.cluster_state import ClusterState
from regent.model.partition import LeaderAndIsr, TopicPartition
from regent.protocol.partition_state import PartitionState, prefixes_of
from regent.standby.prepared_states import PreparedStates
from tests.unit.controller.state.test_cluster_state_copies import A0, CHANGES, cluster

EVERYTHING = 1_000


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
def test_what_is_prepared_is_what_would_be_made_when_it_is_sent(
    steps: list[str], most: int
) -> None:
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


def test_only_what_has_changed_is_made_again() -> None:
    state, prepared = cluster(), PreparedStates()
    prepared_all(prepared, state, most=EVERYTHING)
    before = dict(state.announced_states)
    state.load_leadership({A0: LeaderAndIsr(2, 9, (2,), 9, 9)})
    assert state.announced_states.keys() == before.keys() - {A0}
    prepared_all(prepared, state, most=EVERYTHING)
    for tp, value in state.announced_states.items():
        assert (value is before[tp]) is (tp != A0)


def test_a_call_looks_at_some_partitions_and_says_whether_there_are_others() -> None:
    state, prepared = cluster(), PreparedStates()
    assert prepared.prepare(state, most=1)
    assert len(state.announced_states) == 1
    assert prepared.prepare(state, most=1)
    assert len(state.announced_states) == 2


def test_what_is_handed_over_is_made_again() -> None:
    state, prepared = cluster(), PreparedStates()
    prepared_all(prepared, state, most=EVERYTHING)
    given_away = prepared.hand_over(state)
    assert given_away == wanted(state)
    assert not state.announced_states
    prepared_all(prepared, state, most=EVERYTHING)
    assert state.announced_states == given_away
    assert state.announced_states is not given_away
