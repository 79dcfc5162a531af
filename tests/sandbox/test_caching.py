"""Cache entries: complete or absent, made once however many want them."""

import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.caching import DIRECTORY_VARIABLE, cached, find_entry
from sandbox.errors import FolderError
from sandbox.state import PARENT_VARIABLE, StateDirectory

REPOSITORY = Path(__file__).parents[2]

MAKE_SLOWLY = """
import time
from pathlib import Path
from sandbox.caching import cache_directory, cached

def make(directory):
    with (cache_directory() / "made").open("a") as file:
        file.write("x")
    time.sleep(0.3)
    (directory / "file").write_text("content")

print((cached("things/one", make) / "file").read_text())
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))


def test_processes_that_want_the_same_entry_make_it_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE_SLOWLY], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [process.communicate()[0] for process in processes] == ["content\n"] * 2
    assert (tmp_path / "made").read_text() == "x"


def test_a_failure_leaves_nothing_and_the_next_try_makes_it(tmp_path: Path) -> None:
    def fail(directory: Path) -> None:
        (directory / "half").touch()
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        cached("things/one", fail)
    assert find_entry("things/one") is None
    assert [path for path in (tmp_path / "things").iterdir() if path.is_dir()] == []

    path = cached("things/one", lambda directory: (directory / "whole").touch())
    assert find_entry("things/one") == path
    assert (path / "whole").exists()


def test_folders_that_cannot_be_used_are_named_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for variable in (DIRECTORY_VARIABLE, PARENT_VARIABLE):
        monkeypatch.setenv(variable, str(file / "below"))
    with pytest.raises(FolderError, match=f"below/things cannot be used: .* {DIRECTORY_VARIABLE}"):
        cached("things/one", Path.rmdir)
    with pytest.raises(FolderError, match=f"below cannot be used: .* {PARENT_VARIABLE}"):
        StateDirectory("server")
