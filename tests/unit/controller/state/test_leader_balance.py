"""The balance of leaders: what the index says equals a recount, whatever has changed how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regent.controller.state.context import ControllerContext
from regent.controller.state.leader_balance import has_preferred_leader
from regent.model.partition import LeaderAndIsr, ReplicaAssignment, TopicPartition
from tests.unit.controller.world import make_context

TP = TopicPartition("t", 0)
TOPICS = ("t", "u")
PARTITIONS = [TopicPartition(topic, p) for topic in TOPICS for p in range(3)]


def led_by(leader: int, isr: tuple[int, ...] = (1, 2, 3)) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 0, isr, 1, 0)


def context_with(assignment: ReplicaAssignment, current: LeaderAndIsr | None) -> ControllerContext:
    context = make_context(1, 2, 3)
    context.cluster.add_topic("t", None)
    context.set_assignment(TP, assignment)
    if current is not None:
        context.cluster.set_leadership({TP: current})
    return context


class TestCount:
    @pytest.mark.parametrize(
        ("leader", "isr", "imbalanced"),
        [
            (1, (1, 2), False),  # the new replica is not in sync yet
            (1, (1, 2, 4), True),  # it is, and does not lead
            (4, (1, 2, 4), True),  # it leads, and the reassignment is not completed
        ],
    )
    def test_a_preferred_replica_that_is_being_added_counts_once_it_is_in_sync(
        self, leader: int, isr: tuple[int, ...], imbalanced: bool
    ) -> None:
        adding = ReplicaAssignment((4, 1, 2), adding_replicas=(4,))
        context = context_with(adding, led_by(leader, isr))
        assert context.balance.imbalance_count == imbalanced
        context.set_assignment(TP, ReplicaAssignment((4, 1, 2)))
        assert context.balance.imbalance_count == (leader != 4)

    def test_nothing_is_known_until_all_topics_have_been_gone_through(self) -> None:
        context = context_with(ReplicaAssignment((1, 2)), led_by(2))
        context.cluster.add_topic("u", None)
        context.set_assignment(TopicPartition("u", 0), ReplicaAssignment((1, 2)))
        context.cluster.set_leadership({TopicPartition("u", 0): led_by(2)})
        balance = context.balance
        assert balance.known_imbalance_count is None
        assert balance.count_some(1)
        context.cluster.set_leadership({TP: led_by(1)})
        assert balance.known_imbalance_count is None
        assert not balance.count_some(1)
        assert balance.known_imbalance_count == 1


CHANGES: dict[str, Callable[[ControllerContext, TopicPartition, int], None]] = {
    "assign": lambda context, tp, n: context.set_assignment(tp, ReplicaAssignment((n, n % 3 + 1))),
    "add": lambda context, tp, n: context.set_assignment(
        tp, ReplicaAssignment((n, n % 3 + 1), adding_replicas=(n,))
    ),
    "lead": lambda context, tp, n: context.cluster.set_leadership({tp: led_by(n)}),
    "lead alone": lambda context, tp, n: context.cluster.set_leadership({tp: led_by(n, (n,))}),
    "lead nobody": lambda context, tp, _: context.cluster.set_leadership({tp: led_by(-1)}),
    "forget": lambda context, tp, _: context.cluster.forget_leadership(tp),
    "remove": lambda context, tp, _: context.remove_topic(tp.topic),
    "delete": lambda context, tp, _: context.queue_topic_for_deletion(tp.topic),
    "ask": lambda context, _, __: recount(context),
    "count some": lambda context, _, n: consume(context.balance.count_some(n)),
}


def consume(_: object) -> None:
    """A change has no result."""


def recount(context: ControllerContext) -> None:
    counted = Counter[int]()
    led_by_others: dict[int, set[TopicPartition]] = {}
    imbalanced = 0
    for tp in context.cluster.all_partitions():
        if context.is_topic_queued_for_deletion(tp.topic):
            continue
        assignment = context.cluster.assignment(tp)
        current = context.cluster.leadership.get(tp)
        assert assignment is not None
        counted[assignment.replicas[0]] += 1
        if current is None:
            continue
        imbalanced += not has_preferred_leader(assignment, current)
        if current.leader != assignment.replicas[0]:
            led_by_others.setdefault(assignment.replicas[0], set()).add(tp)
    balance = context.balance
    assert balance.imbalance_count == imbalanced
    assert {b: set(balance.led_by_others(b)) for b in balance.imbalanced_brokers} == led_by_others
    assert {b: balance.partition_count(b) for b in (1, 2, 3)} == {b: counted[b] for b in (1, 2, 3)}


@given(
    st.lists(
        st.tuples(st.sampled_from(list(CHANGES)), st.sampled_from(PARTITIONS), st.integers(1, 3))
    )
)
def test_whatever_changes_the_index_equals_a_recount(
    changes: list[tuple[str, TopicPartition, int]],
) -> None:
    context = make_context(1, 2, 3)
    for name, tp, number in changes:
        is_known = context.cluster.assignment(tp) is not None
        if is_known or name == "assign":
            CHANGES[name](context, tp, number)
    recount(context)
