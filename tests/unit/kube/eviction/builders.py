"""Pods and BrokerDrains as the API server has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from regent.kube.eviction.drain_records import BrokerPod, EvictionRecord, KnownDrain
from regent.kube.eviction.settings import EvictionSettings
from regent.resources.broker_drain import BrokerDrain
from regent.resources.resource_status import unobserved_status

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SETTINGS = EvictionSettings(pod_labels={"app": "kafka"}, namespace="kafka")
POD = BrokerPod("kafka", "broker-4", "uid-1", 4)

STATEFUL_SET = ({"kind": "StatefulSet", "name": "broker", "controller": True},)


def pod(
    name: str = "broker-4",
    *,
    uid: str = "uid-1",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owners: tuple[Mapping[str, Any], ...] = STATEFUL_SET,
    phase: str = "Running",
    ready: bool = True,
    deleted: bool = False,
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "kafka",
            "uid": uid,
            "labels": {"app": "kafka", **(labels or {})},
            "ownerReferences": list(owners),
            **({"annotations": dict(annotations)} if annotations else {}),
            **({"deletionTimestamp": "2026-03-01T11:59:00Z"} if deleted else {}),
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def drain(
    name: str = "eviction-broker-4",
    *brokers: int,
    namespace: str = "kafka",
    mode: str = "Leadership",
    desired: str = "Drained",
    drained: bool | None = False,
    phase: str = "Draining",
    made_for: BrokerPod | None = None,
    asked: timedelta = timedelta(),
    deleted: bool = False,
    generation: int = 1,
    blockers: tuple[Mapping[str, Any], ...] = (),
    spec: Mapping[str, Any] | None = None,
    reason: str = "Verifying",
) -> KnownDrain:
    """A BrokerDrain; that of an eviction if it says for which pod.

    Args:
        drained: The condition; None: no status yet.
        asked: How long ago somebody has asked.
        generation: Of the object; the status is about the first one.
        reason: That of the condition Drained.
    """
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-of-{name}",
        "generation": generation,
        "resourceVersion": "7",
    }
    if deleted:
        metadata["deletionTimestamp"] = "2026-03-01T11:59:00Z"
    if made_for is not None:
        metadata["labels"] = {"kafka.regent.dev/made-for": "eviction"}
        metadata["annotations"] = EvictionRecord.of(made_for, now=NOW - asked).annotations()
    body: dict[str, Any] = {
        "metadata": metadata,
        "spec": {
            "brokers": list(brokers or (4,)),
            "mode": mode,
            "desiredState": desired,
            **(spec or {}),
        },
    }
    if drained is None:
        body["status"] = unobserved_status(BrokerDrain.kind.conditions)
    else:
        body["status"] = {
            "observedGeneration": 1,
            "phase": phase,
            "blockers": list(blockers),
            "conditions": [
                _condition("Ready", drained, "Moving", "3 of 5 partitions have moved"),
                _condition("Drained", drained, reason, "not yet"),
            ],
        }
    return KnownDrain.read(body)


def _condition(type_: str, holds: bool, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": type_,
        "status": str(holds),
        "observedGeneration": 1,
        "lastTransitionTime": "2026-03-01T11:00:00Z",
        "reason": reason,
        "message": message,
    }
