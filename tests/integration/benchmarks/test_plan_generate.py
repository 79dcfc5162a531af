"""Kafka's own tool proposes assignments for clusters that are only written down."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.plan_cases import cases
from benchmarks.plan_generate import cost_of, generate_assignment
from regent_rebalance.planner import make_plan
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, soak("benchmarks")]


@pytest.mark.parametrize("name", ["one broker of 20 leaves", "weighted", "leaders of 256"])
def test_a_proposal_is_one_of_the_same_partitions_on_brokers_that_stay(name: str) -> None:
    (case,) = (case for case in cases() if case.name == name)
    proposal = generate_assignment(case.snapshot, case.goals, timeout_s=60)
    assert (proposal.offsets == case.snapshot.offsets).all()
    ids = set(case.snapshot.brokers.ids[proposal.replicas].tolist())
    assert ids <= set(case.snapshot.brokers.ids.tolist()) - set(case.goals.drained)
    pairs = zip(np.repeat(np.arange(case.snapshot.partitions), case.snapshot.replication),
                proposal.replicas.tolist(), strict=True)  # fmt: skip
    assert len(set(pairs)) == len(proposal.replicas)


def test_a_proposal_costs_what_it_copies() -> None:
    """What the planner moves is less, and it meets all goals."""
    (case,) = (case for case in cases() if case.name == "weighted")
    proposal = generate_assignment(case.snapshot, case.goals, timeout_s=60)
    cost = cost_of(case.snapshot, case.goals, proposal)
    before, after = (
        {
            (partition, broker)
            for partition, (begin, end) in enumerate(itertools.pairwise(ends))
            for broker in replicas[begin:end]
        }
        for ends, replicas in (
            (case.snapshot.offsets.tolist(), case.snapshot.replicas.tolist()),
            (proposal.offsets.tolist(), proposal.replicas.tolist()),
        )
    )
    size = case.snapshot.copy_bytes().tolist()
    assert cost.moves == len(after - before)
    assert cost.bytes == sum(size[partition] for partition, _ in after - before)
    summary = make_plan(case.snapshot, case.goals).summary
    assert summary.goals_met
    assert summary.moves < cost.moves
