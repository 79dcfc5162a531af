"""A node's control groups: the one thing that the kernel does not remove with its processes."""

import contextlib
import itertools
import os
from pathlib import Path

from sandbox.guard import start_time_ticks
from sandbox.node.machine import cgroup_hierarchies

_PREFIX = "regent-node"
# A group weighs as much as a single process outside, unless it is told otherwise; this one holds
# all pods, and others' tests may run beside it. One process is 1024 shares, or a weight of 100.
_WEIGHTS = {"cpu.shares": "10240", "cpu.weight": "1000"}
_numbers = itertools.count(1)


def make_cgroup() -> str:
    """The name of a new, empty control group in every hierarchy.

    Those of nodes whose owners have ended without removing them are removed.
    """
    for hierarchy in cgroup_hierarchies():
        for path in hierarchy.glob(f"{_PREFIX}-*"):
            if not _has_owner(path.name):
                _remove(path)
    name = f"{_PREFIX}-{os.getpid()}-{start_time_ticks(os.getpid())}-{next(_numbers)}"
    for hierarchy in cgroup_hierarchies():
        (hierarchy / name).mkdir()
        for file, weight in _WEIGHTS.items():
            if (hierarchy / name / file).exists():
                (hierarchy / name / file).write_text(weight)
    return name


def remove_cgroup(name: str) -> None:
    """Remove it with all that is in it; no process may be left there."""
    for hierarchy in cgroup_hierarchies():
        _remove(hierarchy / name)


def _has_owner(name: str) -> bool:
    _, _, rest = name.partition(f"{_PREFIX}-")
    pid, ticks, _ = rest.split("-")
    return start_time_ticks(int(pid)) == int(ticks)


def _remove(top: Path) -> None:
    for directory, _, _ in os.walk(top, topdown=False):
        # a process that is being killed may still be in it: the next node removes it then
        with contextlib.suppress(OSError):
            Path(directory).rmdir()
