"""JSON merge patches (RFC 7386): what to send so that one document becomes another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The patch that turns ``before`` into ``after``; empty if they are equal.

    Lists are replaced as a whole. ``after`` must not contain null: in a merge patch it deletes.
    """
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            nested = merge_patch(old, value)
            if nested:
                patch[key] = nested
        elif key not in before or old != value:
            patch[key] = value
    return patch


def overlaid(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """``after``, and what only ``before`` has. Lists are those of ``after``."""
    result = dict(before)
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            value = overlaid(old, value)
        result[key] = value
    return result
