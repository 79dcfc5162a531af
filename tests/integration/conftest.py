"""Figures that tests measure: printed by the test, and once more together at the end of the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Figure = Callable[[str, object], None]

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """``figure("what was measured", value)``. Never asserted upon."""
    figures = request.config.stash.setdefault(_FIGURES, [])

    def tell(what: str, value: object) -> None:
        line = f"{request.node.name}: {what}: {value}"
        print(line)
        figures.append(line)

    return tell


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    figures = config.stash.get(_FIGURES, [])
    if figures:
        terminalreporter.section("measured")
        for line in figures:
            terminalreporter.write_line(line)
