"""The smoke test of ``make check``: it keeps its cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sandbox.process import run_guarded
from scripts.smoke import kept_cluster
from tests.support.soak import soak

pytestmark = [pytest.mark.integration, soak("sandbox")]


def smoke(directory: Path, *options: str) -> None:
    command = [sys.executable, "-m", "scripts.smoke", f"--directory={directory}", *options]
    outcome = run_guarded(command, timeout_s=600)
    assert outcome.exit_code == 0, outcome


def test_the_second_run_uses_the_cluster_of_the_first(tmp_path: Path) -> None:
    try:
        smoke(tmp_path)
        kept = kept_cluster(tmp_path)
        smoke(tmp_path)
        assert kept_cluster(tmp_path) == kept
    finally:
        smoke(tmp_path, "--stop")
    assert not kept.is_alive()
