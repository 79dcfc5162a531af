"""``regent why``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from regent.cli.options import (
    config_option,
    given_options,
    json_option,
    log_quietly,
    print_text,
    url_option,
    zookeeper_options,
)
from regent.settings.loading import load_settings


@click.command()
@click.argument("target", metavar="TOPIC[-PARTITION]")
@click.option(
    "--partition",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="The partition, if TOPIC itself ends in a number.",
)
@config_option
@zookeeper_options
@url_option
@json_option
def why(
    target: str,
    *,
    partition: int | None,
    config_file: Path | None,
    url: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Explain the state of a topic or a partition: who leads, who is missing from the ISR since
    when and why, what would help, and what has changed.

    The state is read from ZooKeeper, so it is there with any controller. The changes with
    their causes are kept by a Regent while it is the controller, and asked of its HTTP
    endpoint. Takes the settings file and the environment of `regent run`.

    \b
    Exit status, the first that applies:
      1  a setting is invalid, or ZooKeeper refuses all that is needed
      2  the command is used wrongly
      3  no ZooKeeper server answers
      7  there is no such topic or partition
      4  there is no controller
      5  partitions of it have no leader
      6  znodes are malformed, or may not be read
      8  nobody could be asked what has changed: see --url
      0  none of these
    """
    from regent.connections.client_settings import zookeeper_settings
    from regent.status.endpoint import default_url
    from regent.status.why import exit_status, read_why, tell

    log_quietly()
    settings = load_settings(given_options(options), file=config_file)
    report = read_why(
        zookeeper_settings(settings), target, partition, url=url or default_url(settings)
    )
    print_text(
        (json.dumps(report, indent=2) if as_json else "\n".join(tell(report)).lstrip("\n")) + "\n"
    )
    sys.exit(exit_status(report))
