"""Which of pytest-xdist's workers runs which tests (``make test``, ``pytest -n 4``).

A worker takes the tests of one file at a time. Half of the workers begin with files that need
servers, the others with files that do not, so that servers are spread over the whole run and the
processors stay busy while servers start. A worker without files of its own sort helps with the
other sort.

Files that need servers are taken folder by folder: a worker stays in its folder, so that few
workers start the servers of a folder (``scope="package"``). In both sorts the longest files come
first, by the durations of an earlier run (``tests/durations.json``), which ``--write-durations``
measures anew. Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

ROOT: Final = Path(__file__).parents[2]

_WITHOUT_SERVERS: Final = ("tests/unit/", "tests/simulation/")
_UNKNOWN_S: Final = 30.0
"""Seconds that a file without an entry is taken to need."""


class FolderScheduling(LoadFileScheduling):
    """xdist's ``--dist loadfile`` with another choice of the next file, by seconds a file."""

    def __init__(
        self, config: pytest.Config, log: Producer | None, durations: Mapping[str, float]
    ) -> None:
        super().__init__(config, log)
        self._durations = durations

    def _assign_work_unit(self, node: WorkerController) -> None:
        mine = list(self.assigned_work.get(node, {}))
        begun = {_folder(file) for files in self.assigned_work.values() for file in files}
        chosen = next_file(
            {file: self._durations.get(file, _UNKNOWN_S) for file in self.workqueue},
            prefers_servers=_number(node.gateway.id) % 2 == 0,
            last_file=mine[-1] if mine else None,
            begun=begun,
        )
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        # A worker needs to know the next test before it runs one. xdist hands out the next file
        # when two tests are left, so that file would wait for both, which can take minutes.
        if self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)


def next_file(
    waiting: Mapping[str, float],
    *,
    prefers_servers: bool,
    last_file: str | None,
    begun: Collection[str],
) -> str:
    """Return the file that a worker takes next.

    Args:
        waiting: Files that no worker has taken yet, with their seconds; at least one.
        prefers_servers: Whether the worker takes files that need servers before the others.
        last_file: The file that the worker took last, None for its first.
        begun: Folders of which any worker has taken a file.
    """
    preferred = [file for file in waiting if needs_servers(file) == prefers_servers]
    files = preferred or list(waiting)
    if needs_servers(files[0]):
        files = _of_one_folder(files, waiting, last_file=last_file, begun=begun)
    return max(files, key=waiting.__getitem__)


def _of_one_folder(
    files: Iterable[str],
    waiting: Mapping[str, float],
    *,
    last_file: str | None,
    begun: Collection[str],
) -> list[str]:
    folders: dict[str, list[str]] = defaultdict(list)
    for file in files:
        folders[_folder(file)].append(file)
    if last_file is not None and _folder(last_file) in folders:
        return folders[_folder(last_file)]
    fresh = {name: inside for name, inside in folders.items() if name not in begun}
    return max((fresh or folders).values(), key=lambda inside: sum(waiting[f] for f in inside))


def needs_servers(file: str) -> bool:
    """Whether tests of a file start servers or programs that occupy a processor by themselves."""
    return not file.startswith(_WITHOUT_SERVERS)


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def _number(worker: str) -> int:
    """Return N of xdist's name ``gwN`` for a worker."""
    return int(worker.removeprefix("gw"))


class DurationsWriter:
    """Adds up what the tests of each file have taken, and writes it at the end of the run."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        known = read_durations(self._table)
        kept = {file: seconds for file, seconds in known.items() if (ROOT / file).exists()}
        measured = {file: round(seconds, 1) for file, seconds in self._seconds.items()}
        text = json.dumps({**kept, **measured}, indent=0, sort_keys=True)
        self._table.write_text(text + "\n", encoding="utf-8")


def read_durations(table: Path) -> dict[str, float]:
    """Return the seconds of each file in an earlier run; empty if none was measured."""
    if not table.exists():
        return {}
    known: dict[str, float] = json.loads(table.read_text(encoding="utf-8"))
    return known


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--durations-table",
        type=Path,
        default=ROOT / "tests" / "durations.json",
        help="the seconds of each file in an earlier run",
    )
    parser.addoption(
        "--write-durations",
        action="store_true",
        help="measure the tests that run, and write their table of durations",
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(DurationsWriter(config.getoption("--durations-table")))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling | None:
    """Serve ``-n`` alone; another ``--dist`` keeps its own order."""
    if config.getoption("dist") != "load":
        return None
    return FolderScheduling(config, log, read_durations(config.getoption("--durations-table")))
