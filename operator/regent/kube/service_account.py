"""What Kubernetes puts into every pod: who it is, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def own_namespace() -> str:
    """The namespace of the pod; outside a pod ``default``."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return "default"
