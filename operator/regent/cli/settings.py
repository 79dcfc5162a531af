"""``regent settings``."""

from __future__ import annotations

import click

from regent.cli.options import print_text
from regent.settings.markdown import render_markdown


@click.command("settings")
def show_settings() -> None:
    """Print all settings of `regent run` as Markdown."""
    print_text(render_markdown())
