"""Messages of the controller that are named elsewhere."""

from __future__ import annotations

from typing import Final

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
