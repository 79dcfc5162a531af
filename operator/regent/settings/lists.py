"""Settings that are lists, as one text."""

from __future__ import annotations

from typing import Any


def parts(value: Any, separator: str) -> Any:
    """Parts of a text without the space around them; anything else is left alone."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(separator) if part.strip())
    return value
