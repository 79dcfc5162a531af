"""The folder with compiled code: whatever is wrong with it, functions are compiled anew."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.process import Outcome, run_guarded

ROOT = Path(__file__).parents[3]

PROGRAM = """
from regent_rebalance.jit import compiled

@compiled
def double(number):
    return 2 * number

print(double(21))
"""

COMPILES_MORE = """
import sys

double = __import__("double").double
from regent_rebalance.jit import compiled

COMPILING = "numba.core.boxing"
print(COMPILING in sys.modules)

@compiled
def broken(number):
    return double(number) // 0

try:
    broken(21)
except ZeroDivisionError:
    print(COMPILING in sys.modules)
"""
"""It loads one function and compiles one that calls it."""


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with a compiled function, and beside it the folder with its code."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "double.py").write_text(PROGRAM)
    assert run(folder / "double.py", folder / "code").stderr == ""
    return folder


@pytest.fixture
def code(compiled_once: Path, tmp_path: Path) -> Path:
    return shutil.copytree(compiled_once / "code", tmp_path / "code")


@pytest.fixture
def double(compiled_once: Path, code: Path) -> Callable[[], Outcome]:
    return lambda: run(compiled_once / "double.py", code)


def run(program: Path, code: Path) -> Outcome:
    environment = {"PYTHONPATH": str(ROOT / "spark_tasks"), "NUMBA_CACHE_DIR": str(code)}
    return run_guarded([sys.executable, program], environment=environment, timeout_s=120)


def _tear(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _empty(file: Path) -> None:
    os.truncate(file, 0)


def _fill_with_noise(file: Path) -> None:
    file.write_bytes(b"\x93noise" * 100)


def _replace_by_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("suffix", "damage"), [("nbi", _fill_with_noise), ("nbi", _empty), ("nbc", _tear)]
)
def test_a_damaged_file_is_replaced(
    code: Path, double: Callable[[], Outcome], damage: Callable[[Path], None], suffix: str
) -> None:
    files = list(code.rglob(f"*.{suffix}"))
    assert files
    for file in files:
        damage(file)
    done = double()
    assert (done.exit_code, done.stdout) == (0, "42\n"), done
    assert "it is compiled anew" in done.stderr
    again = double()
    assert (again.stdout, again.stderr) == ("42\n", "")


def test_what_cannot_be_replaced_is_done_without(code: Path, double: Callable[[], Outcome]) -> None:
    for file in code.rglob("*.nbi"):
        _replace_by_a_folder(file)
    for _ in range(2):
        done = double()
        assert (done.exit_code, done.stdout) == (0, "42\n"), done
        assert "it is compiled anew" in done.stderr


def test_what_compiling_needs_is_loaded_when_something_is_compiled(
    compiled_once: Path, code: Path
) -> None:
    program = compiled_once / "more.py"
    program.write_text(COMPILES_MORE)
    assert run(program, code).stdout == "42\nFalse\nTrue\n"
    assert run(program, code).stdout == "42\nFalse\nFalse\n"
