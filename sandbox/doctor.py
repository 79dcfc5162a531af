"""What this machine has of what the sandbox needs."""

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sandbox.caching import cache_directory
from sandbox.kafka_jars import TESTED_VERSIONS, find_kafka_jars
from sandbox.kubernetes_binaries import find_kubernetes_binaries, find_node_binaries
from sandbox.node.machine import obstacle
from sandbox.ports import port_range
from sandbox.programs import ALL_PROGRAMS, find

MEMORY_MIN_MB = 2500
OPEN_FILES_MIN = 4096

_GOOD, _TO_DO, _BAD = "[green]ok[/]", "[yellow]not yet[/]", "[red]lacking[/]"


def report() -> bool:
    """Print a table of everything needed; False when something has to be installed."""
    table = Table(box=None, pad_edge=False)
    for heading in ("", "what", "details"):
        table.add_column(heading, overflow="fold")
    findings = [find(program) for program in ALL_PROGRAMS]
    for finding in findings:
        state = _GOOD if finding.is_usable else _BAD
        table.add_row(state, finding.program.name, finding.explanation)
    table.add_row("", "cache", str(cache_directory()))
    for version in TESTED_VERSIONS:
        jars = find_kafka_jars(version)
        details = f"python -m sandbox build --kafka {version}" if jars is None else "in the cache"
        table.add_row(_TO_DO if jars is None else _GOOD, f"Kafka {version}", details)
    binaries = find_kubernetes_binaries()
    details = "python -m sandbox build --kubernetes" if binaries is None else "in the cache"
    table.add_row(_TO_DO if binaries is None else _GOOD, "Kubernetes", details)
    _add_node(table)
    enough = _add_machine(table)
    Console().print(table)
    return enough and all(finding.is_usable for finding in findings)


def _add_node(table: Table) -> None:
    """The rows about a node. Nothing else needs one, so none of them is lacking."""
    reason = obstacle()
    table.add_row(_GOOD if reason is None else "[yellow]no[/]", "a node", reason or "can be made")
    if reason is None:
        binaries = find_node_binaries()
        details = "python -m sandbox build --node" if binaries is None else "in the cache"
        table.add_row(_TO_DO if binaries is None else _GOOD, "a node's programs", details)


def _add_machine(table: Table) -> bool:
    """The rows about memory, open files and ports; False when there is not enough."""
    ports = port_range()
    table.add_row("", "ports", f"{ports.start}..{ports.stop - 1}")
    memory_mb = _available_memory_mb()
    memory_enough = memory_mb >= MEMORY_MIN_MB
    table.add_row(
        _GOOD if memory_enough else _BAD,
        "memory",
        f"{memory_mb} MB available, {MEMORY_MIN_MB} MB for `up` with three brokers",
    )
    files = os.sysconf("SC_OPEN_MAX")
    files_enough = files >= OPEN_FILES_MIN
    table.add_row(
        _GOOD if files_enough else _BAD,
        "open files",
        f"{files} per process, {OPEN_FILES_MIN} needed: ulimit -n {OPEN_FILES_MIN}",
    )
    return memory_enough and files_enough


def _available_memory_mb() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0
