"""``spec.rebalance.history``: loads over a time instead of those of a moment (docs/history.md)."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from regent.resources.base import ApiModel

_DAY_S: Final = 24 * 60 * 60


class RebalanceHistory(ApiModel):
    """Which loads of the history that Regent's setting ``planner_history`` names."""

    window_seconds: int = Field(
        default=7 * _DAY_S,
        description="How long before its newest sample the history counts.",
        ge=60,
        le=366 * _DAY_S,
    )
    percentile: int = Field(
        default=95,
        description="The percentile of the loads in that time; 100 is the peak.",
        ge=1,
        le=100,
    )
    max_age_seconds: int = Field(
        default=3600,
        description="How old the newest sample may be. While it is older, nothing is planned.",
        ge=60,
        le=366 * _DAY_S,
    )
