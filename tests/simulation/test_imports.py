"""Each module of the simulation can be the first one that is imported: there is no circle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
_IMPORT_EACH_ANEW = """
import importlib, sys
for name in sys.argv[1:]:
    for loaded in [each for each in sys.modules if each.startswith("tests.simulation")]:
        del sys.modules[loaded]
    importlib.import_module(name)
"""


def test_each_module_can_be_imported_first() -> None:
    paths = sorted(HERE.rglob("*.py"))
    names = [
        ".".join(("tests.simulation", *path.relative_to(HERE).with_suffix("").parts))
        for path in paths
        if not path.stem.startswith(("__", "test_"))
    ]
    assert "tests.simulation.checkers.safety" in names
    command = [sys.executable, "-c", _IMPORT_EACH_ANEW, *names]
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
