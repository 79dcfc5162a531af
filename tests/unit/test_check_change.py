"""Which tests ``make check`` chooses for a change."""

from __future__ import annotations

from pathlib import Path

import grimp
import pytest

from scripts.check_change import chosen_tests, module_name

PLAN, DRIFT = "regent.reconcile.plan", "regent.reconcile.drift"
TEST_PLAN, TEST_DRIFT = "tests.unit.test_plan", "tests.unit.test_drift"
TEST_BROKERS = "tests.integration.test_brokers"


@pytest.fixture
def graph() -> grimp.ImportGraph:
    """``plan`` imports ``drift``; each has a test, and servers run ``plan``."""
    graph = grimp.ImportGraph()
    imports = [(PLAN, DRIFT), (TEST_PLAN, PLAN), (TEST_DRIFT, DRIFT), (TEST_BROKERS, PLAN)]
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    return graph


def files(graph: grimp.ImportGraph, *changed: str, budget_s: float = 60) -> list[str]:
    durations = {"tests/unit/test_plan.py": 20.0, "tests/unit/test_drift.py": 30.0}
    return list(chosen_tests(graph, changed, durations, budget_s))


def test_tests_of_a_change_come_in_the_order_of_their_distance(graph: grimp.ImportGraph) -> None:
    assert files(graph, DRIFT) == ["tests/unit/test_drift.py", "tests/unit/test_plan.py"]
    assert files(graph, PLAN) == ["tests/unit/test_plan.py"]
    assert files(graph, TEST_PLAN) == ["tests/unit/test_plan.py"]


def test_tests_that_do_not_fit_into_the_time_are_left_out(graph: grimp.ImportGraph) -> None:
    assert files(graph, DRIFT, budget_s=40) == ["tests/unit/test_drift.py"]
    assert files(graph, DRIFT, budget_s=25) == ["tests/unit/test_plan.py"]


def test_module_that_nothing_imports_has_no_tests(graph: grimp.ImportGraph) -> None:
    assert files(graph, "regent.new") == []


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("operator/regent/reconcile/plan.py", PLAN),
        ("operator/regent/__init__.py", "regent"),
        ("tests/unit/test_plan.py", TEST_PLAN),
        ("spark_tasks/regent_rebalance/cli.py", "regent_rebalance.cli"),
    ],
)
def test_file_is_named_as_python_imports_it(path: str, module: str) -> None:
    assert module_name(Path(path)) == module
