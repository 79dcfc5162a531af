"""Regent's commands as people run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sandbox import regent_process
from sandbox.process import Outcome

ROOT = Path(__file__).parents[3]
SOURCES = os.pathsep.join(str(ROOT / folder) for folder in ("operator", "spark_tasks"))


def run_regent(*arguments: str | Path, **environment: str) -> Outcome:
    """Run ``regent ARGUMENTS`` to its end, on a wide terminal."""
    return regent_process.run_regent(*arguments, COLUMNS="160", **environment)


def run_without_reader(*arguments: str | Path) -> Outcome:
    """Run ``regent ARGUMENTS | true``: whoever should read the output has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "regent", *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": SOURCES},
            timeout=180,
            check=False,
        )
    finally:
        os.close(writer)
    return Outcome("", ended.stderr.decode(), ended.returncode)
