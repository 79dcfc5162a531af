"""``regent crds``."""

from __future__ import annotations

from pathlib import Path

import click

from regent.cli.options import directory_option, print_text


@click.command()
@directory_option
def crds(directory: Path | None) -> None:
    """Print the CustomResourceDefinitions."""
    from regent.resources.crd import render_crds, write_crds

    if directory is not None:
        for path in write_crds(directory):
            click.echo(path)
        return
    print_text("---\n".join(render_crds().values()))
