"""``regent export``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from regent.cli.options import (
    checked_namespace,
    config_option,
    directory_option,
    given_options,
    log_quietly,
    print_text,
    writing_to,
    zookeeper_options,
)
from regent.settings.loading import load_settings


@click.group()
def export() -> None:
    """Print what exists in Kafka as custom resources."""


@export.command("topics")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@config_option
@zookeeper_options
@click.option(
    "--namespace", "-n", callback=checked_namespace, metavar="NAME", help="Of the resources."
)
@click.option("--cluster-name", metavar="NAME", help="Write this clusterRef into the resources.")
@click.option("--internal", is_flag=True, help="Also topics whose names begin with __.")
@directory_option
def export_topics(
    patterns: tuple[str, ...],
    *,
    config_file: Path | None,
    namespace: str | None,
    cluster_name: str | None,
    internal: bool,
    directory: Path | None,
    **options: Any,
) -> None:
    """Print a KafkaTopic for every topic, or for those whose names match a PATTERN (with * and ?).

    Applying them changes nothing: they declare what is there, and what a KafkaTopic cannot
    declare is left out and named in a comment. Topics that are adopted are retained when their
    resource is deleted, unless deletionPolicy says something else.

    Reads ZooKeeper, so it works with any controller, and without one. Takes the
    settings file and the environment of `regent run`.

    \b
    Exit status, the first that applies:
      0  all topics were exported
      1  a setting is invalid, ZooKeeper refuses all that is needed, or a file
         cannot be written
      2  the command is used wrongly
      3  no ZooKeeper server answers
      6  topics are missing: their znodes are malformed, or may not be read
      7  no topic is exported by one of the PATTERNs
    """
    from regent.connections.client_settings import zookeeper_settings
    from regent.status.report import ExitStatus
    from regent.status.topic_export import UNMATCHED_PATTERN, ExportOptions, render, render_all
    from regent.status.topic_export import export_topics as read

    log_quietly()
    settings = load_settings(given_options(options), file=config_file)
    wanted = ExportOptions(
        patterns=patterns,
        with_internal=internal,
        namespace=namespace,
        cluster_name=cluster_name,
    )
    found = read(zookeeper_settings(settings), wanted)
    unwritten: list[str] = []
    if directory is None:
        print_text(render_all(found.topics))
    else:
        with writing_to(directory):
            directory.mkdir(parents=True, exist_ok=True)
        for name, topic in found.topics.items():
            path = directory / topic.file_name
            try:
                with writing_to(directory):
                    path.write_text(render(topic), encoding="utf-8")
            except click.ClickException as error:
                unwritten.append(f"topic {name}: {error.message}")
            else:
                click.echo(path)
    for problem in (*unwritten, *found.problems, *found.unmatched):
        click.echo(f"Not exported: {problem}", err=True)
    if unwritten:
        sys.exit(1)
    if found.problems:
        sys.exit(ExitStatus.UNREADABLE_ZNODES)
    sys.exit(UNMATCHED_PATTERN if found.unmatched else ExitStatus.HEALTHY)
