"""BrokerDrain as it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from regent.resources.broker_drain import (
    BrokerDrain,
    DesiredDrainState,
    DrainMode,
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


def test_replicas_are_drained_a_few_at_a_time_unless_said_otherwise() -> None:
    parsed = parse_broker_drain(body(brokers=[1, 2]))
    assert isinstance(parsed, BrokerDrain)
    assert parsed.spec.mode is DrainMode.REPLICAS
    assert parsed.spec.desired_state is DesiredDrainState.DRAINED
    assert (parsed.spec.concurrency.per_broker, parsed.spec.concurrency.total) == (5, 50)


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


def test_a_status_that_cannot_be_read_counts_as_absent() -> None:
    parsed = parse_broker_drain({**body(brokers=[1]), "status": {"phase": "Melting"}})
    assert parsed.status.phase is None
