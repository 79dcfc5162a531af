"""What the files of a window say: which moments there are, and which are missing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from regent_rebalance.errors import InvalidInputError
from regent_rebalance.history_layout import gaps_of, longest_interval, time_of, usual_step
from regent_rebalance.snapshot import listed


@dataclass(frozen=True, slots=True)
class SampledWindow:
    """The moments of a window, in milliseconds since 1970.

    Attributes:
        since, until: Its ends; the last is the newest sample.
        moments: At which partitions were sampled, ascending.
        half: At which partitions or brokers were sampled, and not both, ascending.
        unreadable: Files that have not the rows that their names say.
    """

    since: int
    until: int
    moments: tuple[int, ...]
    half: tuple[int, ...]
    unreadable: tuple[str, ...]

    @property
    def longest_interval(self) -> int:
        """How far apart two moments are at most, if none is missing between them."""
        return longest_interval(self.moments)

    @property
    def missing(self) -> int:
        """About how many moments are missing between others, by the usual step."""
        step = usual_step(self.moments)
        return sum(round((end - begin) / step) - 1 for begin, end in gaps_of(self.moments))

    def problems(self) -> list[str]:
        """What is wrong with the files, a sentence each."""
        found = []
        if self.unreadable:
            found.append(
                f"{len(self.unreadable)} unreadable files do not count: {listed(self.unreadable)}"
            )
        if self.half:
            found.append(
                f"{len(self.half)} samples have only one of their two files: "
                f"{listed([_text(moment) for moment in self.half])}"
            )
        gaps = gaps_of(self.moments)
        if gaps:
            spans = [f"{_text(begin)} to {_text(end)}" for begin, end in gaps]
            found.append(f"some {self.missing} moments are missing: {listed(spans)}")
        return found


def window_of(
    partitions: Collection[int],
    brokers: Collection[int],
    unreadable: Collection[str],
    *,
    since: int,
    until: int,
    workspace: str,
) -> SampledWindow:
    """The window that intact files make.

    Args:
        partitions, brokers: Moments of the intact files.
        workspace: For the message.

    Raises:
        InvalidInputError: There are fewer than two moments with partitions: no load is known.
    """
    moments = tuple(sorted(set(partitions)))
    window = SampledWindow(
        since,
        until,
        moments,
        tuple(sorted(set(partitions) ^ set(brokers))),
        tuple(sorted(unreadable)),
    )
    if len(moments) < 2:
        damaged = f", and {len(unreadable)} files are unreadable" if unreadable else ""
        raise InvalidInputError(
            f"{workspace} has {len(moments)} samples from {_text(since)} to {_text(until)}"
            f"{damaged}: loads need two at least: sample more, or choose a longer window"
        )
    return window


def _text(moment: int) -> str:
    return time_of(moment).isoformat(timespec="seconds")
