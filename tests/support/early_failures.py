"""Failures are printed when they happen, each with the command that runs the test alone.

Registered by ``tests/conftest.py``, with the plugins whose options the command repeats
(``tests.support.soak``, ``tests.support.stalls``).
"""

from __future__ import annotations

import shlex

import pytest


class EarlyFailures:
    """Prints the reports of tests that fail."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def _command(self, test: str) -> str:
        """The command that runs a test alone. Its name has the version and the seed, if any."""
        option = self._terminal.config.getoption
        options = [f"--soak={part}" for part in option("--soak")]
        if (profile := option("--hypothesis-profile", None)) is not None:
            options.append(f"--hypothesis-profile={profile}")
        if (seed := option("--stalls")) is not None:
            options.append(f"--stalls={seed}")
        return shlex.join([".venv/bin/pytest", *options, test])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.write_line("")
            self._terminal.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)
            self._terminal.write_line(report.longreprtext)
            self._terminal.write_line(f"repeat: {self._command(report.nodeid)}")
            for title, text in report.sections:
                self._terminal.write_line(f"--- {title} ---\n{text}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    # The workers of pytest-xdist have one, too; it prints nothing.
    if isinstance(terminal, pytest.TerminalReporter) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(EarlyFailures(terminal))
