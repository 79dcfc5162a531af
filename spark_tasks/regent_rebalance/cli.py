"""``regent plan``: from a snapshot file to a plan file, to be read, compared and approved.

Exit status: 0 a plan that meets every goal, 1 input that cannot be, 2 wrong use, 3 hard goals that
no plan meets, 4 a plan that leaves a soft goal unmet, 6 a package is missing that the goals need,
7 a history that cannot be used, 8 too little memory, or no room for the output;
``diff``: 5 if the plans differ.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from regent_rebalance.cli_options import batch_options, goal_options, what_if_options
from regent_rebalance.describe import described
from regent_rebalance.errors import (
    HistoryError,
    InfeasibleGoalsError,
    PackageMissingError,
    PlannerError,
)
from regent_rebalance.files import load_plan, load_snapshot, save_batches, save_plan, write_file
from regent_rebalance.goals import ALL_GOALS, DEFAULT_GOALS, MIN_LEADERS, Goals
from regent_rebalance.history_options import (
    HistoryUnusableError,
    history_options,
    loads_command,
    with_history,
)
from regent_rebalance.history_wanted import wanted_history
from regent_rebalance.json_files import encode_plan, summary_document
from regent_rebalance.plan import Plan
from regent_rebalance.planner import make_plan
from regent_rebalance.problem import already_met
from regent_rebalance.schedule import Limits
from regent_rebalance.shortages import shortages_named
from regent_rebalance.snapshot import Snapshot
from regent_rebalance.standard_streams import open_missing_streams
from regent_rebalance.text import render_difference, render_plan
from regent_rebalance.what_if import WhatIf, assume, by_topic

_EVERYTHING, _FEW = 1 << 60, 10


class _InfeasibleError(click.ClickException):
    """Hard goals that no plan meets."""

    exit_code = 3


class _PackageMissingError(click.ClickException):
    """A package that only some plans need."""

    exit_code = 6


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's collector looks again and again for cycles among rows by the million, which have
    none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Group(click.Group):
    """Takes a snapshot where a command could stand; shows the package's errors, and what the
    machine lacks, as a message."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        open_missing_streams()
        with shortages_named():
            return super().main(*args, **kwargs)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            return "make", self.commands["make"], args
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Options before the snapshot belong to the planning, not to the group.
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = ["make", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _without_collector():
                return super().invoke(ctx)
        except InfeasibleGoalsError as error:
            reasons = "".join(f"\n  - {reason}" for reason in error.reasons)
            raise _InfeasibleError(f"no plan meets the hard goals:{reasons}") from error
        except PackageMissingError as error:
            raise _PackageMissingError(str(error)) from error
        except HistoryError as error:
            raise HistoryUnusableError(str(error)) from error
        except PlannerError as error:
            raise click.ClickException(str(error)) from error


_path = click.Path(dir_okay=False, path_type=Path)
_all_option = click.option("--all", "everything", is_flag=True, help="Show everything.")
_report_option = click.option(
    "--report", type=_path, metavar="FILE.html", help="Write a report for a browser to this file."
)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="SNAPSHOT [OPTIONS] | COMMAND [ARGS]...",
)
def plan() -> None:
    """Plan the least movement that meets goals, from a snapshot file.

    `regent plan SNAPSHOT` is short for `regent plan make SNAPSHOT`; its options are in
    `regent plan make --help`. Files are JSON, or Parquet if their name ends in .parquet.
    """


