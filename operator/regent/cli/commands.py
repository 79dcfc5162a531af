"""All commands, put together."""

from __future__ import annotations

from typing import Final

import click

from regent.cli.crds import crds
from regent.cli.errors import Group
from regent.cli.export import export
from regent.cli.plan import plan
from regent.cli.release import release
from regent.cli.run import run
from regent.cli.sample import sample
from regent.cli.settings import show_settings
from regent.cli.simulate import simulate
from regent.cli.snapshot import snapshot
from regent.cli.status import status
from regent.cli.why import why

_COMMANDS: Final = (
    run, status, why, snapshot, sample, plan, simulate, export, release, crds, show_settings
)  # fmt: skip


@click.group(
    cls=Group, commands=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="regent")
def main() -> None:
    """Regent is the Kafka controller of a cluster that runs on ZooKeeper."""
