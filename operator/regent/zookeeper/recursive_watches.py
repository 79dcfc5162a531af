"""Persistent recursive watches: ``RecursiveWatchesPort`` over a session.

**Order.** A server sends what a watch has to say of a transaction before it answers anything that
comes after that transaction. What arrives is kept in kazoo's connection thread, before the answers
that follow are handed to the loop. So when a caller has an answer, :meth:`take` has the events.

**No one-shot watches on the same paths.** A server before 3.9 keeps one mode for a session and a
path: a one-shot watch on the very path of a recursive one replaces that (ZOOKEEPER-4466). On the
nodes below they do not disturb each other.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from regent.model.errors import RecursiveWatchesUnsupportedError
from regent.zk_data.operations import WatchedEventType
from regent.zookeeper.answering import post
from regent.zookeeper.errors import NO_WATCHER, code_of, unexpected
from regent.zookeeper.generation import Generation
from regent.zookeeper.receive_buffer import Event
from regent.zookeeper.recursive_watch_requests import (
    AddWatch,
    RemoveWatches,
    SetWatches2,
    is_unknown,
)
from regent.zookeeper.session import ZooKeeperSession

_EVENT_TYPES: Final[Mapping[int, WatchedEventType]] = {
    1: WatchedEventType.NODE_CREATED,
    2: WatchedEventType.NODE_DELETED,
    3: WatchedEventType.NODE_DATA_CHANGED,
}
"""What recursive watches report. (4, that children have changed, is for others.)"""


class RecursiveWatches:
    """Implements :class:`~regent.runtime.ports.RecursiveWatchesPort` for one asyncio loop.

    Args:
        session: Started by the caller.
    """

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self._chroot = session.settings.chroot
        self._watched: dict[str, None] = {}
        self._prefixes: tuple[str, ...] = ()
        self._paths: frozenset[str] = frozenset()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._touched: dict[str, WatchedEventType] = {}

    def listen(self, listener: Callable[[], None]) -> None:
        """See :class:`~regent.runtime.ports.RecursiveWatchesPort`."""
        self._listener = listener

    async def add(self, paths: Sequence[str]) -> None:
        """See :class:`~regent.runtime.ports.RecursiveWatchesPort`."""
        generation = self._generation()
        self._set_watched([*self._watched, *paths])
        requests = [AddWatch(generation.absolute(path)) for path in paths]
        for path, answer in zip(paths, await generation.answers(requests), strict=True):
            self._require(answer, path, generation)

    async def restore(self) -> None:
        """See :class:`~regent.runtime.ports.RecursiveWatchesPort`."""
        generation = self._generation()
        if not self._watched:
            return
        paths = [generation.absolute(path) for path in self._watched]
        (answer,) = await generation.answers([SetWatches2(paths)])
        self._require(answer, paths[0], generation)

    async def remove(self, paths: Sequence[str]) -> None:
        """See :class:`~regent.runtime.ports.RecursiveWatchesPort`."""
        generation = self._generation()
        requests = [RemoveWatches(generation.absolute(path)) for path in paths]
        for path, answer in zip(paths, await generation.answers(requests), strict=True):
            # A connection that was lost has taken the watch with it.
            if not (isinstance(answer, Exception) and code_of(answer) == NO_WATCHER):
                self._require(answer, path, generation)
        self._set_watched([path for path in self._watched if path not in paths])

    def take(self) -> Mapping[str, WatchedEventType]:
        """See :class:`~regent.runtime.ports.RecursiveWatchesPort`."""
        with self._lock:
            taken, self._touched = self._touched, {}
        return taken

    def _generation(self) -> Generation:
        """The current session, whose events come here from now on."""
        generation = self._session.generation()
        if generation.is_lacking:
            # Asking an older server costs the connection, see `find_bulk_reads`: bulk reads are as
            # old as these watches.
            raise RecursiveWatchesUnsupportedError
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        generation.client.on_event = self._take_event
        return generation

    def _set_watched(self, paths: Sequence[str]) -> None:
        self._watched = dict.fromkeys(paths)
        absolute = [(self._chroot + path).rstrip("/") for path in self._watched]
        self._paths = frozenset(path or "/" for path in absolute)
        self._prefixes = tuple(f"{path}/" for path in absolute)

    def _take_event(self, event: Event) -> None:
        """In kazoo's connection thread."""
        kind, path = event
        if not (path.startswith(self._prefixes) or path in self._paths):
            return
        type_ = _EVENT_TYPES.get(kind)
        if type_ is None:
            return
        inside = path[len(self._chroot) :] or "/"
        with self._lock:
            is_first = not self._touched
            self._touched[inside] = type_
        if is_first and self._listener is not None:
            assert self._loop is not None
            post(self._loop, self._listener)

    def _require(self, answer: object, path: str, generation: Generation) -> None:
        """Raise what an answer other than success stands for."""
        if is_unknown(answer):
            generation.has_recursive_watches = False  # reconnected to an older server
            raise RecursiveWatchesUnsupportedError
        if isinstance(answer, Exception):
            raise unexpected(code_of(answer), path) from answer
