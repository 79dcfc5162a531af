"""``regent plan``: a command of the package of the planner."""

from __future__ import annotations

import click


@click.command(
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
