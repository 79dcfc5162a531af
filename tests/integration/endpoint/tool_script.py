"""Calls of Kafka's command line tools, all in one process of Java."""

from __future__ import annotations

import base64
import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sandbox import KafkaTools
from sandbox.java import compiled_program
from sandbox.kafka_jars import kafka_jars

JAVA = Path(__file__).parents[2] / "java"


class Call(NamedTuple):
    """One call.

    Attributes:
        tool: Name of the script.
        arguments: Without the address.
    """

    tool: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.tool, *self.arguments))


class Printed(NamedTuple):
    """What a call has printed, without what is different each time."""

    exit_code: int
    lines: tuple[str, ...]


class ToolRunner:
    """Runs tools of one release against one address."""

    def __init__(self, process: subprocess.Popen[str], tools: KafkaTools) -> None:
        self._process = process
        self._tools = tools

    def run(self, call: Call) -> Printed:
        """Run a tool to its end."""
        words = [
            self._tools.main_class(call.tool),
            f"--bootstrap-server={self._tools.bootstrap_servers}",
            *call.arguments,
        ]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(" ".join(map(_encoded, words)), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer.endswith(".\n"), f"{call}: the process has ended: {answer!r}"
        status, text = answer.removesuffix(".\n").split(" ")
        lines = base64.b64decode(text).decode().splitlines()
        return Printed(int(status), tuple(line.rstrip() for line in lines))


@contextlib.contextmanager
def tool_runner(tools: KafkaTools) -> Iterator[ToolRunner]:
    """A process that runs tools."""
    program = compiled_program(
        kafka_jars(tools.version), JAVA / "Tools.java", heap_mb=512, log_level="OFF"
    )
    with program as command:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            yield ToolRunner(process, tools)
        finally:
            process.kill()
            process.communicate()


def _encoded(word: str) -> str:
    return base64.b64encode(word.encode()).decode() or "-"


def calls(text: str) -> Sequence[Call]:
    """Calls from lines such as ``topics --list``; what begins with # is none."""
    found = []
    for line in text.strip().splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            found.append(Call(f"kafka-{words[0]}", tuple(w.replace("%20", " ") for w in words[1:])))
    return found
