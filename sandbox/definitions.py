"""CustomResourceDefinitions in a test or demo: applied, and served once this returns."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.waiting import wait_until

_TIMEOUT_S = 180.0


def apply_definitions(kubectl: Callable[..., str], path: Path) -> None:
    """``kubectl apply`` a file or folder of definitions, and wait until the API serves them."""
    kubectl("apply", "--filename", path)
    wait_until_established(kubectl, "--filename", path)


def wait_until_established(kubectl: Callable[..., str], *which: str | Path) -> None:
    """Wait until definitions have the condition ``Established``.

    ``kubectl wait`` cannot be used: it fails for a definition that is so new that its
    ``status.conditions`` is null (kubernetes/kubernetes#66439).

    Args:
        kubectl: Runs kubectl with these arguments, and returns what it prints.
        which: The definitions, as ``kubectl get`` takes them.

    Raises:
        WaitTimeoutError: One was not established in time.
        SandboxError: As ``kubectl`` raises it, for example if a definition is missing.
    """
    wait_until(
        lambda: _not_established(kubectl("get", "--output=json", *which)),
        until=lambda missing: not missing,
        timeout_s=_TIMEOUT_S,
        describe=f"the definitions {' '.join(str(part) for part in which)} to be established",
        retry_on=(),
    )


def _not_established(printed: str) -> list[str]:
    found: dict[str, Any] = json.loads(printed)
    return [
        definition["metadata"]["name"]
        for definition in found.get("items", [found])
        if not any(
            condition["type"] == "Established" and condition["status"] == "True"
            for condition in definition.get("status", {}).get("conditions") or []
        )
    ]
