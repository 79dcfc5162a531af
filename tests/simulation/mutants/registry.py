"""How a defect is declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from regent.zk_data.effects import Exists

Mutate = Callable[[pytest.MonkeyPatch], None]


class Mutant(NamedTuple):
    """A deliberate defect, what checkers say about it, and the story that is enough, if any."""

    mutate: Mutate
    caught_by: str
    story: str | None = None


MUTANTS: dict[str, Mutant] = {}
"""All declared defects by name."""


def defect(*, caught_by: str, story: str | None = None) -> Callable[[Mutate], Mutate]:
    """Declare that a function puts a defect in place, what the checkers say about it, and the
    scenario of its own that shows it, if it has one."""

    def declare(mutate: Mutate) -> Mutate:
        MUTANTS[mutate.__name__] = Mutant(mutate, caught_by, story)
        return mutate

    return declare


async def exists_unwatched(path: str, *_: object) -> bool:
    """``exists_permitted`` that leaves no watch."""
    (exists,) = await Exists([path])
    return exists


async def nothing() -> None:
    """What a step does that is left out."""
