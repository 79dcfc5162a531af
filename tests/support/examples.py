"""How many random examples a test tries."""

from __future__ import annotations

from hypothesis import settings


def scaled_examples(factor: float) -> settings:
    """Try so many times the examples of the profile: the soak tries more than the gate."""
    assert settings.default is not None
    return settings(max_examples=max(1, round(factor * settings.default.max_examples)))
