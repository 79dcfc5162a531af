"""The command line: one module for each command, and what several of them share."""

from __future__ import annotations

from regent.cli.commands import main

__all__ = ["main"]
