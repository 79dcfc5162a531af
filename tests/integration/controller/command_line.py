"""Regent's commands as people run them."""

from __future__ import annotations

import sys
from pathlib import Path

from sandbox.process import Outcome, run_guarded

ROOT = Path(__file__).parents[3]


def run_regent(*arguments: str | Path, **environment: str) -> Outcome:
    """Run ``regent ARGUMENTS`` to its end."""
    return run_guarded(
        [sys.executable, "-m", "regent", *arguments],
        environment={"PYTHONPATH": str(ROOT / "operator"), "COLUMNS": "160", **environment},
        timeout_s=180,
    )
