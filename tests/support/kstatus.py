"""The rules by which Flux, Helm and others find out whether a resource is ready: kstatus.

Source: ``pkg/kstatus/status`` (``Compute``) of kubernetes-sigs/cli-utils.
"""

from __future__ import annotations

import enum
from typing import Any


class KStatus(enum.StrEnum):
    """Verdicts."""

    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"


def kstatus(body: dict[str, Any]) -> KStatus:
    """Compute the verdict on an object of the API."""
    metadata, status = body["metadata"], body.get("status", {})
    if metadata.get("deletionTimestamp"):
        return KStatus.TERMINATING
    observed = status.get("observedGeneration")
    if observed is not None and observed != metadata["generation"]:
        return KStatus.IN_PROGRESS
    conditions = {c["type"]: c["status"] for c in status.get("conditions", ())}
    if conditions.get("Reconciling") == "True":
        return KStatus.IN_PROGRESS
    if conditions.get("Stalled") == "True":
        return KStatus.FAILED
    if "Ready" not in conditions:
        return KStatus.CURRENT
    return KStatus.CURRENT if conditions["Ready"] == "True" else KStatus.IN_PROGRESS
