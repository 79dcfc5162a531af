"""A cluster of one node: what the machine has to allow, and that nothing of it stays.

What runs on one is tested in `tests/e2e/test_cluster.py`.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import wait_until
from sandbox.errors import MachineError
from sandbox.node.cgroups import make_cgroup, remove_cgroup
from sandbox.node.cluster import NodeCluster
from sandbox.node.machine import cgroup_hierarchies, obstacle
from tests.support.soak import soak

ROOT = Path(__file__).resolve().parents[2]
OWNER = """\
import sys, time
from pathlib import Path
from sandbox.node.cluster import NodeCluster
with NodeCluster() as cluster:
    print(cluster.kubeconfig.parent, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def needs_node() -> None:
    if (reason := obstacle()) is not None:
        pytest.skip(f"no node on this machine: {reason}")


@pytest.fixture
def asked_anew() -> Iterator[None]:
    obstacle.cache_clear()
    yield
    obstacle.cache_clear()


@pytest.mark.usefixtures("asked_anew")
def test_a_machine_that_lacks_programs_is_refused_by_their_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = obstacle()
    assert reason is not None
    assert "nsenter (util-linux)" in reason
    with pytest.raises(MachineError, match="not found on this machine: apt-get"):
        NodeCluster()


@pytest.mark.usefixtures("asked_anew")
def test_users_without_rights_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert obstacle() == "a node needs root: it mounts file systems and makes namespaces"


@pytest.mark.usefixtures("needs_node")
def test_control_groups_without_an_owner_are_removed_by_the_next_node() -> None:
    own = make_cgroup()
    hierarchy = cgroup_hierarchies()[0]
    left = hierarchy / f"regent-node-{os.getpid()}-1-1"  # the same id, started at another time
    (left / "pod").mkdir(parents=True)
    second = make_cgroup()
    try:
        assert not left.exists()
        assert (hierarchy / own).exists()
    finally:
        remove_cgroup(own)
        remove_cgroup(second)
    assert not (hierarchy / own).exists()


@pytest.mark.usefixtures("needs_node")
@soak("sandbox")
@pytest.mark.integration
@pytest.mark.slow
def test_nothing_of_a_node_outlives_its_owner_that_is_killed() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout is not None
        state = owner.stdout.readline().strip()
        assert state
        assert processes_of(state)
    finally:
        owner.kill()
        owner.communicate()
    wait_until(
        lambda: (processes_of(state), Path(state).exists()),
        until=lambda left: left == ([], False),
        describe="all processes and files of the node to be gone",
    )


def processes_of(state: str) -> list[str]:
    """Command lines that name the directory of a node."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = command.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended
            continue
        if state in line:
            found.append(line)
    return found
