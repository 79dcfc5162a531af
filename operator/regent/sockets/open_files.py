"""How many files, sockets among them, the process may have open."""

from __future__ import annotations

import contextlib
import resource


def allow_open_files() -> None:
    """Raise the limit of open files as far as the process may, as the JVM does for brokers.

    A pod cannot set it. Nodes often have a low one that holds unless a process asks for more: with
    1,024 there would be room for a few hundred brokers and clients.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # It may be refused where the hard limit is above what the system lets any process have.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
