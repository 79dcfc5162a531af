"""Where compiled functions are kept."""

from __future__ import annotations

from pathlib import Path

from regent_rebalance import jit


def test_each_state_of_the_modules_has_a_folder_of_its_own(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    inlined = package / "inlined.py"
    inlined.write_text("one")
    (package / "caller.py").write_text("calls")
    first = jit.cache_folder(package, "")
    assert Path(first).parent == package / "__pycache__"
    assert Path(first).is_dir()
    inlined.write_text("two")
    second = jit.cache_folder(package, "")
    assert second != first
    inlined.write_text("one")
    assert jit.cache_folder(package, "") == first
    configured = tmp_path / "configured"
    assert Path(jit.cache_folder(package, str(configured))).parent == configured


def test_where_no_folder_can_be_made_numba_looks_for_one(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").write_text("no folder")
    assert jit.cache_folder(tmp_path, "") == ""
