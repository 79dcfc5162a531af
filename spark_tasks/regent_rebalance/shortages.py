"""What the machine lacks, as one message without a traceback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Final

from regent_rebalance.standard_streams import lacks_room

STATUS: Final = 8
"""Exit status where memory is lacking, or room for what is printed. It is no input that cannot be:
the same may be done where there is more."""


@contextlib.contextmanager
def shortages_named() -> Iterator[None]:
    """Say what is lacking, and end the process with :data:`STATUS`."""
    try:
        yield
    except MemoryError as error:
        detail = str(error)
        _end(f"there is not enough memory{': ' if detail else ''}{detail}. Give it more")
    except OSError as error:
        if not lacks_room(error):
            raise
        what = "the output" if error.filename is None else error.filename
        _end(f"{what} cannot be written: {error.strerror}. Make room, or write it elsewhere")


def _end(message: str) -> None:
    sys.stderr.write(f"Error: {message}\n")
    sys.exit(STATUS)
