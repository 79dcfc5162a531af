"""Tests that only the soak runs: ``--soak PART`` runs those of a part, and no others.

The gate (``make test``) proves each behaviour once. ``make soak`` repeats it where repetition can
find more: with every version of Kafka, with every mutant of the controller, cut short at every
effect. Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest

PARTS: Final = {
    "versions": "brokers and clients of the Kafka versions that the gate leaves out",
    "mutants": "every deliberate defect of the controller, each found by the simulation",
    "cuts": "stories of the simulation, cut short at every effect",
    "upgrade": "brokers upgraded one by one from 2.4.1 to 3.9.1 under load",
    "controller": "Regents that wake up, flights that were simulated, and large numbers of znodes "
    "and resources",
    "endpoint": "failing Regents, Kafka Streams, the migration to KRaft, the output of tools",
    "spark": "long plans by Spark, and plans by the Spark Operator in pods",
    "planner": "plans of larger clusters, compared with an exact solver and with bounds",
    "sandbox": "the sandbox's commands, its node, and what its brokers refuse",
    "chart": "null for each value of the chart that the gate leaves out",
    "benchmarks": "each benchmark with a small cluster",
    "demo": "the demo in a Kubernetes cluster of the user",
}
"""Description of each part."""

_VALUES_PER_SAMPLE: Final = 5


def soak(part: str) -> pytest.MarkDecorator:
    """Return the mark of tests, or of parameters, that only a part of the soak runs."""
    assert part in PARTS, f"{part!r} is not one of {sorted(PARTS)}"
    return pytest.mark.soak(part)


def versions(*gate: str, others: Iterable[str]) -> list[Any]:
    """Return parameters: the versions of Kafka that the gate runs, and those of the soak."""
    return [*gate, *_marked(others, "versions")]


def sample(values: Iterable[str], part: str) -> list[Any]:
    """Return parameters: every fifth value for the gate, the others for a part of the soak."""
    every = list(values)
    gate = every[::_VALUES_PER_SAMPLE]
    return [*gate, *_marked((value for value in every if value not in gate), part)]


def _marked(values: Iterable[str], part: str) -> list[Any]:
    return [pytest.param(value, marks=soak(part)) for value in values]


def pytest_addoption(parser: pytest.Parser) -> None:
    described = "; ".join(f"{part}: {what}" for part, what in PARTS.items())
    parser.addoption(
        "--soak",
        action="append",
        default=[],
        choices=[*PARTS, "all"],
        metavar="PART",
        help=f"run a part of the soak instead of the gate ({described}; all)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = set(config.getoption("--soak"))
    if "all" in wanted:
        wanted |= PARTS.keys()

    def runs(item: pytest.Item) -> bool:
        parts = {mark.args[0] for mark in item.iter_markers("soak")}
        return not parts.isdisjoint(wanted) if wanted else not parts

    left_out = [item for item in items if not runs(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if runs(item)]
