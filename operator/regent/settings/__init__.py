"""The settings of the process: which there are, and where they come from."""

from __future__ import annotations

from regent.settings.process import Settings

__all__ = ["Settings"]
