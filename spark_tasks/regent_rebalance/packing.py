"""First fit: each change goes into the first batch in which its brokers have room for it.

Plain functions on flat sequences: lists where there is little to pack, which needs no Numba; arrays
where there is much, and the same functions compiled (``compiled_packing``).

A lane is what one broker receives, or what it sends. What lanes have in batches is kept in a hash
table, as each lane has something in few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

TRIES = 32
"""Batches of more urgent changes that a change is tried in: effort is counted, never timed."""

UNPLACED = -1

NOTHING = -1
"""The key of an empty place in the table."""

_SPREAD = 165_900_211
"""Keys that differ by any number of lanes are spread over the table. No product exceeds 64 bits."""


class Numbers(Protocol):
    """A list of integers, or an array."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> int: ...

    def __setitem__(self, at: int, value: int, /) -> None: ...


class Work(NamedTuple):
    """What changes need.

    Attributes:
        size: Bytes of one copy, for each change.
        urgency: Of each change, 0 the most urgent.
        begin: Where the lanes of each change begin in ``lane``, and the end of the last.
        lane: Of all changes.
        copies: How many copies of the change pass through each of these.
        lanes: How many there are.
        most_copies, most_bytes: What a lane may have in a batch. One change passes in any case.
    """

    size: Numbers
    urgency: Numbers
    begin: Numbers
    lane: Numbers
    copies: Numbers
    lanes: int
    most_copies: int
    most_bytes: int


class Batches(NamedTuple):
    """Batches that are being filled.

    Attributes:
        of: The batch of each change.
        used: How many batches there are: a single number.
        load: Bytes that the busiest lane has in each batch.
        urgent: The highest urgency in each batch.
        key, copies, bytes: The table: a lane's number and a batch's as one key, and what the lane
            has in that batch. Its length is a power of two, and half of it stays empty.
        next: For each entry a later batch: if the lane is full in that of the entry, it is full in
            all between the two.
    """

    of: Numbers
    used: Numbers
    load: Numbers
    urgent: Numbers
    key: Numbers
    copies: Numbers
    bytes: Numbers
    next: Numbers


def find_entry(work: Work, batches: Batches, lane: int, batch: int) -> int:
    """Where the table has what a lane has in a batch, or where that belongs."""
    key = batch * work.lanes + lane
    mask = len(batches.key) - 1
    mixed = (key ^ (key >> 15)) * _SPREAD
    at = (mixed ^ (mixed >> 19)) & mask
    while batches.key[at] != key and batches.key[at] != NOTHING:
        at = (at + 1) & mask
    return at


def is_full(work: Work, batches: Batches, at: int) -> bool:
    """Whether the lane of an entry takes nothing more in its batch."""
    return batches.copies[at] >= work.most_copies or batches.bytes[at] >= work.most_bytes


def first_open(work: Work, batches: Batches, lane: int, begin: int) -> int:
    """The first batch from ``begin`` on in which a lane is not full."""
    batch = begin
    at = find_entry(work, batches, lane, batch)
    while is_full(work, batches, at):
        batch = batches.next[at]
        at = find_entry(work, batches, lane, batch)
    # The next one who comes this way takes one step.
    while begin < batch:
        at = find_entry(work, batches, lane, begin)
        begin = batches.next[at]
        batches.next[at] = batch
    return batch


def fits(work: Work, batches: Batches, change: int, batch: int, guest: bool) -> bool:
    """Whether all lanes of a change have room for it in a batch.

    Args:
        guest: The batch has more urgent changes: it must not take longer for this one.
    """
    for i in range(work.begin[change], work.begin[change + 1]):
        at = find_entry(work, batches, work.lane[i], batch)
        copies = batches.copies[at] + work.copies[i]
        load = batches.bytes[at] + work.copies[i] * work.size[change]
        if guest and load > batches.load[batch]:
            return False
        if batches.copies[at] > 0 and (copies > work.most_copies or load > work.most_bytes):
            return False
    return True


def first_batch(work: Work, batches: Batches, change: int, begin: int) -> int:
    """The first batch that takes a change, from ``begin`` on."""
    batch, tries = begin, 0
    while True:
        tried = batch
        for i in range(work.begin[change], work.begin[change + 1]):
            batch = first_open(work, batches, work.lane[i], batch)
        if batch > tried:
            continue  # lanes that come first may be full there
        guest = batch < batches.used[0] and batches.urgent[batch] < work.urgency[change]
        if not (guest and tries >= TRIES):
            if fits(work, batches, change, batch, guest):
                return batch
            if guest:
                tries += 1
        batch += 1


def place(work: Work, batches: Batches, change: int, begin: int) -> int:
    """Put a change into the first batch that takes it, from ``begin`` on, and return that."""
    batch = first_batch(work, batches, change, begin)
    batches.of[change] = batch
    if batch == batches.used[0]:
        batches.used[0] += 1
    batches.urgent[batch] = min(batches.urgent[batch], work.urgency[change])
    for i in range(work.begin[change], work.begin[change + 1]):
        at = find_entry(work, batches, work.lane[i], batch)
        if batches.key[at] == NOTHING:
            batches.key[at] = batch * work.lanes + work.lane[i]
            batches.next[at] = batch + 1
        batches.copies[at] += work.copies[i]
        batches.bytes[at] += work.copies[i] * work.size[change]
        batches.load[batch] = max(batches.load[batch], batches.bytes[at])
    return batch


def place_all(work: Work, batches: Batches, order: Numbers) -> None:
    """Place changes in an order."""
    for i in range(len(order)):
        place(work, batches, order[i], 0)


class Packing(NamedTuple):
    """Interpreted or compiled."""

    place: Callable[[Work, Batches, int, int], int]
    place_all: Callable[[Work, Batches, Numbers], None]


PLAIN = Packing(place, place_all)


@cache
def compiled_packing() -> Packing:
    """For arrays. Where Numba is missing, the plain one."""
    try:
        from regent_rebalance.jit import compiled_together
    except ModuleNotFoundError:
        return PLAIN
    functions = compiled_together(
        find_entry, is_full, first_open, fits, first_batch, place, place_all
    )
    return Packing(functions[-2], functions[-1])
