"""The report as text for people."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console
from rich.table import Table

from regent.status.cluster import Report

_UNBOUNDED: Final = 100_000
"""Columns of what is no terminal: whoever reads a pipe wants whole lines."""


def print_status(report: Report) -> None:
    """Print to standard output."""
    width = None if sys.stdout.isatty() else _UNBOUNDED
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    for line in (_controller(report), _partitions(report), *_regent(report)):
        console.print(line)
    console.print(_brokers(report))
    for problem in report["problems"]:
        console.print(f"Malformed   {problem}", style="red")


def _controller(report: Report) -> str:
    controller = report["controller"]
    who = {
        "none": "nobody",
        "broker": f"broker {controller['id']}'s own controller",
        "regent": f"Regent ({controller['id']})",
    }[controller["kind"]]
    return f"Controller  {who}, epoch {controller['epoch']}"


def _partitions(report: Report) -> str:
    counts = report["partitions"]
    return (
        f"Partitions  {counts['total']} in {counts['topics']} topics: {counts['online']} online, "
        f"{counts['offline']} offline, {counts['new']} new, "
        f"{counts['underReplicated']} under-replicated"
    )


def _regent(report: Report) -> list[str]:
    regent = report["regent"]
    if regent is None:
        return [f"Regent      {report['regentProblem']} (see --url)"]
    role = "active" if regent["isActive"] else "standby"
    lines = [f"Regent      {regent['controllerId']} ({role})"]
    if regent.get("refusal"):
        lines.append(f"Refusal     it does not take the cluster: {regent['refusal']}")
    queues = ", ".join(f"broker {b}: {n}" for b, n in regent["channelQueueSizes"].items())
    requests = f", requests to {queues}" if queues else ""
    return [*lines, f"Queues      {regent['eventQueueSize']} events{requests}"]


def _brokers(report: Report) -> Table:
    table = Table("Broker", "Epoch", "Rack", "Leads", "Hosts", "Out of sync", "Endpoints")
    for broker in report["brokers"]:
        table.add_row(
            *(str(broker[key]) for key in ("id", "epoch")),
            broker["rack"] or "-",
            *(str(broker[key]) for key in ("leads", "hosts", "outOfSync")),
            " ".join(broker["endpoints"]),
        )
    return table
