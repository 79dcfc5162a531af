"""How the command line ends with an error: one message without a traceback."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any, Final

import click

from regent.model.errors import RegentError, ZooKeeperUnavailableError

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _UnreachableError(click.ClickException):
    """No ZooKeeper server answers."""

    exit_code = 3


class Group(click.Group):
    """Shows the project's own errors, and a full disk, as one message without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ZooKeeperUnavailableError as error:
            raise _UnreachableError(str(error)) from error
        except RegentError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.errno not in _NO_ROOM or ctx.invoked_subcommand == "run":
                raise
            # What is left in its buffer would fail once more at the end.
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
            raise click.ClickException(
                f"the output cannot be written: {error.strerror}. Make room, or write it elsewhere"
            ) from error
