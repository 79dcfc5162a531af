"""Calls of Kafka's command line tools, all in one process of Java."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sandbox import KafkaTools
from sandbox.kafka_jars import kafka_jars
from sandbox.resident_tools import ResidentTools
from sandbox.tools import TOOL_TIMEOUT_S


class Call(NamedTuple):
    """A script of Kafka's, and its arguments without the address."""

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

    def __init__(self, resident: ResidentTools, tools: KafkaTools) -> None:
        self._resident = resident
        self._tools = tools

    def run(self, call: Call) -> Printed:
        """Run a tool to its end."""
        address = f"--bootstrap-server={self._tools.bootstrap_servers}"
        outcome = self._resident.run(
            self._tools.main_class(call.tool),
            [address, *call.arguments],
            stdin="",
            timeout_s=TOOL_TIMEOUT_S,
        )
        assert outcome is not None, "another thread runs a tool"
        lines = outcome.stdout.splitlines()
        return Printed(outcome.exit_code, tuple(line.rstrip() for line in lines))


@contextlib.contextmanager
def tool_runner(tools: KafkaTools) -> Iterator[ToolRunner]:
    """A process that runs tools."""
    resident = ResidentTools(kafka_jars(tools.version))
    try:
        yield ToolRunner(resident, tools)
    finally:
        resident.close()


def calls(text: str) -> Sequence[Call]:
    """Calls from lines such as ``topics --list``; what begins with # is none."""
    found = []
    for line in text.strip().splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            found.append(Call(f"kafka-{words[0]}", tuple(w.replace("%20", " ") for w in words[1:])))
    return found
