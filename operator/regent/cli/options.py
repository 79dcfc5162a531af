"""Options that several commands share, and how all of them print."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from pydantic.fields import FieldInfo

from regent.settings.namespaces import namespace_name
from regent.settings.process import ENVIRONMENT_PREFIX, Settings, option_of


def print_text(text: str) -> None:
    """Print what a command has to say, and end quietly, as Unix tools do, if the reader has ended:
    by SIGPIPE, which Python ignores. (click would end with 1, which means something else here.)"""
    try:
        click.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)


def log_quietly() -> None:
    """For commands that say what went wrong once, at the end: errors are logged, but not those of
    each attempt to reach ZooKeeper, which that says in its own words."""
    logging.basicConfig(level=logging.ERROR)
    logging.getLogger("regent.zookeeper").setLevel(logging.CRITICAL)


def setting_options(names: Iterable[str]) -> Callable[[Any], Any]:
    """An option for each setting, none with a default: what is not given is not passed on."""

    def decorate(command: Any) -> Any:
        for name in reversed(list(names)):
            command = _setting_option(name, Settings.model_fields[name])(command)
        return command

    return decorate


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are on the command line."""
    return {name: value for name, value in options.items() if value not in (None, ())}


def _http_url(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise click.BadParameter(f"{value!r} must begin with http:// or https://")
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete:
        raise click.BadParameter(f"{value!r} has no host, or a port that is none")
    return value.rstrip("/")


def checked_namespaces(
    _: click.Context, __: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """A callback: names of namespaces, as Kubernetes has them."""
    try:
        return tuple(map(namespace_name, value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def checked_namespace(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """A callback: the name of a namespace, as Kubernetes has it."""
    return None if value is None else checked_namespaces(_, __, (value,))[0]


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


config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings file (YAML).",
)


url_option = click.option(
    "--url",
    callback=_http_url,
    metavar="URL",
    help="HTTP endpoint of a Regent, for what only it knows. Default: where a Regent with the same "
    "settings listens, http://127.0.0.1:8080 without any.",
)
directory_option = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one file for each resource into this directory instead of printing them.",
)


@contextlib.contextmanager
def writing_to(directory: Path) -> Iterator[None]:
    """Around what is written into the directory of ``directory_option``: says what cannot be."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or directory} cannot be written: {error.strerror}. Make it "
            "writable, or name another --directory"
        ) from error


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
zookeeper_options = setting_options([n for n in Settings.model_fields if n.startswith("zookeeper")])
broker_options = setting_options(
    [n for n in Settings.model_fields if n.startswith("broker_") or n == "inter_broker_listener"]
)
