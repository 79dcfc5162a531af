"""``regent crds``."""

from __future__ import annotations

from pathlib import Path

import click

from regent.cli.options import directory_option, print_text, writing_to


@click.command()
@directory_option
def crds(directory: Path | None) -> None:
    """Print the CustomResourceDefinitions."""
    from regent.resources.crd import render_crds, write_crds

    if directory is not None:
        with writing_to(directory):
            written = write_crds(directory)
        for path in written:
            click.echo(path)
        return
    print_text("---\n".join(render_crds().values()))
