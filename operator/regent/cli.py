"""The command line: ``regent run``, ``status``, ``crds``, ``settings``."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import click
from pydantic.fields import FieldInfo

from regent.model.errors import RegentError
from regent.settings import ENVIRONMENT_PREFIX, Settings, load_settings, render_markdown


class _Group(click.Group):
    """Shows the project's own errors as one message without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RegentError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="regent")
def main() -> None:
    """Regent is the Kafka controller of a cluster that runs on ZooKeeper."""


def _setting_options(command: Any) -> Any:
    """An option for every setting, none with a default: what is not given is not passed on."""
    for name, field in reversed(Settings.model_fields.items()):
        command = _setting_option(name, field)(command)
    return command


def _setting_option(name: str, field: FieldInfo) -> Any:
    option = f"--{name.replace('_', '-')}"
    help_text = f"{field.description} [env: {ENVIRONMENT_PREFIX}{name.upper()}]"
    if field.annotation is bool:
        declaration = f"{option}/--no-{name.replace('_', '-')}"
        if name.startswith("without_"):
            declaration = option
        return click.option(declaration, name, default=None, is_flag=True, help=help_text)
    if name == "namespaces":
        return click.option(
            "--namespace", "-n", name, multiple=True, default=None, help=help_text, metavar="NAME"
        )
    return click.option(option, name, default=None, help=help_text, metavar="VALUE")


@main.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings file (YAML).",
)
@_setting_options
def run(config_file: Path | None, **options: Any) -> None:
    """Be the controller, and serve the custom resources."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    settings = load_settings(given, file=config_file)
    # Imported here so that the other commands start quickly.
    from regent.app import App

    sys.exit(App(settings).run())


@main.command()
@click.option(
    "--zookeeper",
    envvar=f"{ENVIRONMENT_PREFIX}ZOOKEEPER",
    required=True,
    metavar="HOST:PORT[/CHROOT]",
    help="ZooKeeper of the Kafka cluster.",
)
@click.option(
    "--url",
    default="http://127.0.0.1:8080",
    show_default=True,
    help="HTTP endpoint of a Regent, for what only it knows (queue lengths).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(zookeeper: str, url: str, as_json: bool) -> None:
    """Show who is the controller, the brokers, and the partitions by state.

    Reads ZooKeeper, so it works whoever is the controller, and even if nobody is.
    """
    from regent.status import print_status, read_status

    logging.basicConfig(level=logging.ERROR)  # what went wrong is said once, at the end
    report = read_status(zookeeper, url=url)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        print_status(report)


@main.command()
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one file for each resource into this directory instead of printing them.",
)
def crds(directory: Path | None) -> None:
    """Print the CustomResourceDefinitions."""
    from regent.resources.crd import render_crds, write_crds

    if directory is not None:
        for path in write_crds(directory):
            click.echo(path)
        return
    click.echo("---\n".join(render_crds().values()), nl=False)


@main.command("settings")
def show_settings() -> None:
    """Print all settings of `regent run` as Markdown."""
    click.echo(render_markdown(), nl=False)
