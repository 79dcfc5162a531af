"""``regent plan``: from a snapshot file to a plan file, to be read, compared and approved.

Exit status: 0 a plan that meets every goal, 1 input that cannot be, 2 wrong use, 3 hard goals that
no plan meets, 4 a plan that leaves a soft goal unmet; ``diff``: 5 if the plans differ.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from regent_rebalance.errors import InfeasibleGoalsError, PlannerError
from regent_rebalance.files import load_plan, load_snapshot, save_plan
from regent_rebalance.goals import ALL_GOALS, Goals
from regent_rebalance.json_files import encode_plan, summary_document
from regent_rebalance.planner import make_plan
from regent_rebalance.text import render_difference, render_plan

_EVERYTHING = 1 << 60


class _InfeasibleError(click.ClickException):
    """Hard goals that no plan meets."""

    exit_code = 3


class _Group(click.Group):
    """Takes a snapshot where a command could stand; shows the package's errors as a message."""

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
            return super().invoke(ctx)
        except InfeasibleGoalsError as error:
            reasons = "".join(f"\n  - {reason}" for reason in error.reasons)
            raise _InfeasibleError(f"no plan meets the hard goals:{reasons}") from error
        except PlannerError as error:
            raise click.ClickException(str(error)) from error


_path = click.Path(dir_okay=False, path_type=Path)
_all_option = click.option("--all", "everything", is_flag=True, help="Show every partition.")


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


def _factors(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    factors = {}
    for value in values:
        topic, _equals, factor = value.rpartition("=")
        if not topic or not factor.isdecimal():
            raise click.BadParameter(f"{value!r} is not TOPIC=NUMBER")
        factors[topic] = int(factor)
    return factors


@plan.command()
@click.argument("snapshot", type=_path)
@click.option("--output", "-o", type=_path, help="Write the plan to this file.")
@click.option(
    "--goal",
    "goals",
    multiple=True,
    type=click.Choice(ALL_GOALS),
    help="A goal to reach; may be given several times. Default: all.",
)
@click.option("--replica-balance", type=float, default=1.10, show_default=True, help="Threshold.")
@click.option("--leader-balance", type=float, default=1.10, show_default=True, help="Threshold.")
@click.option("--max-replicas", type=int, help="Replicas that one broker may have.")
@click.option("--drain", multiple=True, type=int, metavar="ID", help="A broker to be emptied.")
@click.option("--exclude", multiple=True, type=int, metavar="ID", help="It gets no new replica.")
@click.option("--pin", multiple=True, metavar="TOPIC", help="A topic that stays as it is.")
@click.option(
    "--replication-factor",
    multiple=True,
    callback=_factors,
    metavar="TOPIC=NUMBER",
    help="A new replication factor.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@_all_option
def make(
    *,
    snapshot: Path,
    output: Path | None,
    goals: tuple[str, ...],
    replica_balance: float,
    leader_balance: float,
    max_replicas: int | None,
    drain: tuple[int, ...],
    exclude: tuple[int, ...],
    pin: tuple[str, ...],
    replication_factor: dict[str, int],
    as_json: bool,
    everything: bool,
) -> None:
    """Plan from a snapshot.

    \b
    Exit status:
      0  the plan meets every goal
      1  the snapshot, or an option's value, is invalid
      2  the command is used wrongly
      3  no plan meets the hard goals
      4  the plan leaves a soft goal unmet
    """
    wanted = Goals(
        names=tuple(name for name in ALL_GOALS if name in goals) or ALL_GOALS,
        replica_balance=replica_balance,
        leader_balance=leader_balance,
        max_replicas=max_replicas,
        drained=drain,
        excluded=exclude,
        pinned=pin,
        replication_factor=replication_factor,
    )
    made = make_plan(load_snapshot(snapshot), wanted)
    if output is not None:
        save_plan(made, output)
    shown = _EVERYTHING if everything else 20
    _print(encode_plan(made).decode() if as_json else render_plan(made, shown=shown))
    sys.exit(0 if made.summary.goals_met else 4)


@plan.command()
@click.argument("file", type=_path)
@click.option("--json", "as_json", is_flag=True, help="Print what is said about it as JSON.")
@_all_option
def show(*, file: Path, as_json: bool, everything: bool) -> None:
    """Show a plan file, once its hash is checked."""
    loaded = load_plan(file)
    if as_json:
        _print(msgspec.json.format(msgspec.json.encode(summary_document(loaded))).decode() + "\n")
    else:
        _print(render_plan(loaded, shown=_EVERYTHING if everything else 20))


@plan.command()
@click.argument("first", type=_path)
@click.argument("second", type=_path)
@_all_option
def diff(*, first: Path, second: Path, everything: bool) -> None:
    """Compare two plan files: exit status 0 if they change the same, else 5."""
    old, new = load_plan(first), load_plan(second)
    _print(render_difference(old, new, shown=_EVERYTHING if everything else 20))
    sys.exit(0 if old.hash == new.hash else 5)


def _print(text: str) -> None:
    """Print, and end by SIGPIPE as other Unix tools do if the reader has ended."""
    try:
        click.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
