"""Lists of different lengths as two arrays: where each begins, and all values one after another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int16]
"""Replicas of a partition: a table of partitions and racks takes a quarter of the memory so."""


def ints(values: npt.ArrayLike) -> Ints:
    """Values as the planner counts: 64-bit integers, exact in every sum."""
    return np.asarray(values, dtype=np.int64)


def offsets_of(lengths: npt.NDArray[np.integer]) -> Ints:
    """Where each list begins, and the end of the last."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def owners(offsets: Ints) -> Ints:
    """For each value the number of its list."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def positions(offsets: Ints) -> Ints:
    """For each value its position in its list."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def rectangle(offsets: Ints, values: npt.NDArray[np.integer], lists: Ints, *, fill: int) -> Ints:
    """Some lists as rows of one width, shorter ones filled up."""
    lengths = np.diff(offsets)[lists]
    width = int(lengths.max(initial=0))
    columns = np.arange(width)
    present = columns < lengths[:, None]
    rows = np.full((len(lists), width), fill, dtype=np.int64)
    rows[present] = values[(offsets[lists][:, None] + columns)[present]]
    return rows


def take(offsets: Ints, values: npt.NDArray[np.integer], lists: Ints) -> Ints:
    """The values of some lists, one list after another."""
    lengths = np.diff(offsets)[lists]
    begins = np.repeat(offsets[lists], lengths)
    return ints(values[begins + positions(offsets_of(lengths))])


def inverse(permutation: Ints) -> Ints:
    """For each number from 0 on its place in the permutation."""
    places = np.empty(len(permutation), dtype=np.int64)
    places[permutation] = np.arange(len(permutation))
    return places


def ranks(values: npt.NDArray[np.integer]) -> Ints:
    """For each value its place in ascending order, from 0 on; equal ones as they come."""
    return inverse(np.argsort(values, kind="stable"))


def contains(ascending: Ints, values: Ints) -> Bools:
    """For each value whether it is among others, which are in ascending order."""
    if len(ascending) == 0:
        return np.zeros(len(values), dtype=np.bool_)
    found = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.asarray(ascending[found] == values)
