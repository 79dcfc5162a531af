"""Directories for the data and logs of servers, gone with the sandbox unless they are kept."""

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from sandbox.errors import naming_the_folder
from sandbox.guard import guard

PARENT_VARIABLE = "REGENT_SANDBOX_STATE"


class StateDirectory:
    """A directory that is removed on `close`, and by the guard when its owner gets killed.

    A path given by the caller is the caller's: it is created when missing and never removed.
    Otherwise a new directory is made below `$REGENT_SANDBOX_STATE`, or the system's folder for
    temporary files.
    """

    def __init__(self, name: str, *, path: Path | None = None, keep: bool = False) -> None:
        self.keep = keep or path is not None
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
            self.path = path.resolve()
            return
        parent = Path(os.environ.get(PARENT_VARIABLE) or tempfile.gettempdir())
        prefix = f"regent-sandbox-{name}-"
        with naming_the_folder(parent, variable=PARENT_VARIABLE):
            parent.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent)).resolve()
        if not self.keep:
            guard().add_directory(self.path)

    def subdirectory(self, name: str) -> Path:
        """A directory inside, created when missing."""
        path = self.path / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def close(self) -> None:
        """Remove the directory unless it is to be kept; twice is harmless."""
        if self.keep:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        guard().forget_directory(self.path)

    def __enter__(self) -> "StateDirectory":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
