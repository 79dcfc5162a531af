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
from regent.resources.rebalance import MAX_TOPICS_WITH_LEADERS, Goal, Rebalance
from regent.resources.resource_status import unobserved_status
from regent_rebalance import goals
from regent_rebalance.goals import ALL_GOALS, Goals

ROOT = Path(__file__).parents[3]


def body(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "move", "namespace": "shop"}, "spec": spec}


def test_the_example_can_be_read() -> None:
    text = (ROOT / "examples" / "partitionreassignment.yaml").read_text()
    parsed = parse_partition_reassignment(yaml.safe_load(text))
    assert isinstance(parsed, PartitionReassignment)
    assert parsed.spec.replication_factor == {"orders": 3}


@pytest.mark.parametrize("name", ["rebalance", "spark"])
def test_the_examples_of_a_rebalance_can_be_read(name: str) -> None:
    text = (ROOT / "examples" / f"partitionreassignment-{name}.yaml").read_text()
    parsed = parse_partition_reassignment(yaml.safe_load(text))
    assert isinstance(parsed, PartitionReassignment)
    assert parsed.spec.rebalance is not None
    assert parsed.spec.rebalance.goals == (
        Goal.RACK_AWARE,
        Goal.REPLICA_DISTRIBUTION,
        Goal.LEADER_REPLICA_DISTRIBUTION,
    )
    assert (parsed.spec.rebalance.spark is not None) == (name == "spark")


def test_goals_have_the_names_and_defaults_of_the_planner() -> None:
    # Nothing tells Regent capacities of networks, so goals of those could not be met.
    known = [name for name in ALL_GOALS if not name.startswith("Network") or "Usage" in name]
    assert [goal.value for goal in Goal] == known
    assert MAX_TOPICS_WITH_LEADERS == goals.MAX_TOPICS_WITH_LEADERS
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
        ({"rebalance": {"goals": ["NetworkInboundCapacityGoal"]}}, "spec.rebalance.goals"),
        ({"rebalance": {"history": {"percentile": 0}}}, "spec.rebalance.history.percentile"),
        ({"rebalance": {"maxReplicasPerBroker": 0}}, "spec.rebalance.maxReplicasPerBroker"),
        (
            {"rebalance": {"minTopicLeadersPerBroker": {"orders": 0}}},
            "spec.rebalance.minTopicLeadersPerBroker.orders",
        ),
        ({"concurrency": {"total": 0}}, "spec.concurrency.total"),
        ({"throttle": {}}, "spec.throttle"),
    ],
)
def test_a_spec_that_cannot_be_read_is_named(spec: dict[str, Any], field: str) -> None:
    parsed = parse_partition_reassignment(body(**spec))
    assert isinstance(parsed, UnreadableReassignment)
    assert field in parsed.field
    assert parsed.problem


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, "set exactly one of assignments, planJSON, "),
        ({"replicationFactor": {"orders": 3}, "rebalance": {}}, "set exactly one of assignments, "),
    ],
)
def test_what_an_older_definition_has_dropped_is_not_taken_for_left_out(
    changed: dict[str, Any], problem: str
) -> None:
    """Else what asks for nothing would be completed."""
    parsed = parse_partition_reassignment(body(**changed))
    assert isinstance(parsed, UnreadableReassignment)
    assert problem in parsed.problem
    assert "`regent crds | kubectl apply -f -` updates it" in parsed.problem


def test_supplied_conditions_count_as_absent_and_the_record_stays() -> None:
    """A person who patches one field stores the default of the definition with the field."""
    supplied = unobserved_status(PartitionReassignment.kind.conditions)
    stored = {**supplied, "startedAt": "2026-05-01T11:00:00Z"}
    parsed = parse_partition_reassignment(
        {**body(replicationFactor={"orders": 3}), "status": stored}
    )
    assert isinstance(parsed, PartitionReassignment)
    assert parsed.status.to_api() == {"startedAt": "2026-05-01T11:00:00Z"}


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
