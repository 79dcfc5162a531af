"""The report of a flight for people at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.table import Table

from regent.simulation.report import FlightReport, Moment, Partitions
from regent.simulation.restart_order import RestartOrder

_UNBOUNDED: Final = 100_000
"""Columns of what is no terminal: a program that reads a pipe needs whole lines."""


def render_report(report: FlightReport, *, shown: int) -> str:
    """The report for standard output.

    Args:
        shown: Partitions, and brokers, that are named in each place; of more there is the number.
    """
    width = None if sys.stdout.isatty() else _UNBOUNDED
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as captured:
        console.print(
            f"Simulated  {len(report.start.leaders)} living brokers, {report.partitions:,} "
            f"partitions, {report.replicas:,} replicas"
        )
        console.print(_steps(report))
        for moment in report.moments:
            for line in _findings(moment, shown):
                console.print(f"{moment.what}: {line}", style="red", soft_wrap=True)
        console.print(_leaders(report, shown))
        for line in (*_outages(report, shown), *_order(report.order, shown)):
            console.print(line, soft_wrap=True)
        for sentence in report.assumptions:
            console.print(f"Assumed  {sentence}", soft_wrap=True)
    return captured.get()


def _steps(report: FlightReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("STEP")
    for title in (
        "AT",
        "SAFE",
        "NO LEADER",
        "BELOW MIN ISR",
        "UNDER-REPLICATED",
        "LEADERS MOVED",
        "INTERRUPTED",
        "FOR UP TO",
    ):
        table.add_column(title, justify="right")
    for moment in (report.start, *report.moments):
        is_step = moment is not report.start
        table.add_row(
            moment.what,
            _duration(moment.at_s),
            ("yes" if moment.is_safe else "NO") if is_step else "",
            f"{len(moment.leaderless):,}",
            f"{len(moment.below_min_isr):,}",
            f"{moment.under_replicated:,}",
            f"{moment.moved:,}",
            f"{moment.interrupted:,}",
            _duration(moment.interruption_s) if moment.interrupted else "",
            style="red" if is_step and not moment.is_safe else None,
        )
    return table


def _findings(moment: Moment, shown: int) -> Iterator[str]:
    for partitions, what in (
        (moment.lost, "lose their leader"),
        (moment.newly_below_min_isr, "fall below min.insync.replicas: acks=all is refused"),
        (moment.unclean, "are led from outside their ISR: records may be lost"),
    ):
        if partitions:
            yield f"{len(partitions):,} partitions {what} ({_some(partitions, shown)})"


def _leaders(report: FlightReport, shown: int) -> Table:
    """Leaders of each broker at the beginning and the end; those that change most come first."""
    before, after = report.start.leaders, (report.moments or (report.start,))[-1].leaders
    brokers = sorted(
        {**before, **after}, key=lambda i: (-abs(after.get(i, 0) - before.get(i, 0)), i)
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("BROKER", justify="right")
    table.add_column("LEADERS BEFORE", justify="right")
    table.add_column("AFTER", justify="right")
    for broker in brokers[:shown]:
        table.add_row(
            str(broker),
            f"{before[broker]:,}" if broker in before else "dead",
            f"{after[broker]:,}" if broker in after else "dead",
        )
    if len(brokers) > shown:
        table.add_row(f"{len(brokers) - shown:,} more")
    return table


def _outages(report: FlightReport, shown: int) -> Iterator[str]:
    for outage in report.outages[:shown]:
        ending = "" if outage.is_over else ", and still is"
        yield (f"Outage  {outage.partition} was without a leader for "
               f"{_duration(outage.seconds)}{ending}")  # fmt: skip
    if len(report.outages) > shown:
        yield f"Outage  {len(report.outages) - shown:,} more partitions, none of them for longer"


def _order(order: RestartOrder | None, shown: int) -> Iterator[str]:
    if order is None:
        return
    how = (
        "no order brings more back earlier" if order.is_best else "always the one that brings most"
    )
    yield f"Start dead brokers in this order ({how}):"
    for back in order.returns[:shown]:
        yield (
            f"  broker {back.broker}: {back.partitions:,} partitions come back, {back.remaining:,} "
            "remain without a leader"
        )
    if len(order.returns) > shown:
        yield f"  {len(order.returns) - shown:,} more brokers"
    if order.others:
        yield f"  the others bring no leader back: {', '.join(map(str, order.others))}"


def _some(partitions: Partitions, shown: int) -> str:
    named = ", ".join(map(str, partitions[:shown]))
    return named if len(partitions) <= shown else f"{named} and {len(partitions) - shown:,} more"


def _duration(seconds: float) -> str:
    """Seconds as people read them: 18.3 s, 12 min 5 s, 3 h 20 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
