"""How the suite runs on several workers: who runs what, and what reaches the end of the run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.distribution import next_file

ROOT = Path(__file__).parents[2]

KUBE_A, KUBE_B = "tests/kube/test_a.py", "tests/kube/test_b.py"
ZOOKEEPER = "tests/zookeeper/test_a.py"
UNIT_A, UNIT_B = "tests/unit/test_a.py", "tests/unit/test_b.py"

WAITING = {KUBE_A: 10.0, KUBE_B: 50.0, ZOOKEEPER: 55.0, UNIT_A: 1.0, UNIT_B: 2.0}


def next_of(*files: str, servers: bool, last: str | None = None, begun: Sequence[str] = ()) -> str:
    waiting = {file: WAITING[file] for file in files or WAITING}
    return next_file(waiting, prefers_servers=servers, last_file=last, begun=begun)


def test_worker_begins_with_the_longest_folder_that_is_not_begun() -> None:
    assert next_of(servers=True) == KUBE_B
    assert next_of(servers=True, begun=["tests/kube"]) == ZOOKEEPER


def test_worker_stays_in_its_folder_and_takes_the_longest_file() -> None:
    assert next_of(servers=True, last="tests/kube/test_c.py", begun=["tests/kube"]) == KUBE_B


def test_worker_without_a_folder_helps_where_most_is_left_when_all_are_begun() -> None:
    begun = ["tests/kube", "tests/zookeeper"]
    assert next_of(KUBE_A, KUBE_B, ZOOKEEPER, servers=True, begun=begun) == KUBE_B


def test_worker_takes_the_longest_file_without_servers() -> None:
    assert next_of(servers=False) == UNIT_B


def test_worker_helps_with_the_other_sort_when_its_own_is_done() -> None:
    assert next_of(UNIT_A, UNIT_B, servers=True, last=KUBE_A) == UNIT_B
    assert next_of(KUBE_A, KUBE_B, ZOOKEEPER, servers=False, last=UNIT_A) == KUBE_B


ORDERED = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_something(number):
    with Path({log!r}).open("a") as log:
        log.write("{name} ")
"""


def test_workers_run_the_longest_file_first_whatever_its_number_of_tests(tmp_path: Path) -> None:
    log = tmp_path / "log"
    seconds = {"one": 5.0, "two": 9.0, "three": 7.0}
    for tests, name in enumerate(seconds, start=1):
        source = ORDERED.format(tests=tests, log=str(log), name=name)
        (tmp_path / f"test_{name}.py").write_text(source)
    table = tmp_path / "durations.json"
    table.write_text(json.dumps({f"test_{name}.py": took for name, took in seconds.items()}))
    run_pytest(tmp_path, "-n", "1", f"--durations-table={table}")
    assert list(dict.fromkeys(log.read_text().split())) == ["two", "three", "one"]


MEASURING = """
import pytest

@pytest.mark.parametrize("number", [2, 3])
def test_something(figure, number):
    figure("squared", number ** 2)
"""


def test_figures_and_durations_of_all_workers_reach_the_end_of_the_run(tmp_path: Path) -> None:
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(MEASURING)
    table = tmp_path / "durations.json"
    table.write_text(json.dumps({"tests/conftest.py": 4.0, "tests/removed.py": 5.0}))
    printed = run_pytest(tmp_path, "-n", "2", "--write-durations", f"--durations-table={table}")
    _, _, summary = printed.partition("measured")
    figures = ["test_something[2]: squared: 4", "test_something[3]: squared: 9"]
    assert sorted(line for line in summary.splitlines() if "squared" in line) == sorted(2 * figures)
    assert sorted(json.loads(table.read_text())) == [
        "test_one.py",
        "test_two.py",
        "tests/conftest.py",
    ]


def run_pytest(folder: Path, *options: str) -> str:
    """Run the tests of a folder with the plugins that serve workers; return what is printed."""
    plugins = ["-p", "no:cacheprovider", "-p", "tests.support.distribution"]
    plugins += ["-p", "tests.support.figures"]
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *plugins, "--rootdir", folder, folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout
