"""What can go wrong for reasons outside the program; every message is meant for a person.

SandboxError(Exception)
├── MissingProgramError             a program of the machine is absent or too old
├── MachineError                    the machine does not allow what a node needs
├── FolderError                     a folder for files cannot be used
├── StepError                       a download or a build failed
├── VersionError(ValueError)        no Kafka version, or one that cannot be used here
├── UnknownToolError(LookupError)   this Kafka version has no such tool
├── ToolError                       one of Kafka's tools ended with an error
├── CommandError                    kubectl or helm ended with an error
├── NoFreePortError                 every port of the range is taken
└── WaitError(AssertionError)       something awaited did not happen
    ├── WaitTimeoutError            the deadline passed
    └── ProcessDiedError            a watched program ended while being waited for
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path


class SandboxError(Exception):
    """Base of all of them; the message says what happened and carries what the program said."""


class MissingProgramError(SandboxError):
    """A program is absent or too old; the message says which, what for, and how to get it."""


class MachineError(SandboxError):
    """The machine does not allow what a node needs; the message says what is in the way."""


class FolderError(SandboxError):
    """A folder for files cannot be used; the message says why, and how to name another one."""


class StepError(SandboxError):
    """A step of preparing the sandbox failed; the message carries the command's last output."""


class VersionError(SandboxError, ValueError):
    """Not a Kafka version, or one that cannot be used here."""


class UnknownToolError(SandboxError, LookupError):
    """The Kafka version has no such tool."""


class ToolError(SandboxError):
    """One of Kafka's tools ended with an error."""


class CommandError(SandboxError):
    """kubectl or helm ended with an error."""


class NoFreePortError(SandboxError):
    """Every port of the range is taken."""


class WaitError(SandboxError, AssertionError):
    """Something awaited did not happen; the message is meant to be enough to see why."""


class WaitTimeoutError(WaitError):
    """The deadline passed."""


class ProcessDiedError(WaitError):
    """A watched program ended, so the awaited thing will never happen."""


@contextlib.contextmanager
def naming_the_folder(path: Path, *, variable: str) -> Iterator[None]:
    """Around what makes files in a folder that the environment variable would change.

    Raises:
        FolderError: The machine does not allow it.
    """
    try:
        yield
    except OSError as error:
        raise FolderError(
            f"{path} cannot be used: {error.strerror or error}. Make it writable, with room, or "
            f"name another folder in {variable}"
        ) from error
