"""With the report of a test that fails come the logs of the programs that run: what a Regent or a
broker was doing says more than a condition that was awaited in vain.

Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import pytest

from sandbox.process import running_processes

_LINES: Final = 15
_LINES_OF_REGENT: Final = 60


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for process in running_processes():
            lines = _LINES_OF_REGENT if "regent" in process.name else _LINES
            title = f"log of {process.name}, process {process.pid}"
            report.sections.append((title, process.log_tail(lines=lines)))
    return report
