"""How the core speaks of what it does: constant messages and fields, never formatted sentences.

The core has no logger of its own. The shell passes one that writes structured logs; the simulation
passes one that becomes part of the trace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final, Protocol

_EXAMPLES = 20

MALFORMED_NOTIFICATIONS: Final = "Malformed notifications"

ISR_CHANGES_NOT_WRITTEN: Final = "ISR changes not written"
LEADERS_WAIT: Final = "Leaders wait: their leader epochs cannot be raised"
PRODUCER_IDS_UNREADABLE: Final = "Producer ids not readable"
PRODUCER_IDS_MALFORMED: Final = "Malformed producer id block"
PRODUCER_IDS_EXHAUSTED: Final = "Producer ids exhausted"
PRODUCER_IDS_NOT_WRITTEN: Final = "Producer ids not written"
PRODUCER_IDS_CONTENDED: Final = "Producer ids not allocated: others write at the same time"
PRODUCER_IDS_SET_BACK: Final = (
    "Producer ids were given that ZooKeeper does not know: it goes on above them. Was ZooKeeper "
    "restored from a backup, or the node deleted or edited?"
)

MAY_RECUR: Final = frozenset(
    {
        MALFORMED_NOTIFICATIONS,
        ISR_CHANGES_NOT_WRITTEN,
        LEADERS_WAIT,
        PRODUCER_IDS_UNREADABLE,
        PRODUCER_IDS_MALFORMED,
        PRODUCER_IDS_EXHAUSTED,
        PRODUCER_IDS_NOT_WRITTEN,
        PRODUCER_IDS_CONTENDED,
        PRODUCER_IDS_SET_BACK,
    }
)
"""Messages that somebody else may cause any number of times, as brokers that ask again and again
do: the shell writes a few of each in a minute, with the number of those that it has left out."""


class ControllerLog(Protocol):
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
    log: ControllerLog, message: str, problems: Collection[tuple[str, str]]
) -> None:
    """One entry for all znodes of a kind that were found malformed at once, none if there are none.

    Args:
        message: Constant.
        problems: Path and reason of each.
    """
    if problems:
        first = examples(f"{path}: {reason}" for path, reason in problems)
        log.error(message, znodes=len(problems), examples=first)
