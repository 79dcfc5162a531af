"""Which loads of a history a plan takes, and whether it may. Pure.

Durations and moments are milliseconds, moments since 1970.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from regent_rebalance.errors import HistoryError
from regent_rebalance.history_layout import DAY_MS, time_of

HISTORY_UNUSABLE: Final = 7
"""Exit status of ``regent plan``."""

_UNITS: Final = (("d", DAY_MS), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


class Wanted(NamedTuple):
    """Which loads.

    Attributes:
        workspace: A folder, or a URL that Hadoop knows.
        window: Before the newest sample.
        percentile: From 0 to 100.
        cluster: None if the workspace has one only.
        max_age: How old the newest sample may be; None: any age will do.
    """

    workspace: str
    window: int
    percentile: float
    cluster: str | None
    max_age: int | None = None


def wanted_history(
    workspace: str | None,
    window: int,
    percentile: float,
    cluster: str | None,
    max_age: int | None,
) -> Wanted | None:
    """What options ask for; None without a workspace."""
    if workspace is None:
        return None
    return Wanted(workspace, window, percentile, cluster, max_age)


def check_age(wanted: Wanted, *, newest: int, now: int) -> None:
    """See that a history goes on.

    Args:
        newest: The moment of its newest intact sample.

    Raises:
        HistoryError: It is older than it may be, or as much ahead of the clock: a history that has
            ended would pass for a new one until then.
    """
    if wanted.max_age is not None and newest - now > wanted.max_age:
        raise HistoryError(
            f"the newest sample in {wanted.workspace} is of "
            f"{time_of(newest).isoformat(timespec='seconds')}, which is still to come: set the "
            "clock of this machine, or move samples away that were taken while another was wrong"
        )
    if wanted.max_age is None or now - newest <= wanted.max_age:
        return
    raise HistoryError(
        f"the newest sample in {wanted.workspace} is of "
        f"{time_of(newest).isoformat(timespec='seconds')}, {_long(now - newest)} ago, and may be "
        f"{_long(wanted.max_age)} old: see why no samples are taken, or allow older ones"
    )


def _long(duration: int) -> str:
    """In the largest unit of which it has two at least."""
    for name, unit in _UNITS:
        if duration >= 2 * unit:
            return f"{duration // unit} {name}"
    return f"{duration / 1000:g} s"
