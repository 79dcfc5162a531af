"""``regent status``."""

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
@config_option
@zookeeper_options
@url_option
@json_option
def status(config_file: Path | None, url: str | None, as_json: bool, **options: Any) -> None:
    """Show who is the controller, the brokers, and the partitions by state.

    Reads ZooKeeper, so it works with any controller, and without one. Takes the
    settings file and the environment of `regent run`.

    \b
    Exit status, the first that applies:
      0  there is a controller, and every partition has a leader
      1  a setting is invalid, or ZooKeeper refuses all that is needed
      2  the command is used wrongly
      3  no ZooKeeper server answers
      4  there is no controller
      5  partitions have no leader
      6  znodes are malformed, or may not be read
    """
    from regent.connections.client_settings import zookeeper_settings
    from regent.status.endpoint import default_url
    from regent.status.report import exit_status, read_status
    from regent.status.text import render_status

    log_quietly()
    settings = load_settings(given_options(options), file=config_file)
    report = read_status(zookeeper_settings(settings), url=url or default_url(settings))
    print_text(json.dumps(report, indent=2) + "\n" if as_json else render_status(report))
    sys.exit(exit_status(report))
