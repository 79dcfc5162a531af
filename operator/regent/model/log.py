"""How Regent's rules log: constant messages and fields, no formatted sentences.

They have no logger of their own. The shell passes one that writes structured logs; the simulation
passes one that becomes part of the trace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Protocol

_EXAMPLES = 20


class StructuredLog(Protocol):
    """Where the core writes. Messages are constant; everything variable is a field."""

    @property
    def traces_state_changes(self) -> bool:
        """Whether :meth:`state_change` does anything: callers in hot loops ask first."""
        ...

    def info(self, message: str, **fields: object) -> None: ...

    def warning(self, message: str, **fields: object) -> None: ...

    def error(self, message: str, **fields: object) -> None: ...

    def state_change(self, what: object, before: object, after: object, **fields: object) -> None:
        """One transition of one partition or replica: Kafka's ``state-change.log``."""
        ...


def examples(things: Iterable[object]) -> list[str]:
    """The first few of many, to be logged beside their number.

    50,000 partitions in a line are of no use, nor are 50,000 lines.
    """
    return [str(thing) for thing in islice(things, _EXAMPLES)]


def report_malformed(
    log: StructuredLog, message: str, problems: Collection[tuple[str, str]]
) -> None:
    """One entry for all znodes of a kind that were found malformed at once, none if there are none.

    Args:
        message: Constant.
        problems: Path and reason of each.
    """
    if problems:
        first = examples(f"{path}: {reason}" for path, reason in problems)
        log.error(message, znodes=len(problems), examples=first)
