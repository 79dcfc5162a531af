"""``regent sample``: its options, and what it says."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import click

from regent.cli.options import (
    broker_options,
    config_option,
    given_options,
    log_quietly,
    zookeeper_options,
)
from regent.settings import Settings
from regent.settings.loading import load_settings

_F = TypeVar("_F", bound=Callable[..., Any])


def _duration(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    from regent_rebalance.history_layout import parse_duration  # as below

    try:
        return None if value is None else parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def sample_options(command: _F) -> _F:
    """Where samples are kept, how long, and what is added to them."""
    rates = click.option(
        "--rates",
        type=click.File("rb"),
        metavar="FILE.json",
        help="Rates of partitions that somebody has measured.",
    )
    retention = click.option(
        "--retention",
        callback=_duration,
        envvar="REGENT_SAMPLE_RETENTION",
        show_envvar=True,
        metavar="DURATION",
        help="Remove days that ended longer ago, such as 30d. Default: none.",
    )
    return click.argument("workspace", metavar="WORKSPACE")(retention(rates(command)))


def sampled(
    settings: Settings, *, workspace: str, retention: int | None, rates: BinaryIO | None
) -> int:
    """Take a sample, append it, and say what was written and what is not known; the exit status.

    Raises:
        RegentError: Nothing was appended.
    """
    # Imported here so that the other commands start quickly.
    from regent.connections.client_settings import channel_settings, zookeeper_settings
    from regent.status.sample import append, take_sample

    taken = take_sample(zookeeper_settings(settings), channel_settings(settings))
    measured = None if rates is None else (rates.name, rates.read())
    appended = append(taken.sample, workspace, keep=retention, rates=measured)
    for file in appended.files:
        click.echo(file)
    for folder in appended.removed:
        click.echo(f"removed {folder}")
    for remark in (*taken.problems, *taken.remarks):
        click.echo(f"Note: {remark}", err=True)
    return taken.exit_status


@click.command()
@sample_options
@config_option
@zookeeper_options
@broker_options
def sample(
    *,
    workspace: str,
    retention: int | None,
    rates: BinaryIO | None,
    config_file: Path | None,
    **options: Any,
) -> None:
    """Append a sample of the cluster to the history in WORKSPACE, a folder or a URL: what a
    snapshot has, and where the logs begin and end.

    Reads ZooKeeper and asks every broker (DescribeLogDirs, ListOffsets). Nothing is written to
    the cluster, and it works with any controller, and without one. Takes the settings file and
    the environment of `regent run`. Needs regent[history].

    What the sample lacks is said on standard error: such as a broker that does not answer.

    \b
    Exit status, the first that applies:
      1  a setting is invalid, ZooKeeper refuses all that is needed, or the
         workspace cannot be used: nothing is appended
      2  the command is used wrongly
      3  no ZooKeeper server answers
      6  topics, or brokers without replicas, are missing: their znodes are
         malformed, or may not be read
      9  sizes or offsets are missing: a broker does not tell them
      0  none of these
    """
    log_quietly()
    settings = load_settings(given_options(options), file=config_file)
    sys.exit(sampled(settings, workspace=workspace, retention=retention, rates=rates))
