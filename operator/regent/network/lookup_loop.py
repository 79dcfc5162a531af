"""An event loop in which names that are not resolved hold nothing else up.

asyncio looks names up in the threads in which it does everything that blocks, and these are as few
as there are processors. A lookup that the name servers do not answer takes one of them for half a
minute: some brokers with such names, and no other broker could be reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

_LOOKUPS_MAX: Final = 256
"""At the same time. A lookup waits and takes no processor; its thread is started when needed."""


class LookupLoop(asyncio.SelectorEventLoop):
    """Looks names up in threads of their own; a name that is asked for again while its lookup
    runs, as by attempts to connect that were given up, needs no second one."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(_LOOKUPS_MAX, thread_name_prefix="lookup")
        self._running: dict[tuple[Any, ...], asyncio.Future[list[Any]]] = {}

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - asyncio's name
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """See :meth:`asyncio.loop.getaddrinfo`.

        Raises:
            OSError: If the name is not resolved, also if no thread can be started for that.
        """
        asked = (host, port, family, type, proto, flags)
        lookup = self._running.get(asked)
        if lookup is None:
            try:
                lookup = self.run_in_executor(self._threads, socket.getaddrinfo, *asked)
            except RuntimeError as error:
                # As any lookup that fails for now: whoever asked tries again.
                raise socket.gaierror(socket.EAI_AGAIN, f"no lookup: {error}") from error
            self._running[asked] = lookup
            lookup.add_done_callback(partial(self._end, asked))
        # Who gives up does not end it for others.
        return await asyncio.shield(lookup)

    def _end(self, asked: tuple[Any, ...], lookup: asyncio.Future[list[Any]]) -> None:
        del self._running[asked]
        if not lookup.cancelled():
            lookup.exception()  # everybody may have given up: nobody else looks at it

    async def shutdown_default_executor(self, *arguments: Any) -> None:
        """See :meth:`asyncio.loop.shutdown_default_executor`. It waits in a thread of its own; if
        that cannot be started, the end of the loop waits for nothing."""
        with contextlib.suppress(RuntimeError):
            await super().shutdown_default_executor(*arguments)

    def close(self) -> None:
        """See :meth:`asyncio.loop.close`. Waits for no lookup."""
        for lookup in self._running.values():
            lookup.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        super().close()
