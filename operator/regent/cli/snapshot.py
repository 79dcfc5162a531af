"""``regent snapshot``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from regent.cli.options import (
    broker_options,
    config_option,
    given_options,
    log_quietly,
    print_text,
    zookeeper_options,
)
from regent.settings.loading import load_settings


@click.command()
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the snapshot to this file, as Parquet if its name ends in .parquet. Default: print "
    "it.",
)
@config_option
@zookeeper_options
@broker_options
def snapshot(output: Path | None, config_file: Path | None, **options: Any) -> None:
    """Take a snapshot of the cluster for `regent plan`: brokers, racks, replicas, leaders, and the
    sizes of the replicas.

    Reads ZooKeeper and asks every broker for its log directories (DescribeLogDirs). Nothing
    is written to the cluster, and it works with any controller, and without one. Takes the
    settings file and the environment of `regent run`.

    What the snapshot lacks is said on standard error: such as a broker that does not answer.

    \b
    Exit status, the first that applies:
      1  a setting is invalid, or ZooKeeper refuses all that is needed
      2  the command is used wrongly
      3  no ZooKeeper server answers
      6  topics, or brokers without replicas, are missing: their znodes are
         malformed, or may not be read
      9  sizes of replicas are missing: a broker does not tell them
      0  none of these
    """
    from regent.connections.client_settings import channel_settings, zookeeper_settings
    from regent.status import snapshot as snapshots

    log_quietly()
    settings = load_settings(given_options(options), file=config_file)
    taken = snapshots.take_snapshot(zookeeper_settings(settings), channel_settings(settings))
    if output is None:
        print_text(taken.snapshot.encode().decode())
    else:
        snapshots.save(taken.snapshot, output)
        click.echo(f"{output}: {snapshots.summary(taken.snapshot)}")
    for remark in (*taken.problems, *taken.snapshot.remarks):
        click.echo(f"Note: {remark}", err=True)
    sys.exit(taken.exit_status)
