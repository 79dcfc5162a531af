"""Failures are printed when they happen, not only at the end: a run that is stopped has named them.

Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

import pytest


class EarlyFailures:
    """Prints the reports of tests that fail."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.write_line("")
            self._terminal.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)
            self._terminal.write_line(report.longreprtext)
            for title, text in report.sections:
                self._terminal.write_line(f"--- {title} ---\n{text}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    # The workers of pytest-xdist have one, too; it prints nothing.
    if isinstance(terminal, pytest.TerminalReporter) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(EarlyFailures(terminal))
