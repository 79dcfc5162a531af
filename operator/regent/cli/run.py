"""``regent run``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from regent.cli.options import config_option, given_options, setting_options
from regent.settings import Settings
from regent.settings.loading import load_settings


@click.command()
@config_option
@setting_options(Settings.model_fields)
def run(config_file: Path | None, **options: Any) -> None:
    """Be the controller, and serve the custom resources."""
    settings = load_settings(given_options(options), file=config_file)
    # Imported here so that the other commands start quickly.
    from regent.app import App

    sys.exit(App(settings).run())
