"""What the election of a partition is decided by, taken from the context."""

from __future__ import annotations

from regent.controller.state.context import ControllerContext
from regent.controller.transitions.election import ElectionInput
from regent.model.partition import LeaderAndIsr, TopicPartition


def election_input(
    context: ControllerContext,
    tp: TopicPartition,
    state: LeaderAndIsr,
    *,
    unclean_enabled: bool = False,
) -> ElectionInput | None:
    """The input for a partition whose state is ``state``; None if it has no assignment."""
    assignment = context.cluster.assignment(tp)
    if assignment is None:
        return None
    leaving = context.shutting_down_broker_ids
    present = context.live_replicas(tp, assignment.replicas)
    return ElectionInput(
        assignment=assignment,
        leader=state.leader,
        isr=state.isr,
        recovery_state=state.leader_recovery_state,
        live=tuple(r for r in present if r not in leaving) if leaving else present,
        live_or_shutting_down=present,
        shutting_down=leaving,
        unclean_enabled=unclean_enabled,
        marks_recovery=context.cluster.inter_broker_protocol >= (3, 2),
    )
