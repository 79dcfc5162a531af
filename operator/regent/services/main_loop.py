"""The event loop of the main thread: it keeps the signals that it handles from ending the process.

asyncio removes its handlers when a loop is closed, and such a signal ends the process again. One
that comes after that, and before the process has ended by itself, cuts its end short.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Final, TypeVarTuple

_Args = TypeVarTuple("_Args")

_READ_MAX: Final = 4096


class MainLoop(asyncio.SelectorEventLoop):
    """A signal that once had a handler is ignored when the handler is gone. To be used in the main
    thread only."""

    def __init__(self) -> None:
        super().__init__()
        self._handlers: dict[int, Callable[[], object]] = {}
        self._woken, self._wakes = socket.socketpair()
        for end in (self._woken, self._wakes):
            end.setblocking(False)
        self.add_reader(self._woken, self._drain)

    def add_signal_handler(
        self, sig: int, callback: Callable[[*_Args], object], *args: *_Args
    ) -> None:
        """See :meth:`asyncio.loop.add_signal_handler`."""
        self._handlers[sig] = partial(callback, *args)
        # Any thread may be the one that gets the signal, and Python's handlers run in this one.
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(sig, self._handle)
        signal.siginterrupt(sig, False)

    def remove_signal_handler(self, sig: int) -> bool:
        """See :meth:`asyncio.loop.remove_signal_handler`. The signal is ignored from then on."""
        if sig not in self._handlers:
            return False
        signal.signal(sig, signal.SIG_IGN)
        del self._handlers[sig]
        return True

    def close(self) -> None:
        """See :meth:`asyncio.loop.close`. The signals are ignored from then on."""
        if self.is_closed():
            return
        for number in tuple(self._handlers):
            self.remove_signal_handler(number)
        signal.set_wakeup_fd(-1)
        self.remove_reader(self._woken)
        super().close()
        self._woken.close()
        self._wakes.close()

    def _handle(self, number: int, _: FrameType | None) -> None:
        handler = self._handlers.get(number)
        if handler is not None:
            self.call_soon_threadsafe(handler)

    def _drain(self) -> None:
        """Forget what woke the loop: by now the handlers have run."""
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(_READ_MAX):
                pass
