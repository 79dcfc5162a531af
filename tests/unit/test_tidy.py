"""Hygiene of the repository: what no linter looks at."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.set_iteration import set_iterations

ROOT = Path(__file__).parents[2]
REGENT = ROOT / "operator" / "regent"
SOURCES = ("operator/regent", "spark_tasks/regent_rebalance", "sandbox", "benchmarks", "scripts")
TEXT_SUFFIXES = {".py", ".pyi", ".md", ".toml", ".yaml", ".yml", ".tpl", ".txt", ".sh", ".java"}
TEXT_ROOTS = (*SOURCES, "tests", "docs", "charts", "crds", "examples", "README.md", "Makefile")

DOCSTRING_FIRST = re.compile(r'(#.*\n|\n)*r?"""\s*[^"\s]')

LINES_OF_A_MODULE = 500
LINES_OF_A_FUNCTION = 70


def modules(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


@pytest.mark.parametrize("folder", ["operator", "spark_tasks"])
def test_a_source_root_is_not_a_package(folder: str) -> None:
    """A package named operator would shadow the standard library's: the interpreter dies."""
    assert (ROOT / folder).is_dir()
    assert not (ROOT / folder / "__init__.py").exists()


def test_no_folder_of_tests_shadows_the_standard_library() -> None:
    shadowing = [name(p) for p in (ROOT / "tests").rglob("operator") if p.is_dir()]
    assert shadowing == []


def test_modules_are_small() -> None:
    lines = {name(p): len(p.read_text().splitlines()) for p in modules(*SOURCES, "tests")}
    assert len(lines) > 100
    assert {p: n for p, n in lines.items() if n > LINES_OF_A_MODULE} == {}


def test_functions_are_small() -> None:
    large = {
        f"{name(path)}:{node.name}": lines
        for path in modules("operator/regent")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > LINES_OF_A_FUNCTION
    }
    assert large == {}


def test_every_module_says_why_it_exists() -> None:
    silent = [name(p) for p in modules(*SOURCES) if not DOCSTRING_FIRST.match(p.read_text())]
    assert silent == []


def test_nothing_is_left_to_be_done_later() -> None:
    words = ["TO" + "DO", "FIX" + "ME", "XX" + "X"]
    roots = [ROOT / root for root in TEXT_ROOTS]
    files = [f for root in roots for f in ([root] if root.is_file() else root.rglob("*"))]
    found = [
        f"{name(file)}: {word}"
        for file in files
        if file.suffix in TEXT_SUFFIXES or file.name in ("Makefile", "Dockerfile")
        for word in words
        if word in file.read_text(errors="replace")
    ]
    assert found == []


def test_tests_without_servers_do_not_sleep() -> None:
    """Whoever sleeps waits too long or not long enough. Yielding to the loop is no sleep."""

    def sleeps(call: ast.Call) -> bool:
        match call:
            case ast.Call(func=ast.Attribute(attr="sleep"), args=[ast.Constant(value=0)]):
                return False
            case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep")):
                return True
        return False

    sleeping = [
        f"{name(path)}:{node.lineno}"
        for path in modules("tests/unit", "tests/simulation")
        if "sleep(" in path.read_text()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and sleeps(node)
    ]
    assert sleeping == []


def test_the_core_never_depends_on_the_order_of_a_set() -> None:
    found = {
        name(path): lines
        for path in modules(
            "operator/regent/controller", "operator/regent/model", "operator/regent/reconcile"
        )
        if (lines := set_iterations(path.read_text()))
    }
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "for x in {1, 2}: pass",
        "for x in set(y): pass",
        "for x in a | frozenset(b): pass",
        "for x in a.keys() - b: pass",
        "[x for x in {y for y in z}]",
        "{x: 1 for x in set(y)}",
        "f(x for x in set(y))",
        "list({1, 2})",
        "tuple(set(y))",
        "dict.fromkeys(set(y))",
        "','.join({'a'})",
        "f(*set(y))",
        "a.union(b)\nfor x in a.union(b): pass",
        "def f(x: set[int]) -> None:\n    for y in x: pass",
        "def f():\n    gone = set(x)\n    return [y for y in gone]",
        "async def f():\n    x: frozenset[int] = g()\n    for y in x: pass",
    ],
)
def test_iterating_a_set_is_noticed(code: str) -> None:
    assert set_iterations(code) == [code.count("\n") + 1]


