"""A thread with an event loop of its own, and commands that are answered from it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from regent.admin.commands import Outcome
from regent.controller.commands import Command, not_controller
from regent.network.lookup_loop import LookupLoop
from regent.runtime.command_reply import CommandReply

logger = logging.getLogger(__name__)


class ServiceThread(ABC):
    """Runs :meth:`_live` in a thread. Its other methods may be called from any thread."""

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name)
        self._started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._pending: dict[concurrent.futures.Future[Any], Callable[[], Any]] = {}
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Start the thread and return when its loop runs. ZooKeeper may still be out of reach."""
        self._thread.start()
        self._started.result()

    def stop(self) -> None:
        """End in order, and wait for the thread."""
        if self._ask_to_stop():
            self._thread.join()

    async def stopped(self) -> None:
        """:meth:`stop`, awaited in another loop. Needs no further thread: there may be none."""
        if self._ask_to_stop():
            await asyncio.shield(asyncio.wrap_future(self._ended))
            self._thread.join()

    def _ask_to_stop(self) -> bool:
        """Whether there is a thread to wait for."""
        if self._thread.ident is None:
            return False
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        return True

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the thread when that ends, whatever ended it."""
        self._ended.add_done_callback(lambda _: callback())

    @property
    def has_ended(self) -> bool:
        """Whether the thread has done all that it will do. False before it is started."""
        return self._ended.done()

    @property
    def failure(self) -> BaseException | None:
        """What ended the thread, if it was not :meth:`stop`."""
        return self._failure

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        """See :class:`~regent.runtime.ports.ControllerPort`."""
        commands = tuple(commands)
        future: concurrent.futures.Future[tuple[Outcome, ...]] = concurrent.futures.Future()
        # From now on the caller may stop waiting, but only the thread ends this.
        future.set_running_or_notify_cancel()
        self._pending[future] = partial(not_controller, commands)
        future.add_done_callback(lambda done: self._pending.pop(done, None))
        if self._loop is None or self.has_ended or self._loop.is_closed():
            self._pending.pop(future, None)
            return not_controller(commands)
        reply = CommandReply(future)
        self._loop.call_soon_threadsafe(self._take, commands, reply)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            reply.is_given_up = True
            raise

    @abstractmethod
    def _take(self, commands: tuple[Command, ...], reply: CommandReply) -> None:
        """Commands have come. Called in the thread; each caller gets an answer some time. What
        has not begun when nobody waits for it any more is not carried out."""

    @abstractmethod
    async def _live(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set. :meth:`_begun` is to be called once everything is there."""

    def _begun(self) -> None:
        self._started.set_result(None)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=LookupLoop) as runner:
                runner.run(self._main())
        except BaseException as failure:
            self._failure = failure
            if not self._started.done():
                self._started.set_exception(failure)
            logger.critical("Controller thread failed", exc_info=failure)
        finally:
            for future, answer in list(self._pending.items()):
                CommandReply(future)(answer())
            self._ended.set_result(None)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await self._live(self._stop)
