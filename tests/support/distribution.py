"""Which of pytest-xdist's workers runs which tests (``make test``, ``pytest -n 4``).

A worker takes the tests of one file at a time, and goes on with files of the same folder as long
as there are any: servers that last for a folder are then started by few workers. Folders that
nobody has begun are taken in order; once there are none, a worker helps with the folder that has
most files left. Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class FolderScheduling(LoadFileScheduling):
    """xdist's ``--dist loadfile`` with another choice of the next file."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        mine = [_folder(file) for file in self.assigned_work.get(node, {})]
        begun = {_folder(file) for files in self.assigned_work.values() for file in files}
        chosen = next_file(self.workqueue, last_folder=mine[-1] if mine else None, begun=begun)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


def next_file(waiting: Iterable[str], *, last_folder: str | None, begun: Iterable[str]) -> str:
    """The file that a worker takes next.

    Args:
        waiting: Files that no worker has taken yet, in order; at least one.
        last_folder: Where the worker's last file is from; None if it has had none.
        begun: Folders that any worker has had a file of.
    """
    files = list(waiting)
    folders = Counter(map(_folder, files))
    taken = set(begun)
    if last_folder in folders:
        folder = last_folder
    else:
        fresh = [name for name in folders if name not in taken]
        folder = fresh[0] if fresh else max(folders, key=folders.__getitem__)
    return next(file for file in files if _folder(file) == folder)


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling | None:
    """Serve ``-n`` alone; whoever passes ``--dist`` gets what they ask for."""
    return FolderScheduling(config, log) if config.getoption("dist") == "load" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what waits for servers, so that the rest fills the processors meanwhile."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("integration") is None)
