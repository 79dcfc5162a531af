"""Where the samples of a history are (docs/history.md), and what names of files say.

Moments and durations are milliseconds, moments since 1970.
"""

from __future__ import annotations

import datetime
import re
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

BROKERS: Final = "brokers"
PARTITIONS: Final = "partitions"
KINDS: Final = (BROKERS, PARTITIONS)
"""In the order in which the two files of a sample are written."""

CLUSTER: Final = "cluster="
DAY: Final = "day="
DAY_MS: Final = 86_400_000

LONGEST_STEPS: Final = 3
"""So many usual steps are between two moments at most; else samples are missing."""

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://|file:/", re.IGNORECASE)
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MS: Final = datetime.timedelta(milliseconds=1)
_NAME: Final = re.compile(r"(\d{8}T\d{6})\.(\d{3})Z-(\d+)\.parquet", re.ASCII)
_SECONDS: Final = "%Y%m%dT%H%M%S"
_DAY: Final = "%Y-%m-%d"
_UNITS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}
_LONGEST_DURATION: Final = 100_000 * DAY_MS


class SampleFile(NamedTuple):
    """One of the two files of a sample.

    Attributes:
        moment: When the sample was taken.
        rows: How many rows it has, if it is intact.
    """

    moment: int
    rows: int

    @property
    def name(self) -> str:
        """Names sort by the moments."""
        second = time_of(self.moment).strftime(_SECONDS)
        return f"{second}.{self.moment % 1000:03}Z-{self.rows}.parquet"

    @classmethod
    def parse(cls, name: str) -> SampleFile | None:
        """The inverse of :attr:`name`; None for the name of something else."""
        match = _NAME.fullmatch(name)
        second = None if match is None else _parsed(match[1], _SECONDS)
        if match is None or second is None:
            return None
        return cls((second - _EPOCH) // _MS + int(match[2]), int(match[3]))


def is_url(workspace: str) -> bool:
    """Whether a workspace is a URL, and not the path of a local folder."""
    return _URL.match(workspace) is not None


def time_of(moment: int) -> datetime.datetime:
    """A moment in UTC."""
    return _EPOCH + moment * _MS


def moment_of(time: datetime.datetime) -> int:
    """The moment of a time that knows its zone."""
    return (time - _EPOCH) // _MS


def folder_of(cluster: str, kind: str) -> str:
    """Below the workspace: the folder with the days of one kind of files."""
    return f"{CLUSTER}{cluster}/{kind}"


def day_of(moment: int) -> str:
    """The folder of a moment's day."""
    return DAY + time_of(moment).strftime(_DAY)


def days_of(since: int, until: int) -> list[str]:
    """The folders that have what was sampled from one moment to another, both included."""
    return [day_of(day * DAY_MS) for day in range(since // DAY_MS, until // DAY_MS + 1)]


def expired_days(days: Iterable[str], *, newest: int, keep: int) -> list[str]:
    """Those of the folders in which every moment is more than ``keep`` before the newest sample."""
    expired = []
    for name in days:
        day = _parsed(name.removeprefix(DAY), _DAY) if name.startswith(DAY) else None
        if day is not None and moment_of(day) + DAY_MS <= newest - keep:
            expired.append(name)
    return expired


def usual_step(moments: Sequence[int]) -> int:
    """The median time between neighbours.

    Args:
        moments: Ascending.

    Raises:
        ValueError: There are fewer than two.
    """
    if len(moments) < 2:
        raise ValueError(f"{len(moments)} moments have no step: two moments are the least")
    return int(statistics.median(later - earlier for earlier, later in pairwise(moments)))


def longest_interval(moments: Sequence[int]) -> int:
    """How far apart two moments are at most, if none is missing between them.

    Raises:
        ValueError: There are fewer than two.
    """
    return LONGEST_STEPS * usual_step(moments)


def gaps_of(moments: Sequence[int]) -> list[tuple[int, int]]:
    """Moments between which others are missing."""
    if len(moments) < 2:
        return []
    longest = longest_interval(moments)
    return [(one, other) for one, other in pairwise(moments) if other - one > longest]


def parse_duration(text: str) -> int:
    """Milliseconds of a duration such as 7d, 36h, 90m or 45s.

    Raises:
        ValueError: It is none, or not longer than nothing, or too long for any history.
    """
    match = re.fullmatch(r"(\d{1,9})([smhd])", text, re.ASCII)
    duration = 0 if match is None else int(match[1]) * _UNITS[match[2]]
    if not 0 < duration <= _LONGEST_DURATION:
        raise ValueError(f"{text!r} is no duration, such as 7d, 36h, 90m or 45s")
    return duration


def _parsed(text: str, form: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.UTC)
    except ValueError:
        return None  # the name is of something else
