"""Named checks in ordered chains.

A check is a function that looks at one thing and returns a :class:`Finding` if it is wrong. Its
reason becomes the reason of a condition, its message says what is wrong and what to do. Chains are
plain tuples: the order in which people meet the findings is visible where the chain is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from regent.resources.conditions import ConditionReason

SubjectT = TypeVar("SubjectT")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that keeps a resource from being as declared.

    Attributes:
        message: Names the thing, the value and what to do.
        field: Field of the resource concerned, for instance ``spec.partitions``; empty if none.
        is_transient: Whether it may heal without a change of the resource.
    """

    reason: ConditionReason
    message: str
    field: str = ""
    is_transient: bool = False

    @property
    def text(self) -> str:
        """The message with the field in front of it."""
        return f"{self.field}: {self.message}" if self.field else self.message


Check = Callable[[SubjectT], Finding | None]


def first_finding(chain: Sequence[Check[SubjectT]], subject: SubjectT) -> Finding | None:
    """The finding of the first check in the chain that has one.

    Later checks are not run: they may rely on what earlier ones have found in order.
    """
    return next(_findings(chain, subject), None)


def all_findings(chain: Sequence[Check[SubjectT]], subject: SubjectT) -> tuple[Finding, ...]:
    """What each check of the chain finds, in order."""
    return tuple(_findings(chain, subject))


def _findings(chain: Sequence[Check[SubjectT]], subject: SubjectT) -> Iterator[Finding]:
    for check in chain:
        finding = check(subject)
        if finding is not None:
            yield finding
