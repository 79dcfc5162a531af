"""BrokerDrain as it is read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from regent.reconcile.drains.unreadable import UnreadableRequest, plan_unreadable
from regent.resources.broker_drain import (
    BrokerDrain,
    UnreadableDrain,
    parse_broker_drain,
)

ROOT = Path(__file__).parents[3]


def body(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "drain", "namespace": "ops"}, "spec": spec}


def test_the_example_can_be_read() -> None:
    parsed = parse_broker_drain(
        yaml.safe_load((ROOT / "examples" / "brokerdrain.yaml").read_text())
    )
    assert isinstance(parsed, BrokerDrain)
    assert parsed.spec.brokers == (4,)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"brokers": []}, "spec.brokers"),
        ({"brokers": [-1]}, "spec.brokers.0"),
        ({"brokers": [1], "mode": "Everything"}, "spec.mode"),
        ({"brokers": [1], "desiredState": "Running"}, "spec.desiredState"),
        ({"brokers": [1], "timeoutSeconds": 0}, "spec.timeoutSeconds"),
        ({}, "spec.brokers"),
    ],
)
def test_a_spec_that_cannot_be_read_is_named(spec: dict[str, Any], field: str) -> None:
    parsed = parse_broker_drain(body(**spec))
    assert isinstance(parsed, UnreadableDrain)
    assert parsed.field == field
    assert parsed.problem


def test_fields_of_a_status_that_cannot_be_read_count_as_absent() -> None:
    stored = {"phase": "Melting", "startedAt": "2026-05-01T11:00:00Z", "clusterId": "cluster-a"}
    parsed = parse_broker_drain({**body(brokers=[1]), "status": stored})
    assert isinstance(parsed, BrokerDrain)
    assert parsed.status.phase is None
    assert parsed.status.started_at == "2026-05-01T11:00:00Z"
    assert parsed.status.cluster_id == "cluster-a"


@pytest.mark.parametrize("field", ["plan", "startedAt", "clusterId"])
def test_without_a_readable_record_of_what_was_moved_nothing_is(field: str) -> None:
    """What it has moved could not be undone any more if it were overwritten."""
    parsed = parse_broker_drain({**body(brokers=[1]), "status": {field: ["?"]}})
    assert isinstance(parsed, UnreadableDrain)
    assert parsed.field.startswith(f"status.{field}")
    plan = plan_unreadable(UnreadableRequest(parsed, datetime(2026, 5, 1, tzinfo=UTC)))
    assert plan.commands == ()
    assert plan.keeps_unread
    assert plan.status is not None
    conditions = {each.type: f"{each.status}/{each.reason}" for each in plan.status.conditions}
    assert conditions["Stalled"] == "True/StatusUnreadable"
    assert conditions["Drained"] == "Unknown/Unknown"


@pytest.mark.parametrize(
    "text", ["0000-01-01T00:00:00Z", "2026-11-22T17:00:00+99:00", "2026-11-22T17:00:00"]
)
def test_a_time_that_is_none_is_not_calculated_with(text: str) -> None:
    """The API server accepts the first two."""
    parsed = parse_broker_drain({**body(brokers=[1]), "status": {"startedAt": text}})
    assert isinstance(parsed, UnreadableDrain)
    assert parsed.field == "status.startedAt"
