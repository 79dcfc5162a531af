"""PartitionReassignment as it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from regent.resources.partition_reassignment import (
    ApprovalPolicy,
    PartitionReassignment,
    UnreadableReassignment,
    parse_partition_reassignment,
)
from regent.resources.rebalance import Goal, Rebalance
from regent_rebalance.goals import ALL_GOALS, Goals

ROOT = Path(__file__).parents[3]


def body(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "move", "namespace": "shop"}, "spec": spec}


def test_the_example_can_be_read() -> None:
    text = (ROOT / "examples" / "partitionreassignment.yaml").read_text()
    parsed = parse_partition_reassignment(yaml.safe_load(text))
    assert isinstance(parsed, PartitionReassignment)
    assert parsed.spec.replication_factor == {"orders": 3}


def test_the_example_of_a_rebalance_can_be_read() -> None:
    text = (ROOT / "examples" / "partitionreassignment-rebalance.yaml").read_text()
    parsed = parse_partition_reassignment(yaml.safe_load(text))
    assert isinstance(parsed, PartitionReassignment)
    assert parsed.spec.rebalance is not None
    assert parsed.spec.rebalance.goals == (
        Goal.RACK_AWARE,
        Goal.REPLICA_DISTRIBUTION,
        Goal.LEADER_REPLICA_DISTRIBUTION,
    )


def test_goals_have_the_names_and_defaults_of_the_planner() -> None:
    assert tuple(goal.value for goal in Goal) == ALL_GOALS
    defaults, planner = Rebalance(), Goals()
    assert defaults.replica_balance_percent / 100 == planner.replica_balance
    assert defaults.leader_balance_percent / 100 == planner.leader_balance


def test_nothing_is_executed_unasked_and_little_at_a_time() -> None:
    parsed = parse_partition_reassignment(body(replicationFactor={"orders": 3}))
    assert isinstance(parsed, PartitionReassignment)
    assert parsed.spec.approval.policy is ApprovalPolicy.MANUAL
    assert (parsed.spec.concurrency.per_broker, parsed.spec.concurrency.total) == (5, 50)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"desiredState": "Elsewhere"}, "spec.desiredState"),
        ({"assignments": [{"topic": "orders", "partition": -1, "replicas": [1]}]}, "partition"),
        ({"approval": {"planHash": "sha256:12"}}, "spec.approval.planHash"),
        ({"rebalance": {"goals": ["DiskUsageDistributionGoal"]}}, "spec.rebalance.goals"),
        ({"rebalance": {"maxReplicasPerBroker": 0}}, "spec.rebalance.maxReplicasPerBroker"),
        ({"concurrency": {"total": 0}}, "spec.concurrency.total"),
    ],
)
def test_a_spec_that_cannot_be_read_is_named(spec: dict[str, Any], field: str) -> None:
    parsed = parse_partition_reassignment(body(**spec))
    assert isinstance(parsed, UnreadableReassignment)
    assert field in parsed.field
    assert parsed.problem


def test_fields_of_a_status_that_cannot_be_read_count_as_absent() -> None:
    stored = {"phase": "Melting", "summary": "1/2", "finishedAt": "2026-05-01T11:00:00Z"}
    parsed = parse_partition_reassignment(
        {**body(replicationFactor={"orders": 3}), "status": stored}
    )
    assert isinstance(parsed, PartitionReassignment)
    assert (parsed.status.phase, parsed.status.summary) == (None, "1/2")
    assert parsed.status.finished_at == "2026-05-01T11:00:00Z"


@pytest.mark.parametrize("field", ["plan", "startedAt", "finishedAt", "clusterId"])
def test_without_a_readable_record_of_what_was_done_nothing_is(field: str) -> None:
    parsed = parse_partition_reassignment(
        {**body(replicationFactor={"orders": 3}), "status": {field: ["?"]}}
    )
    assert isinstance(parsed, UnreadableReassignment)
    assert parsed.field.startswith(f"status.{field}")
