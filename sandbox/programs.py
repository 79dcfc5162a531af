"""Programs of the machine that the sandbox needs: are they there, and new enough.

Checked before they are used, so that a missing compiler is one clear sentence and not an
exception out of the middle of a build.
"""

import functools
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import MissingProgramError

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A program, the oldest version that serves, what it is for, and how to get it."""

    name: str
    version_min: Version
    version_arguments: tuple[str, ...]
    version_pattern: str
    needed_for: str
    how_to_get: str


JAVA = Program(
    name="java",
    version_min=(17,),
    version_arguments=("-version",),
    version_pattern=r'version "(\d+(?:\.\d+)*)',
    needed_for="ZooKeeper, Kafka brokers and Kafka's tools",
    how_to_get="a Java runtime: Debian/Ubuntu `apt-get install openjdk-17-jre-headless`",
)
MAVEN = Program(
    name="mvn",
    version_min=(3, 6),
    version_arguments=("-version",),
    version_pattern=r"Apache Maven (\d+(?:\.\d+)*)",
    needed_for="fetching the jars of Kafka and ZooKeeper",
    how_to_get="Apache Maven: Debian/Ubuntu `apt-get install maven`",
)
GO = Program(
    name="go",
    version_min=(1, 24, 1),
    version_arguments=("version",),
    version_pattern=r"go(\d+(?:\.\d+)+)",
    needed_for="building etcd, kube-apiserver, kubectl and helm",
    how_to_get="the Go toolchain: a package of your system, or the Go project's own release",
)
ALL_PROGRAMS = (JAVA, MAVEN, GO)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one program."""

    program: Program
    path: Path | None
    version: Version | None

    @property
    def is_usable(self) -> bool:
        return self.version is not None and self.version >= self.program.version_min

    @property
    def explanation(self) -> str:
        """One sentence: what there is, what is needed, and how to get it."""
        program = self.program
        if self.path is None:
            found = "not found"
        elif self.version is None:
            found = f"{self.path} does not tell its version"
        else:
            found = f"{_dotted(self.version)} at {self.path}"
        sentence = f"{program.name}: {found}"
        if not self.is_usable:
            sentence += (
                f"; {_dotted(program.version_min)} or newer is needed for {program.needed_for}. "
                f"Get {program.how_to_get}."
            )
        return sentence


@functools.cache
def find(program: Program) -> Finding:
    """Look a program up on the PATH and ask it for its version."""
    location = shutil.which(program.name)
    if location is None:
        return Finding(program, None, None)
    try:
        answer = subprocess.run(
            [location, *program.version_arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Finding(program, Path(location), None)
    match = re.search(program.version_pattern, answer.stdout + answer.stderr)
    version = tuple(int(part) for part in match[1].split(".")) if match else None
    return Finding(program, Path(location), version)


def require(*programs: Program) -> None:
    """Make sure that the programs are there and new enough.

    Raises:
        MissingProgramError: at least one is not; all of them are named.
    """
    _raise_for(find(program) for program in programs)


def _raise_for(findings: Iterable[Finding]) -> None:
    problems = [finding.explanation for finding in findings if not finding.is_usable]
    if problems:
        raise MissingProgramError("\n".join(problems))


def _dotted(version: Version) -> str:
    return ".".join(str(part) for part in version)
