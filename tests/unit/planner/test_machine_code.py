"""Where compiled functions are kept."""

from __future__ import annotations

from pathlib import Path

from regent_rebalance.machine_code import machine_code_folder


def test_each_state_of_the_modules_has_a_folder_of_its_own(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    inlined = package / "inlined.py"
    inlined.write_text("one")
    (package / "caller.py").write_text("calls")
    first = machine_code_folder("", package=package)
    assert Path(first).parent == package / "__pycache__"
    assert Path(first).is_dir()
    inlined.write_text("two")
    second = machine_code_folder("", package=package)
    assert second != first
    inlined.write_text("one")
    assert machine_code_folder("", package=package) == first
    configured = tmp_path / "configured"
    assert Path(machine_code_folder(str(configured), package=package)).parent == configured


def test_where_no_folder_can_be_made_numba_looks_for_one(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").write_text("no folder")
    assert machine_code_folder("", package=tmp_path) == ""
