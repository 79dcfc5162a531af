"""A thread without which the process is of no use: its end by an error is kept."""

from __future__ import annotations

import threading


class VitalThread(threading.Thread):
    """A daemon thread.

    Attributes:
        failure: The error that has ended it, None if there was none. May be read by any thread.
    """

    failure: BaseException | None = None

    def run(self) -> None:
        """See :meth:`threading.Thread.run`. The error goes on to ``threading.excepthook``."""
        try:
            super().run()
        except BaseException as error:
            self.failure = error
            raise


def defect_of(thread: VitalThread | None) -> str | None:
    """Why only a restart helps, or None."""
    if thread is None or thread.failure is None:
        return None
    return f"the thread {thread.name} was ended by an error: {thread.failure!r}"
