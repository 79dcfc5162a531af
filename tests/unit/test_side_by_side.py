"""How the suite runs on several workers: who runs what, and what reaches the end of the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.distribution import next_file

ROOT = Path(__file__).parents[2]

WAITING = ["kube/test_a.py", "kube/test_b.py", "zk/test_a.py", "unit/test_a.py", "unit/test_b.py"]


def test_a_worker_goes_on_in_its_folder() -> None:
    assert next_file(WAITING, last_folder="unit", begun={"unit", "kube"}) == "unit/test_a.py"


def test_a_worker_without_one_begins_the_first_folder_that_nobody_has_begun() -> None:
    assert next_file(WAITING, last_folder=None, begun=()) == "kube/test_a.py"
    assert next_file(WAITING, last_folder="done", begun={"done", "kube"}) == "zk/test_a.py"


def test_with_all_begun_a_worker_helps_where_most_is_left() -> None:
    begun = {"done", "kube", "zk", "unit"}
    assert next_file(WAITING[1:], last_folder="done", begun=begun) == "unit/test_a.py"


MEASURING = """
import pytest

@pytest.mark.parametrize("number", [2, 3])
def test_something(figure, number):
    figure("squared", number ** 2)
"""


def test_figures_of_all_workers_are_printed_together_at_the_end(tmp_path: Path) -> None:
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(MEASURING)
    plugins = ["-p", "no:cacheprovider", "-p", "tests.support.distribution"]
    plugins += ["-p", "tests.support.figures"]
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", *plugins, "--rootdir", tmp_path, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    _, _, summary = outcome.stdout.partition("measured")
    figures = ["test_something[2]: squared: 4", "test_something[3]: squared: 9"]
    assert sorted(line for line in summary.splitlines() if "squared" in line) == sorted(2 * figures)
