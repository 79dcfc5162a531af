"""Check a change in two minutes: style and types of the changed files, and the closest tests.

    python -m scripts.check_change [--since COMMIT] [--seconds 60]

Tests are chosen by the graph of imports: first the changed test modules, then the test modules
that import a changed module directly, then those at a distance of two imports, and so on, as long
as they fit into the time. ``tests/durations.json`` says how long a module takes. Tests that need
servers are left to ``make test``, except for a smoke test on a cluster that is kept from one check
to the next (:mod:`scripts.smoke`). A change of the controller's core also runs some seeds of the
simulation.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import grimp

from tests.support.distribution import needs_servers, read_durations

ROOT: Final = Path(__file__).resolve().parent.parent

_SOURCES: Final = ("operator", "spark_tasks", ".")
_PACKAGES: Final = ("regent", "regent_rebalance", "sandbox", "benchmarks", "tests")
_CORE: Final = ("regent.controller", "regent.simulation", "tests.simulation")
_LIVE: Final = ("regent.", "sandbox.")
_UNKNOWN_S: Final = 5.0
"""Seconds that a test module without an entry is taken to need."""
_SEEDS: Final = 20


def changed_files(since: str) -> list[Path]:
    """Return the files that differ from a commit, and the files that git does not know yet."""
    listed = [
        *_output("git", "diff", "--name-only", "--diff-filter=d", since).splitlines(),
        *_output("git", "ls-files", "--others", "--exclude-standard").splitlines(),
    ]
    return [Path(name) for name in dict.fromkeys(listed)]


def module_name(path: Path) -> str:
    """Return the module of a Python file of the project."""
    parts = path.with_suffix("").parts
    if parts[0] in _SOURCES:
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def chosen_tests(
    graph: grimp.ImportGraph, changed: Collection[str], durations: dict[str, float], budget_s: float
) -> Iterator[str]:
    """Yield files of test modules, those closest to the changed modules first.

    Args:
        changed: Names of the changed modules.
        durations: Seconds of test modules, by file.
        budget_s: Seconds that the tests may take in all; a module that does not fit is left out.
    """
    left_s = budget_s
    for module in _by_distance(graph, changed):
        file = f"{module.replace('.', '/')}.py"
        if not module.rpartition(".")[2].startswith("test_") or needs_servers(file):
            continue
        seconds = durations.get(file, _UNKNOWN_S)
        if seconds <= left_s:
            left_s -= seconds
            yield file


def _by_distance(graph: grimp.ImportGraph, changed: Collection[str]) -> Iterator[str]:
    """Yield the changed modules, then the modules that import them, then the importers of these."""
    seen = {module for module in changed if module in graph.modules}
    level = sorted(seen)
    while level:
        yield from level
        importers = {
            importer
            for module in level
            for importer in graph.find_modules_that_directly_import(module)
        }
        level = sorted(importers - seen)
        seen |= importers


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _succeeds(what: str, command: Sequence[str]) -> bool:
    print(f"=== {what}", flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def _checks(files: Iterable[Path], *, budget_s: float) -> Iterator[bool]:
    sources = [str(file) for file in files if file.suffix == ".py"]
    changed = {module_name(Path(file)) for file in sources}
    sys.path[:0] = [str(ROOT / folder) for folder in _SOURCES]
    graph = grimp.build_graph(*_PACKAGES, cache_dir=str(ROOT / ".import_linter_cache"))
    tests = list(
        chosen_tests(graph, changed, read_durations(ROOT / "tests/durations.json"), budget_s)
    )
    if sources:
        yield _succeeds("format", [".venv/bin/ruff", "format", "--check", *sources])
        yield _succeeds("style", [".venv/bin/ruff", "check", *sources])
        yield _succeeds("types", [".venv/bin/dmypy", "run"])
    if tests:
        yield _succeeds(
            f"{len(tests)} test modules", [sys.executable, "-m", "pytest", "-q", "-n", "2", *tests]
        )
    if any(module.startswith(_CORE) for module in changed):
        simulation = [sys.executable, "-m", "tests.simulation", "--seeds", str(_SEEDS)]
        yield _succeeds(f"{_SEEDS} seeds of the simulation", simulation)
    if any(module.startswith(_LIVE) for module in changed):
        yield _succeeds("smoke test", [sys.executable, "-m", "scripts.smoke"])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--since", default="HEAD", help="commit to compare with (HEAD)")
    parser.add_argument("--seconds", type=float, default=60.0, help="time of the tests (60)")
    options = parser.parse_args(arguments)
    files = changed_files(options.since)
    if not files:
        print(f"nothing differs from {options.since}; name another commit with SINCE=")
        return 0
    results = list(_checks(files, budget_s=options.seconds))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
