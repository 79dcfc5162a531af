"""How the command line ends with an error: one message without a traceback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import click

from regent.model.errors import RegentError, ZooKeeperUnavailableError
from regent_rebalance.standard_streams import lacks_room, open_missing_streams


class _UnreachableError(click.ClickException):
    """No ZooKeeper server answers."""

    exit_code = 3


class Group(click.Group):
    """Shows the project's own errors, and a full disk, as one message without a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        open_missing_streams()
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _full_disk_named(ctx):
                return super().invoke(ctx)
        except ZooKeeperUnavailableError as error:
            raise _UnreachableError(str(error)) from error
        except RegentError as error:
            raise click.ClickException(str(error)) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, which prints the help here."""
        with _full_disk_named(ctx):
            return super().parse_args(ctx, args)


@contextlib.contextmanager
def _full_disk_named(ctx: click.Context) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if ctx.invoked_subcommand == "run" or not lacks_room(error):
            raise
        raise click.ClickException(
            f"the output cannot be written: {error.strerror}. Make room, or write it elsewhere"
        ) from error
