"""The random order in which actors get their turn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def rotated(rng: random.Random, actors: Sequence[T]) -> list[T]:
    """Return the actors, of which there is at least one, from a random actor on.

    Draws as ``randrange`` does, which costs three times as much: every step calls it repeatedly.
    """
    count = len(actors)
    bits = count.bit_length()
    first = rng.getrandbits(bits)
    while first >= count:
        first = rng.getrandbits(bits)
    return [*actors[first:], *actors[:first]]
