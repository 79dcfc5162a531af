"""Whether this machine can run containers; if not, a sentence says why."""

import functools
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

_PROGRAMS = {
    "apt-get": "Debian's or Ubuntu's package manager",
    "dpkg": "Debian's or Ubuntu's package manager",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "ip": "iproute2",
    "perl": "Perl, which mmdebstrap is written in",
}
_UNSHARE = ("unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--mount-proc")
_PROBE = """\
set -e
mkdir "$1/lower" "$1/upper" "$1/work" "$1/merged"
mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" "$1/merged"
ip link add probe type bridge
ip link add probe0 type veth peer name probe1
"""


@functools.cache
def obstacle() -> str | None:
    """Why no node can run on this machine; None if one can."""
    if platform.machine() != "x86_64":
        return f"the images are built for x86_64, and this is {platform.machine()}"
    if os.geteuid() != 0:
        return "a node needs root: it mounts file systems and makes namespaces"
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        listed = ", ".join(f"{name} ({_PROGRAMS[name]})" for name in missing)
        return f"not found on this machine: {listed}"
    if not cgroup_hierarchies():
        return "no control groups are mounted below /sys/fs/cgroup"
    return _refusal()


def cgroup_hierarchies() -> list[Path]:
    """Where directories of control groups are made: one place (version 2), or one for each
    controller (version 1)."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return [root]
    return sorted(path.parent for path in root.glob("*/cgroup.procs"))


def _refusal() -> str | None:
    """What the kernel says when it is asked for all that a node needs."""
    with tempfile.TemporaryDirectory(prefix="regent-sandbox-probe-") as directory:
        outcome = subprocess.run(
            [*_UNSHARE, "sh", "-c", _PROBE, "sh", directory],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    if outcome.returncode != 0:
        said = " ".join(outcome.stderr.split()) or f"exit status {outcome.returncode}"
        return f"this machine does not let a node be made: {said}"
    return None
