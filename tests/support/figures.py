"""Figures that tests measure: printed by the test, and once more together at the end of the run.

They travel as properties of the tests' reports, so they reach the end of the run from every
worker, and stand in JUnit's XML, too. Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

Figure = Callable[[str, object], None]

_PROPERTY = "figure"


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """``figure("what was measured", value)``. Never asserted upon."""

    def record(what: str, value: object) -> None:
        line = f"{request.node.name}: {what}: {value}"
        print(line)
        request.node.user_properties.append((_PROPERTY, line))

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    figures = list(_figures(terminalreporter))
    if figures:
        terminalreporter.section("measured")
        for line in figures:
            terminalreporter.write_line(line)


def _figures(terminalreporter: pytest.TerminalReporter) -> Iterator[str]:
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                yield from (
                    str(value) for name, value in report.user_properties if name == _PROPERTY
                )
