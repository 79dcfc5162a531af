"""The command line: ``regent run``, ``status``, ``why``, ``snapshot``, ``plan``, ``export``,
``release``, ``crds``, ``settings``."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic.fields import FieldInfo

from regent.model.errors import RegentError, ZooKeeperUnavailableError
from regent.settings import (
    ENVIRONMENT_PREFIX,
    Settings,
    namespace_name,
    option_of,
    render_markdown,
)
from regent.settings_loading import load_settings


class _Group(click.Group):
    """Shows the project's own errors as one message without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RegentError as error:
            raise click.ClickException(str(error)) from error


class _UnreachableError(click.ClickException):
    """No ZooKeeper server answers."""

    exit_code = 3


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="regent")
def main() -> None:
    """Regent is the Kafka controller of a cluster that runs on ZooKeeper."""


def _print(text: str) -> None:
    """Print what a command has to say, and end quietly, as Unix tools do, if the reader has ended:
    by SIGPIPE, which Python ignores. (click would end with 1, which means something else here.)"""
    try:
        click.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)


def _setting_options(names: Iterable[str]) -> Callable[[Any], Any]:
    """An option for each setting, none with a default: what is not given is not passed on."""

    def decorate(command: Any) -> Any:
        for name in reversed(list(names)):
            command = _setting_option(name, Settings.model_fields[name])(command)
        return command

    return decorate


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value not in (None, ())}


