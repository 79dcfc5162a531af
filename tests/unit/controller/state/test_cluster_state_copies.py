"""Copies of the topics: what a take-over is given, and what the standby keeps."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from regent.controller.state.cluster_state import ClusterState
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
B0 = TopicPartition("b", 0)

Change = Callable[[ClusterState], object]

CHANGES: dict[str, Change] = {
    "another assignment": lambda c: c.set_assignments("a", {A0: ReplicaAssignment((3, 1), (3,))}),
    "a partition more": lambda c: c.set_assignments(
        "a", {TopicPartition("a", 2): ReplicaAssignment((1,))}
    ),
    "a topic more": lambda c: c.set_assignments(
        "c", {TopicPartition("c", 0): ReplicaAssignment((2,))}
    ),
    "another id": lambda c: c.add_topic("a", uuid.UUID(int=77), 77),
    "a topic less": lambda c: c.remove_topic("a"),
    "a twin": lambda c: c.add_topic("b.c", None),
    "a twin less": lambda c: c.remove_topic("b_c"),
    "another leader": lambda c: c.load_leadership({A0: LeaderAndIsr(2, 9, (2,), 9, 9)}),
    "no leader known": lambda c: c.forget_leadership(B0),
}


def cluster() -> ClusterState:
    made = ClusterState()
    made.add_topic("b", uuid.UUID(int=2), 6)
    made.set_assignments("b", {B0: ReplicaAssignment((2, 1), (2,), ())})
    made.add_topic("a", uuid.UUID(int=1), 5)
    made.set_assignments("a", {A0: ReplicaAssignment((1, 2)), A1: ReplicaAssignment((2, 1))})
    made.add_topic("b_c", None, 7)
    made.load_leadership({tp: LeaderAndIsr(1, 4, (1,), 3, 4) for tp in (A0, A1, B0)})
    made.take_changed_topics()
    return made


def described(state: ClusterState) -> dict[str, object]:
    return {
        "ids": dict(state.topic_ids),
        "names": {i: state.topic_name(i) for i in state.topic_ids.values()},
        "czxids": dict(state.topic_czxids),
        "assignments": {t: dict(state.partitions_of(t)) for t in sorted(state.topics)},
        "count": state.partition_count,
        "reassigning": sorted(state.partitions_being_reassigned),
        "leadership": dict(state.leadership),
        "twins": {t: sorted(state.topics_with_metric_name("b_c")) for t in state.topics},
    }


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([*CHANGES, "copy"])), max_size=30))
def test_copies_of_copies_go_their_own_ways(steps: list[tuple[int, str]]) -> None:
    """Compared with states that have gone through the same changes without any copying."""
    copies: list[ClusterState] = [cluster()]
    histories: list[list[str]] = [[]]
    for which, step in steps:
        index = which % len(copies)
        if step == "copy":
            copies.append(copies[index].copy_topics())
            histories.append(list(histories[index]))
        else:
            CHANGES[step](copies[index])
            histories[index].append(step)
    for copy, history in zip(copies, histories, strict=True):
        alone = cluster()
        for step in history:
            CHANGES[step](alone)
        assert described(copy) == described(alone)


def test_topics_of_a_copy_are_in_order_of_their_names() -> None:
    assert list(cluster().copy_topics().topics) == ["a", "b", "b_c"]
