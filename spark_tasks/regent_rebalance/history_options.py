"""The options of ``regent plan`` that are about a history, and ``regent plan loads``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from regent_rebalance.errors import PackageMissingError
from regent_rebalance.history_layout import parse_duration
from regent_rebalance.history_text import render_loads
from regent_rebalance.history_wanted import HISTORY_UNUSABLE, Wanted
from regent_rebalance.loads import Loads, with_loads
from regent_rebalance.snapshot import Snapshot

_F = TypeVar("_F", bound=Callable[..., Any])


class HistoryUnusableError(click.ClickException):
    """A history that is asked for and cannot be used."""

    exit_code = HISTORY_UNUSABLE


class Duration(click.ParamType[int]):
    """Milliseconds, as 7d, 36h, 90m or 45s."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Raises UsageError for what is no duration."""
        if isinstance(value, int):
            return value
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def window_options(command: _F) -> _F:
    """Which part of a history counts, and how."""
    for option in (
        click.option(
            "--cluster", metavar="ID", help="Of the history. Default: the only one that it has."
        ),
        click.option(
            "--percentile",
            type=click.FloatRange(0, 100),
            default=95,
            show_default=True,
            help="Of the loads in the history; 100 is the peak.",
        ),
        click.option(
            "--window",
            type=Duration(),
            default="7d",
            show_default=True,
            help="How long before its newest sample the history counts.",
        ),
    ):
        command = option(command)
    return command


def history_options(command: _F) -> _F:
    """Loads instead of what the snapshot has."""
    place = click.option(
        "--history",
        metavar="WORKSPACE",
        help="Take sizes and rates from this history, a folder or a URL. Needs regent[spark].",
    )
    age = click.option(
        "--history-max-age",
        type=Duration(),
        help="How old the newest sample of the history may be. Default: any age.",
    )
    return place(window_options(age(command)))


def with_history(snapshot: Snapshot, wanted: Wanted | None) -> Snapshot:
    """A snapshot with the loads of a history, if one is given, and with notes about them.

    Raises:
        HistoryError: It cannot be used.
        PackageMissingError: Spark is not installed.
    """
    if wanted is None:
        return snapshot
    job = _job()
    with job.local_session() as session:
        loads, notes = job.loads_for_plan(session, wanted)
    return noted(snapshot, loads, notes)


def noted(snapshot: Snapshot, loads: Loads, notes: Sequence[str]) -> Snapshot:
    """A snapshot with loads. What is to be said of them is in it, and on standard error."""
    loaded, unknown = with_loads(snapshot, loads)
    said = (*notes, *unknown)
    for note in said:
        click.echo(f"Note: {note}", err=True)
    return dataclasses.replace(loaded, notes=said)


@click.command("loads")
@click.argument("workspace")
@window_options
@click.option("--json", "as_json", is_flag=True, help="Print brokers and partitions as JSON.")
def loads_command(
    *, workspace: str, window: int, percentile: float, cluster: str | None, as_json: bool
) -> None:
    """Show what the brokers carry over a window of the history in WORKSPACE, a folder or a URL."""
    job = _job()
    with job.local_session() as session:
        document = job.loads_document(session, Wanted(workspace, window, percentile, cluster))
    click.echo(json.dumps(document, indent=1) if as_json else render_loads(document))


def _job() -> Any:
    try:
        from regent_rebalance import history_job
    except ModuleNotFoundError as error:
        raise PackageMissingError(
            error.name or "pyspark", why="a history is read by Spark", extra="planner,spark"
        ) from error
    return history_job