def _http_url(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise click.BadParameter(f"{value!r} must begin with http:// or https://")
    return None if value is None else value.rstrip("/")


def _namespaces(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(map(namespace_name, value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _namespace(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _namespaces(_, __, (value,))[0]


def _setting_option(name: str, field: FieldInfo) -> Any:
    option = option_of(name)
    help_text = f"{field.description} [env: {ENVIRONMENT_PREFIX}{name.upper()}]"
    if field.annotation is bool:
        declaration = f"{option}/--no-{name.replace('_', '-')}"
        if name.startswith("without_"):
            declaration = option
        return click.option(declaration, name, default=None, is_flag=True, help=help_text)
    if name == "namespaces":
        return click.option(
            option, "-n", name, multiple=True, default=None, help=help_text, metavar="NAME"
        )
    return click.option(option, name, default=None, help=help_text, metavar="VALUE")


_config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings file (YAML).",
)


_url_option = click.option(
    "--url",
    callback=_http_url,
    metavar="URL",
    help="HTTP endpoint of a Regent, for what only it knows. Default: where a Regent with the same "
    "settings listens, http://127.0.0.1:8080 without any.",
)
_directory_option = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one file for each resource into this directory instead of printing them.",
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_zookeeper_options = _setting_options(
    [n for n in Settings.model_fields if n.startswith("zookeeper")]
)
_broker_options = _setting_options(
    [n for n in Settings.model_fields if n.startswith("broker_") or n == "inter_broker_listener"]
)


@main.command()
@_config_option
@_setting_options(Settings.model_fields)
def run(config_file: Path | None, **options: Any) -> None:
    """Be the controller, and serve the custom resources."""
    settings = load_settings(_given(options), file=config_file)
    # Imported here so that the other commands start quickly.
    from regent.app import App

    sys.exit(App(settings).run())


@main.command()
@_config_option
@_zookeeper_options
@_url_option
@_json_option
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
    from regent.client_settings import zookeeper_settings
    from regent.status.endpoint import default_url
    from regent.status.report import exit_status, read_status
    from regent.status.text import render_status

    logging.basicConfig(level=logging.ERROR)  # what went wrong is said once, at the end
    settings = load_settings(_given(options), file=config_file)
    try:
        report = read_status(zookeeper_settings(settings), url=url or default_url(settings))
    except ZooKeeperUnavailableError as error:
        raise _UnreachableError(str(error)) from error
    _print(json.dumps(report, indent=2) + "\n" if as_json else render_status(report))
    sys.exit(exit_status(report))


@main.command()
@click.argument("target", metavar="TOPIC[-PARTITION]")
@click.option(
    "--partition",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="The partition, if TOPIC itself ends in a number.",
)
@_config_option
@_zookeeper_options
@_url_option
@_json_option
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
    from regent.client_settings import zookeeper_settings
    from regent.status.endpoint import default_url
    from regent.status.why import exit_status, read_why, tell

    logging.basicConfig(level=logging.ERROR)  # what went wrong is said once, at the end
    settings = load_settings(_given(options), file=config_file)
    try:
        report = read_why(
            zookeeper_settings(settings), target, partition, url=url or default_url(settings)
        )
    except ZooKeeperUnavailableError as error:
        raise _UnreachableError(str(error)) from error
    _print(
        (json.dumps(report, indent=2) if as_json else "\n".join(tell(report)).lstrip("\n")) + "\n"
    )
    sys.exit(exit_status(report))


@main.command()
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the snapshot to this file, as Parquet if its name ends in .parquet. Default: print "
    "it.",
)
@_config_option
@_zookeeper_options
@_broker_options
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
      6  topics are missing: their znodes are malformed, or may not be read
      9  sizes of replicas are missing: a broker does not tell them
      0  none of these
    """
    from regent.client_settings import channel_settings, zookeeper_settings
    from regent.status import snapshot as snapshots

    logging.basicConfig(level=logging.ERROR)  # what went wrong is said once, at the end
    settings = load_settings(_given(options), file=config_file)
    try:
        taken = snapshots.take_snapshot(zookeeper_settings(settings), channel_settings(settings))
    except ZooKeeperUnavailableError as error:
        raise _UnreachableError(str(error)) from error
    if output is None:
        _print(taken.snapshot.encode().decode())
    else:
        snapshots.save(taken.snapshot, output)
        click.echo(f"{output}: {snapshots.summary(taken.snapshot)}")
    for remark in (*taken.problems, *taken.snapshot.remarks):
        click.echo(f"Note: {remark}", err=True)
    sys.exit(taken.exit_status)


@main.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="SNAPSHOT ...")
def plan(arguments: tuple[str, ...]) -> None:
    """Plan the least movement that meets goals, from a snapshot file."""
    try:
        from regent_rebalance.cli import plan as command
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"planning needs the package {error.name}: pip install 'regent[planner]'"
        ) from error
    command.main(list(arguments), prog_name="regent plan")


@main.command()
@click.option("--all", "everything", is_flag=True, help="Release all KafkaTopics.")
@click.option(
    "--namespace",
    "-n",
    "namespaces",
    multiple=True,
    callback=_namespaces,
    metavar="NAME",
    help="Only those in this namespace; may be given several times.",
)
@click.option(
    "--deployment",
    metavar="NAMESPACE/NAME",
    help="First scale this Deployment of Regent to 0 and wait until its pods are gone: a Regent "
    "that runs puts its finalizers back.",
)
@click.option(
    "--skip-forbidden",
    is_flag=True,
    help="Skip a --namespace whose KafkaTopics may not be listed, for instance because it was "
    "deleted, and the rights with it.",
)
@click.option(
    "--cluster-name",
    metavar="NAME",
    help="Only those whose clusterRef has this name: another Regent serves the others.",
)
@click.option(
    "--default-cluster",
    is_flag=True,
    help="Only those without clusterRef; with --cluster-name, those beside them.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing, print what would be done.")
def release(
    *,
    everything: bool,
    namespaces: tuple[str, ...],
    deployment: str | None,
    skip_forbidden: bool,
    cluster_name: str | None,
    default_cluster: bool,
    dry_run: bool,
) -> None:
    """Remove Regent's finalizer from KafkaTopics, before Regent is uninstalled.

    The topics in Kafka stay, and so do the KafkaTopics. Without the finalizer, deleting a
    KafkaTopic does not delete its topic.
    """
    if not everything:
        raise click.UsageError("say --all to release all KafkaTopics, or all in a --namespace")
    from regent.reconcile.selection import ClusterSelection
    from regent.release import Deployment
    from regent.release import release as release_topics

    asyncio.run(
        release_topics(
            namespaces=namespaces,
            deployment=None if deployment is None else Deployment.parse(deployment),
            dry_run=dry_run,
            skip_forbidden=skip_forbidden,
            selection=ClusterSelection(name=cluster_name, is_default=default_cluster)
            if cluster_name is not None or default_cluster
            else None,
            report=click.echo,
        )
    )


@main.group()
def export() -> None:
    """Print what exists in Kafka as custom resources."""


@export.command("topics")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@_config_option
@_zookeeper_options
@click.option("--namespace", "-n", callback=_namespace, metavar="NAME", help="Of the resources.")
@click.option("--cluster-name", metavar="NAME", help="Write this clusterRef into the resources.")
@click.option("--internal", is_flag=True, help="Also topics whose names begin with __.")
@_directory_option
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
      1  a setting is invalid, or ZooKeeper refuses all that is needed
      2  the command is used wrongly
      3  no ZooKeeper server answers
      6  topics are missing: their znodes are malformed, or may not be read
    """
    from regent.client_settings import zookeeper_settings
    from regent.status.report import ExitStatus
    from regent.status.topic_export import ExportOptions, render, render_all
    from regent.status.topic_export import export_topics as read

    logging.basicConfig(level=logging.ERROR)  # what went wrong is said once, at the end
    settings = load_settings(_given(options), file=config_file)
    wanted = ExportOptions(
        patterns=patterns,
        with_internal=internal,
        namespace=namespace,
        cluster_name=cluster_name,
    )
    try:
        found = read(zookeeper_settings(settings), wanted)
    except ZooKeeperUnavailableError as error:
        raise _UnreachableError(str(error)) from error
    if directory is None:
        _print(render_all(found.topics))
    else:
        directory.mkdir(parents=True, exist_ok=True)
        for topic in found.topics.values():
            path = directory / topic.file_name
            path.write_text(render(topic), encoding="utf-8")
            click.echo(path)
    for problem in found.problems:
        click.echo(f"Not exported: {problem}", err=True)
    sys.exit(ExitStatus.UNREADABLE_ZNODES if found.problems else ExitStatus.HEALTHY)


@main.command()
@_directory_option
def crds(directory: Path | None) -> None:
    """Print the CustomResourceDefinitions."""
    from regent.resources.crd import render_crds, write_crds

    if directory is not None:
        for path in write_crds(directory):
            click.echo(path)
        return
    _print("---\n".join(render_crds().values()))


@main.command("settings")
def show_settings() -> None:
    """Print all settings of `regent run` as Markdown."""
    _print(render_markdown())
