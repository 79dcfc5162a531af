"""Runs kopf's watch streams within the loop of the process."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import kopf

from regent.kube.handlers import HandlerContext, build_registry, build_settings
from regent.kube.settings import PAGE_SIZE
from regent.kube.watch_session import WatchSessions
from regent.resources.kind import ResourceKind

# Without peering nobody asks for it. Left out, kopf makes one from the name of the process's user,
# and fails if the user has none, as in a container. (Its type has no public name.)
_IDENTITY: Final[Any] = "regent"


@dataclass(frozen=True, slots=True, kw_only=True)
class KopfOptions:
    """What kopf is run with.

    Attributes:
        kinds: What is watched.
        on_event: Takes every watch event: the kind, the type of the event, the object.
        on_signal: Called for SIGTERM and SIGINT, if this runs in the main thread. (kopf would stop
            at once, before the controller has handed over.)
        ready_flag: Set once all resources are watched.
        page_size: Objects per page when listing.
    """

    kinds: Sequence[ResourceKind]
    on_event: Callable[[str, str | None, Mapping[str, Any]], None]
    on_signal: Callable[[], None]
    ready_flag: asyncio.Event | None = None
    page_size: int = PAGE_SIZE


async def run_kopf(
    options: KopfOptions, *, namespaces: Collection[str], until: Iterable[asyncio.Future[Any]]
) -> None:
    """Watch until one of the futures is done, or new sessions with the API server are needed.

    Args:
        namespaces: Namespaces to be watched; none: all of them.

    Raises:
        Exception: kopf could not go on: a right was taken away, the CRD is gone.
    """
    kopf_stop = asyncio.Event()
    sessions = WatchSessions(options.kinds, on_outdated=kopf_stop.set)

    def stop(_: asyncio.Future[Any]) -> None:
        kopf_stop.set()

    watched = set(until)
    for future in watched:
        future.add_done_callback(stop)
    kopf_tasks = await kopf.spawn_tasks(
        registry=build_registry(options.kinds, sessions.login),
        settings=build_settings(page_size=options.page_size),
        standalone=True,
        identity=_IDENTITY,
        clusterwide=not namespaces,
        namespaces=namespaces,
        stop_flag=kopf_stop,
        ready_flag=options.ready_flag,
        memo=HandlerContext(on_event=options.on_event),
    )
    if threading.current_thread() is threading.main_thread():
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, options.on_signal)
    try:
        await kopf.run_tasks(kopf_tasks, ignored=_AnyTask())
    finally:
        kopf_stop.set()
        for future in watched:
            future.remove_done_callback(stop)
        await sessions.close()


class _AnyTask(Collection["asyncio.Task[Any]"]):
    """Holds every task there is. What kopf has to ignore at its end.

    kopf cancels all tasks of the loop that did not exist when it began, also foreign ones. It ends
    its own ones through its root tasks, so nothing of its own is left over by ignoring all others.
    """

    def __contains__(self, task: object) -> bool:
        return True

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        return iter(asyncio.all_tasks())

    def __len__(self) -> int:
        return len(asyncio.all_tasks())
