"""What is imported is declared: what a dependency brings today, its next version may not."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OWN = {"regent", "regent_rebalance", "sandbox", "benchmarks", "scripts", "tests"}


IMPORT = re.compile(
    r"^ *(?:from (?=[\w.]+ import)|import (?=[\w.]+(?: as \w+)?$))(\w+)", re.MULTILINE
)
"""Group 1: the top-level module of an import, of a program in a text, too."""


def imported(*folders: str) -> set[str]:
    """Top-level modules, neither ours nor the standard library's."""
    names = {
        name
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for name in IMPORT.findall(path.read_text())
    }
    return names - OWN - sys.stdlib_module_names


def canonical(distribution: str) -> str:
    """PEP 503."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def declared(requirements: list[Any]) -> set[str]:
    return {
        canonical(re.split(r"[^A-Za-z0-9._-]", requirement)[0])
        for requirement in requirements
        if isinstance(requirement, str)
    }


@pytest.mark.parametrize(
    ("folders", "extras", "with_groups"),
    [
        (["operator/regent"], [], False),
        (["spark_tasks"], ["planner", "spark"], False),
        (["sandbox", "benchmarks", "scripts", "tests"], ["planner", "spark"], True),
    ],
    ids=["regent", "the planner", "around it"],
)
def test_every_imported_package_is_declared(
    folders: list[str], extras: list[str], with_groups: bool
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    known = declared(project["project"]["dependencies"])
    for extra in extras:
        known |= declared(project["project"]["optional-dependencies"][extra])
    if with_groups:
        for group in project["dependency-groups"].values():
            known |= declared(group)
    distributions = importlib.metadata.packages_distributions()
    missing = {
        module: distributions.get(module, [])
        for module in imported(*folders)
        if not known & set(map(canonical, distributions.get(module, [])))
    }
    assert missing == {}


@pytest.mark.parametrize(
    ("file", "extras", "own"),
    [
        ("dev.txt", ["planner", "spark"], None),
        ("runtime.txt", [], None),
        # its image has none of the operator but what the planner needs, too
        ("planner.txt", ["planner", "spark"], {"click"}),
    ],
)
def test_what_is_declared_is_locked(file: str, extras: list[str], own: set[str] | None) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = declared(project["dependencies"]) if own is None else own
    for extra in extras:
        wanted = wanted | declared(project["optional-dependencies"][extra])
    lines = (ROOT / "requirements" / file).read_text().splitlines()
    locked = {canonical(line.partition("==")[0]) for line in lines if "==" in line}
    assert wanted - locked == set()
