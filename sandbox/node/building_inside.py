"""A step of an image's building that runs in the image, as RUN does in a Dockerfile."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from sandbox.progress import run_step

# $1: layers, $2: content, $3: what the kernel needs beside it, $4: where both are seen together
_ENTER = """\
set -e
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" "$4"
mount --rbind /dev "$4/dev"
mount -t proc proc "$4/proc"
root=$4
shift 4
exec chroot "$root" "$@"
"""
_UNSHARE = ("unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork")


def run_inside(
    what: str,
    layers: Sequence[Path],
    content: Path,
    command: Sequence[str],
    *,
    variables: Sequence[str],
    typically: str,
) -> None:
    """Run a command as root in the files of layers, with those of `content` over them. What it
    writes is in `content` afterwards. It has no network.

    Args:
        what: For people.
        variables: All that it has, as NAME=VALUE.
        typically: How long it takes, for people.

    Raises:
        StepError: it failed.
    """
    # an overlay wants them on one file system
    with tempfile.TemporaryDirectory(prefix=".inside-", dir=content.parent) as directory:
        folders = [Path(directory) / name for name in ("layers", "work", "merged")]
        for folder in folders:
            folder.mkdir()
        below, work, merged = folders
        for layer in layers:
            run_step(f"unpacking {layer.parent.name}", ["tar", "-xf", layer], directory=below)
        run_step(
            what,
            [
                *(*_UNSHARE, "--kill-child", "sh", "-c", _ENTER, "sh"),
                *(below, content, work, merged),
                *("/usr/bin/env", "--ignore-environment", *variables, *command),
            ],
            directory=content.parent,
            typically=typically,
        )
