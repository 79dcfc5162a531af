"""Tests of which ``make test`` runs a sample: ``--every-version`` runs them with brokers of all
versions of Kafka (``make versions``), ``--every-mutant`` with all deliberate defects of the
controller (``make mutants``).

Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest

_MUTANTS_PER_SAMPLE: Final = 5

_OPTIONS: Final = {
    "every_version": "tests of all versions of Kafka, not of a sample of them",
    "every_mutant": "tests of all defects that the simulation has to find, not of a sample of them",
}
"""What the option of each mark runs."""


def versions(*sample: str, others: tuple[str, ...]) -> list[Any]:
    """Parameters of a test or a fixture: versions that always run, and those that run if asked."""
    return [*sample, *_marked(others, pytest.mark.every_version)]


def mutants(names: Iterable[str]) -> list[Any]:
    """Parameters of a test: one of five always runs, the others if asked."""
    every = list(names)
    sample = every[::_MUTANTS_PER_SAMPLE]
    others = [name for name in every if name not in sample]
    return [*sample, *_marked(others, pytest.mark.every_mutant)]


def _marked(values: Iterable[str], mark: pytest.MarkDecorator) -> list[Any]:
    return [pytest.param(value, marks=mark) for value in values]


def _option(mark: str) -> str:
    return f"--{mark.replace('_', '-')}"


def pytest_addoption(parser: pytest.Parser) -> None:
    for mark, what in _OPTIONS.items():
        parser.addoption(_option(mark), action="store_true", help=what)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for mark in _OPTIONS:
        if config.getoption(_option(mark)):
            continue
        left_out = [item for item in items if item.get_closest_marker(mark) is not None]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item.get_closest_marker(mark) is None]
