"""Where ZooKeeper's servers are, while name servers may not answer.

A lookup that is not answered takes as long as many sessions last, or longer (in a pod, with its
search domains, 20 s and more). So servers are looked up beside each other, none is waited for long,
and one whose lookup is not answered is taken to be where it was. What was answered too late for one
look is known at the next one.
"""

from __future__ import annotations

import concurrent.futures
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

Server = tuple[str, int]
Address = tuple[str, str, int]
"""Host, address and port."""

PATIENCE_S: Final = 2.0
"""For the answers of name servers, all in all."""

_NOT_ANSWERED: Final = "name servers have not answered yet"


class ServerLookup(Protocol):
    """Knows the addresses of servers."""

    def addresses(
        self, servers: Sequence[Server], *, on_failure: Callable[[str], None]
    ) -> list[Address]: ...


class KnownServer:
    """One server at an address that is known, whichever are asked for."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def addresses(
        self, servers: Sequence[Server], *, on_failure: Callable[[str], None]
    ) -> list[Address]:
        return [self._address]


class HostLookup:
    """Looks the same servers up again and again, for one session after the other. The thread of a
    session that is over may still be at it when that of the next one comes.

    Args:
        patience_s: See :data:`PATIENCE_S`.
    """

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._running: dict[Server, concurrent.futures.Future[list[Address]]] = {}
        self._known: dict[Server, list[Address]] = {}

    def addresses(
        self, servers: Sequence[Server], *, on_failure: Callable[[str], None]
    ) -> list[Address]:
        """All addresses of the servers that are known.

        Args:
            on_failure: Called with what is wrong with each of the others.
        """
        lookups = {server: self._begin(server) for server in servers}
        concurrent.futures.wait(lookups.values(), timeout=self._patience_s)
        found: list[Address] = []
        for server, lookup in lookups.items():
            found += self._outcome(server, lookup, on_failure)
        return found

    def _begin(self, server: Server) -> concurrent.futures.Future[list[Address]]:
        """A lookup that runs is not begun again: there is one thread for each server at most."""
        running = self._running.get(server)
        if running is not None:
            if not running.done():
                return running
            self._take(server, running)
        lookup = self._running[server] = concurrent.futures.Future()
        arguments = (server, lookup)
        try:
            threading.Thread(
                target=_look_up, args=arguments, name="zookeeper-lookup", daemon=True
            ).start()
        except RuntimeError:  # there are too many threads
            _look_up(*arguments)
        return lookup

    def _take(
        self, server: Server, ended: concurrent.futures.Future[list[Address]]
    ) -> BaseException | None:
        """Note what a lookup has found; the error if it was none."""
        error = ended.exception()
        if error is None:
            self._known[server] = ended.result()
        return error

    def _outcome(
        self,
        server: Server,
        lookup: concurrent.futures.Future[list[Address]],
        on_failure: Callable[[str], None],
    ) -> list[Address]:
        error = self._take(server, lookup) if lookup.done() else None
        if error is None or _is_for_now(error):
            known = self._known.get(server)
            if known is not None:
                return known
        on_failure(f"the host {server[0]!r} cannot be resolved: {error or _NOT_ANSWERED}")
        return []


def _look_up(server: Server, lookup: concurrent.futures.Future[list[Address]]) -> None:
    host, port = server
    try:
        known = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        lookup.set_exception(error)
    except BaseException as error:
        lookup.set_exception(error)
        raise
    else:
        lookup.set_result([(host, str(each[4][0]), int(each[4][1])) for each in known])


def _is_for_now(error: BaseException) -> bool:
    """Whether no name server has said that there is no such host."""
    return isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