@plan.command()
@click.argument("snapshot", type=_path)
@click.option("--output", "-o", type=_path, help="Write the plan to this file.")
@click.option(
    "--goal",
    "goals",
    multiple=True,
    type=click.Choice(ALL_GOALS),
    help="A goal to reach; may be given several times: of soft ones that cannot all be met the "
    "first counts most. Default: those that count replicas and leaders.",
)
@goal_options
@what_if_options
@history_options
@batch_options
@_report_option
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@_all_option
def make(
    *,
    snapshot: Path,
    output: Path | None,
    goals: tuple[str, ...],
    add_broker: dict[int, str | None],
    lose_rack: tuple[str, ...],
    lose_broker: tuple[int, ...],
    batch_copies: int,
    batch_bytes: int | None,
    throttle: int,
    history: str | None,
    window: int,
    percentile: float,
    cluster: str | None,
    history_max_age: int | None,
    report: Path | None,
    as_json: bool,
    everything: bool,
    **options: Any,
) -> None:
    """Plan from a snapshot.

    \b
    Exit status:
      0  the plan meets every goal
      1  the snapshot, or an option's value, is invalid
      2  the command is used wrongly
      3  no plan meets the hard goals
      4  the plan leaves a soft goal unmet
      6  a package is missing that the goals need
      7  the history cannot be used, or is too old
      8  there is not enough memory, or no room for the output
    """
    _require_other_files(snapshot, {"--output": output, "--report": report})
    limits = Limits(copies=batch_copies, bytes=batch_bytes, rate=throttle)
    what_if = WhatIf(added=add_broker, lost_racks=lose_rack, lost_brokers=lose_broker)
    loaded = with_history(
        load_snapshot(snapshot),
        wanted_history(history, window, percentile, cluster, history_max_age),
    )
    assumed, assumptions = assume(loaded, what_if)
    wanted = _goals(assumed, goals, **options)
    made = make_plan(assumed, wanted)
    made = described(assumed, wanted, made, limits, assumptions=assumptions)
    for note in already_met(assumed, wanted):
        click.echo(f"Note: {note}", err=True)
    if output is not None:
        save_plan(made, output)
    _save_report(made, report)
    shown = _EVERYTHING if everything else _FEW
    _print(encode_plan(made).decode() if as_json else render_plan(made, shown=shown))
    sys.exit(0 if made.summary.goals_met else 4)


def _goals(
    snapshot: Snapshot,
    names: tuple[str, ...],
    *,
    replica_balance: float,
    leader_balance: float,
    resource_balance: float,
    topic_balance: float,
    capacity_threshold: float,
    bytes_share: float,
    max_replicas: int | None,
    drain: tuple[int, ...],
    exclude: tuple[int, ...],
    pin: tuple[str, ...],
    replication_factor: tuple[tuple[str, int], ...],
    min_leaders: tuple[tuple[str, int], ...],
) -> Goals:
    return Goals(
        names=names or (DEFAULT_GOALS if not min_leaders else (*DEFAULT_GOALS, MIN_LEADERS)),
        replica_balance=replica_balance,
        leader_balance=leader_balance,
        resource_balance=resource_balance,
        topic_balance=topic_balance,
        capacity_threshold=capacity_threshold,
        bytes_share=bytes_share,
        max_replicas=max_replicas,
        drained=drain,
        excluded=exclude,
        pinned=pin,
        replication_factor=by_topic(snapshot, replication_factor, what="replication factors"),
        min_leaders=by_topic(snapshot, min_leaders, what="least leaders"),
    )


@plan.command()
@click.argument("file", type=_path)
@_report_option
@click.option("--json", "as_json", is_flag=True, help="Print what is said about it as JSON.")
@_all_option
def show(*, file: Path, report: Path | None, as_json: bool, everything: bool) -> None:
    """Show a plan file, once its hash is checked."""
    _require_other_files(file, {"--report": report})
    loaded = load_plan(file)
    _save_report(loaded, report)
    if as_json:
        _print(msgspec.json.format(msgspec.json.encode(summary_document(loaded))).decode() + "\n")
    else:
        _print(render_plan(loaded, shown=_EVERYTHING if everything else _FEW))


@plan.command()
@click.argument("first", type=_path)
@click.argument("second", type=_path)
@_all_option
def diff(*, first: Path, second: Path, everything: bool) -> None:
    """Compare two plan files: exit status 0 if they change the same, else 5."""
    old, new = load_plan(first), load_plan(second)
    _print(render_difference(old, new, shown=_EVERYTHING if everything else _FEW))
    sys.exit(0 if old.hash == new.hash else 5)


@plan.command()
@click.argument("file", type=_path)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def split(*, file: Path, folder: Path) -> None:
    """Write a file for each batch of a plan, for kafka-reassign-partitions."""
    _print("".join(f"{written}\n" for written in save_batches(load_plan(file), folder)))


plan.add_command(loads_command)


def _require_other_files(read: Path, written: dict[str, Path | None]) -> None:
    """Raise UsageError for an option by which a file would be overwritten that is read."""
    for option, file in written.items():
        if file is not None and file.exists() and read.exists() and file.samefile(read):
            raise click.UsageError(f"{option} names {file}, which is read: name another file")


def _save_report(made: Plan, file: Path | None) -> None:
    if file is not None:
        from regent_rebalance.html_report import render_report

        write_file(file, render_report(made).encode())


def _print(text: str) -> None:
    """Print, and end by SIGPIPE as other Unix tools do if the reader has ended."""
    try:
        click.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
