"""Standard streams that are not there (``>&-``), or have no room for what is printed."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Final

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STREAMS = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


def open_missing_streams() -> None:
    """Let streams that are not there lead nowhere, and take their numbers: a socket that got one
    would be taken for the stream by whatever is written to it."""
    for number, name, mode in _STREAMS:
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number and not _is_taken(number):
                os.dup2(descriptor, number)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def lacks_room(error: OSError) -> bool:
    """Whether an error is for want of room. Then the standard output is given up: what is left in
    its buffer would fail once more at the end."""
    if error.errno not in _NO_ROOM:
        return False
    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    return True


def _is_taken(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
