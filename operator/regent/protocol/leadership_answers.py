"""Which batches a broker has answered, of those that inform it of leadership.

Each batch has a number that grows. What waits is merged, so that a request may be of several; what
counts is the oldest one of which something is left.
"""

from __future__ import annotations


class LeadershipAnswers:
    """Of one life of a broker."""

    def __init__(self) -> None:
        self._waiting: int | None = None
        self._in_flight: int | None = None
        self._unread: int | None = None

    def oldest(self, *, is_waiting: bool) -> int | None:
        """The oldest batch that is not answered, or whose answer has not been read; None: there is
        none.

        Args:
            is_waiting: Whether leadership waits to be sent: what waited may have become void.
        """
        waiting = self._waiting if is_waiting else None
        known = [n for n in (waiting, self._in_flight, self._unread) if n is not None]
        return min(known, default=None)

    @property
    def has_unread(self) -> bool:
        """Whether the broker has answered something that the controller has not read."""
        return self._unread is not None

    def added(self, number: int, *, is_first: bool) -> None:
        """Leadership of a batch waits now.

        Args:
            is_first: Whether none has waited before.
        """
        if is_first or self._waiting is None:
            self._waiting = number

    def sent(self) -> None:
        """What waited, or a part of it, is on its way."""
        self._in_flight = self._waiting

    def answered(self) -> None:
        """The broker has answered what was on its way; the controller has not read that yet."""
        if self._unread is None:
            self._unread = self._in_flight
        self._in_flight = None

    def read(self) -> None:
        """The controller has taken in every answer."""
        self._unread = None