@pytest.mark.parametrize(
    "code",
    [
        "for x in sorted({1, 2}): pass",
        "x in {1, 2}",
        "any(x for x in {1, 2})",
        "sum(x for x in set(y))",
        "{x for x in {1, 2}}",
        "a.keys() <= b.keys()",
        "for x in a | b: pass",
        "for x in dict.fromkeys(y): pass",
        "len(set(y))",
        "def f(x: set[int]) -> None: ...\ndef g(x):\n    for y in x: pass",
    ],
)
def test_asking_a_set_is_not(code: str) -> None:
    assert set_iterations(code) == []


class TestImportContracts:
    @pytest.fixture
    def contracts(self) -> list[dict[str, object]]:
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
        assert settings["include_external_packages"], "else the standard library goes unnoticed"
        contracts: list[dict[str, object]] = settings["contracts"]
        return contracts

    def test_every_part_of_the_operator_has_its_layer(
        self, contracts: list[dict[str, object]]
    ) -> None:
        (layers,) = [c["layers"] for c in contracts if c.get("containers") == ["regent"]]
        assert isinstance(layers, list)
        known = {part.strip() for layer in layers for part in layer.split("|")}
        parts = {p.stem for p in REGENT.glob("*.py")} | {
            p.name for p in REGENT.iterdir() if (p / "__init__.py").exists()
        }
        assert parts - {"__init__"} == known

    @pytest.mark.parametrize(
        ("part", "forbidden"),
        [
            *((f"regent.{p}", "kazoo") for p in ("controller", "model", "kube", "network")),
            *(
                (f"regent.{p}", "asyncio")
                for p in ("controller", "model", "zk_data", "protocol", "replicas")
            ),
            *((f"regent.{p}", "time") for p in ("controller", "reconcile", "replicas")),
            *((f"regent.{p}", "random") for p in ("controller", "reconcile")),
            *((f"regent.{p}", "kopf") for p in ("controller", "runtime", "zookeeper", "network")),
            *((f"regent.{p}", "kio") for p in ("controller", "model", "kube", "zookeeper")),
            ("regent", "pyspark"),
            ("regent_rebalance", "regent"),
        ],
    )
    def test_what_must_not_be_known_is_forbidden(
        self, contracts: list[dict[str, object]], part: str, forbidden: str
    ) -> None:
        def mentions(contract: dict[str, object], key: str, value: str) -> bool:
            listed = contract.get(key, [])
            return isinstance(listed, list) and value in listed

        assert any(
            mentions(c, "source_modules", part) and mentions(c, "forbidden_modules", forbidden)
            for c in contracts
        )


def literal_deadlines(code: str) -> list[int]:
    """Return the lines of waits that name a number of seconds, of one second or more."""
    found = []
    for call in ast.walk(ast.parse(code)):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        if name in ("wait_until", "wait_until_async"):
            given = [keyword.value for keyword in call.keywords if keyword.arg == "timeout_s"]
        elif name in ("asyncio.wait_for", "asyncio.timeout"):
            own = call.args[1:] if name == "asyncio.wait_for" else call.args
            given = [*own, *(keyword.value for keyword in call.keywords)]
        else:
            continue
        found += [
            value.lineno
            for value in given
            if isinstance(value, ast.Constant)
            and isinstance(value.value, int | float)
            and value.value >= 1
        ]
    return found


def test_waits_have_the_common_deadline() -> None:
    """A deadline of some seconds passes on a busy machine: a wait ends by its condition."""
    waits = ROOT / "tests/sandbox/test_waiting.py"
    literal = {
        name(path): lines
        for path in modules("tests")
        if path != waits and (lines := literal_deadlines(path.read_text()))
    }
    assert literal == {}


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("wait_until(ready, timeout_s=5)", [1]),
        ("await asyncio.wait_for(answer, 10)", [1]),
        ("asyncio.timeout(DEADLINE_S)", []),
        ("wait_until(ready, describe='it')", []),
        ("asyncio.wait_for(silence, 0.05)", []),
    ],
)
def test_deadlines_are_noticed(code: str, lines: list[int]) -> None:
    assert literal_deadlines(code) == lines
