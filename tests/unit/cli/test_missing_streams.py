"""Commands that are started without standard streams."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from http import HTTPStatus
from pathlib import Path

import pytest

from sandbox import wait_until
from sandbox.ports import lease_port
from sandbox.process import run_guarded

BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("command", "closed"),
    [
        ("regent settings", ">&-"),
        ("regent crds", "<&- >&- 2>&-"),
        ("regent plan --help", "<&- >&-"),
    ],
)
def test_they_do_their_work(command: str, closed: str) -> None:
    done = run_guarded(["bash", "-c", f"{BIN}/{command} {closed}"], timeout_s=60)
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_regent_runs_without_an_error_stream() -> None:
    run = f"{BIN}/regent run --zookeeper 127.0.0.1:1 --without-kubernetes --http-port"
    with (
        lease_port() as lease,
        subprocess.Popen(["bash", "-c", f"exec {run} {lease.port} 2>&-"]) as regent,
    ):
        try:
            wait_until(
                lambda: _is_healthy(lease.port) or regent.poll() is not None,
                describe="Regent to answer",
            )
            assert regent.poll() is None, "it has ended"
        finally:
            regent.terminate()
        assert regent.wait(60) == 0


def _is_healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False
