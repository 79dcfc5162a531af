"""Work on all partitions of a cluster in parts, between which others have the controller's loop.

Nothing that the controller knows changes meanwhile: it processes one event at a time. Questions of
brokers are received, answers to earlier ones are sent, and the connection to ZooKeeper is served.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from regent.controller.effects import GiveWay

T = TypeVar("T")

PART: Final = 50_000
"""Partitions that are looked at without letting go of the loop: some 10 ms for each look."""


def after_announcement_ms(partitions: int) -> int:
    """When work on all partitions that no broker waits for may begin, after all of them were put
    into requests: these are encoded, sent and answered first.

    A million takes two or three seconds, on a busy machine five.
    """
    return max(500, partitions // 200)


def in_parts(items: Iterable[T]) -> Iterator[list[T]]:
    """Items in their order, at most :data:`PART` at a time."""
    remaining = iter(items)
    while part := list(islice(remaining, PART)):
        yield part


class LookedAt:
    """Counts partitions on a walk that goes topic by topic.

    Args:
        part: How many are looked at without letting go of the loop.
    """

    def __init__(self, part: int = PART) -> None:
        self._part = part
        self._count = 0

    def is_a_part_with(self, partitions: int) -> bool:
        """So many more were looked at; whether others are to have the loop now."""
        self._count += partitions
        if self._count < self._part:
            return False
        self._count = 0
        return True


async def give_way_after(part: Sequence[object]) -> None:
    """Let others have the loop, if a part was a whole one."""
    if len(part) == PART:
        await GiveWay()
