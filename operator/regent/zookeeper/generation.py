"""One ZooKeeper session from its first connection to its end, and the requests made under it.

A request belongs to the generation it was made under and to no other: when the session is gone, so
are they. So a caller that does several things in a row that belong to one session takes the
generation once and keeps it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from kazoo.protocol.serialization import Sync
from kazoo.protocol.states import KeeperState

from regent.model.errors import SessionExpiredError, ZooKeeperUnavailableError
from regent.zookeeper.answering import Batch, GiveUp, HeartbeatSink, Slot, post
from regent.zookeeper.errors import CONNECTION_LOSS, Failure, code_of, failure_of
from regent.zookeeper.host_lookup import ServerLookup
from regent.zookeeper.kazoo_client import OneSessionClient
from regent.zookeeper.settings import ZooKeeperSettings

logger = logging.getLogger(__name__)

T = TypeVar("T")

FENCE_FRACTION: Final = 2 / 3
"""Of the session timeout."""
SILENCE_FRACTION: Final = 1 / 2
"""Of the session timeout: for so long a connection may say nothing before another one is tried."""
HEARTBEAT_FRACTION: Final = 1 / 8
"""Of the session timeout."""
_HEARTBEAT_INTERVAL_S_FIRST: Final = 0.2

BATCHES_IN_FLIGHT: Final = 6
BATCH_SIZE: Final = 32
"""Requests that are handed to kazoo together and awaited together. kazoo wakes its connection
thread with a byte per request through a socket pair that blocks the caller when some 270 are
unread: ``BATCHES_IN_FLIGHT * BATCH_SIZE`` stays below that, and so short that heartbeats get
through."""

_REPEAT_PAUSE_S: Final = 0.05
_LOSSES_SUSPICIOUS: Final = 3
"""A server closes the connection at a request that is too large for it, without an answer."""
_WARNING_INTERVAL_S: Final = 30.0
"""Between two log entries about servers that are not reached."""

Answer = object
"""What kazoo's request object made of an answer, or the exception that the server answered."""


class SessionListener(Protocol):
    """Notified about a generation in the asyncio loop."""

    def on_connected(self, generation: Generation) -> None: ...

    def on_suspended(self, generation: Generation) -> None: ...

    def on_ended(self, generation: Generation, state: str) -> None: ...


class Generation:
    """A session and its requests.

    Belongs to the asyncio loop; ``fence_deadline``, ``heartbeat``, ``wait_until_over`` and the
    observer's methods may be used from any thread.

    Attributes:
        session_id: 0 before the first connection.
        settings: How the servers are reached, and what they can take.
        problem: Why there is no connection, as far as is known; None while there is one. May be
            read by any thread.
        end_state: kazoo's ``KeeperState`` with which the session ended, None before.
        is_established: Set by the owner once the session may be used.
        has_bulk_reads: False once a server was found not to know MultiRead.
        has_recursive_watches: False once a server was found not to know AddWatch.

    Args:
        lookup: See :class:`~regent.zookeeper.kazoo_client.OneSessionClient`.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        listener: SessionListener,
        lookup: ServerLookup | None = None,
    ) -> None:
        self.session_id = 0
        self.problem: str | None = None
        self.end_state: str | None = None
        self.is_established = False
        self.has_bulk_reads = True
        self.has_recursive_watches = True
        self.settings = settings
        self._loop = loop
        self._listener = listener
        self._chroot = settings.chroot
        self._bound_s = settings.unavailable_after_s
        self._connected = asyncio.Event()
        self._is_over = False
        self._pending: dict[asyncio.Future[list[Any]], None] = {}
        self._slots = asyncio.Semaphore(BATCHES_IN_FLIGHT)
        self._over = threading.Event()
        self._last_contact = float("-inf")
        self._last_heard = float("-inf")
        self._answered_heartbeat = float("-inf")
        self._granted_timeout_s = 0.0
        self._warned_at = -_WARNING_INTERVAL_S
        self.client = OneSessionClient(settings, self, lookup)

    # Any thread.

    @property
    def last_contact(self) -> float:
        """When the last request was sent that the servers have answered; monotonic seconds."""
        return self._last_contact

    @property
    def fence_deadline(self) -> float:
        """From when on the session must not be trusted; monotonic seconds."""
        return (
            float("-inf")
            if self._over.is_set()
            else self._last_contact + self._granted_timeout_s * FENCE_FRACTION
        )

    @property
    def heartbeat_interval_s(self) -> float:
        """How often :meth:`heartbeat` is to be called; short until the servers have granted a
        session timeout."""
        return self._granted_timeout_s * HEARTBEAT_FRACTION or _HEARTBEAT_INTERVAL_S_FIRST

    def heartbeat(self) -> None:
        """Ask the servers for a sign of life. Its answer moves ``fence_deadline``.

        A connection that has been silent for too long is given up. kazoo would notice that only by
        its own pings, which it does not send as long as there are requests to be sent.
        """
        if not self.client.connected:
            return
        now = time.monotonic()
        silence_s = now - self._last_heard
        if silence_s > self._granted_timeout_s * SILENCE_FRACTION:
            self.client._call(GiveUp(silence_s), HeartbeatSink(self.prove_contact, now))
        else:
            self.client._call(Sync("/"), HeartbeatSink(self._heartbeat_answered, now))

    def wait_until_over(self, timeout_s: float) -> bool:
        """Block until the session is over or the time is up; whether it is over."""
        return self._over.wait(timeout_s)

    def interrupt(self) -> None:
        """Let ``wait_until_over`` return now."""
        self._over.set()

    def _heartbeat_answered(self, sent_at: float) -> None:
        self._answered_heartbeat = max(self._answered_heartbeat, sent_at)
        self.prove_contact(sent_at)

    def has_answered_since(self, moment: float) -> bool:
        return self._answered_heartbeat > moment

    def prove_contact(self, sent_at: float) -> None:
        """The servers have answered what was sent at ``sent_at``."""
        self._last_contact = max(self._last_contact, sent_at)
        self.record_contact()

    def record_contact(self) -> None:
        """Something has arrived over the connection."""
        self._last_heard = time.monotonic()

    # kazoo's connection thread.

    def handshake_done(self, sent_at: float, granted_timeout_ms: int) -> None:
        self._granted_timeout_s = granted_timeout_ms / 1000
        self.prove_contact(sent_at)

    def is_overdue(self) -> bool:
        return time.monotonic() > self._last_contact + self._granted_timeout_s > 0

    def attempt_failed(self, reason: str) -> None:
        self.problem = reason
        now = time.monotonic()
        if now - self._warned_at >= _WARNING_INTERVAL_S:
            self._warned_at = now
            logger.warning("ZooKeeper server not reached; retrying", extra={"problem": reason})

    def connected(self, session_id: int) -> None:
        self.problem = None
        self.session_id = session_id
        self._post(self._on_connected)

    def suspended(self) -> None:
        self._post(self._on_suspended)

    def ended(self, state: str) -> None:
        self.end_state = self.end_state or state
        if state == KeeperState.AUTH_FAILED:
            self.problem = self.settings.refused_credentials
        self._over.set()
        self._post(self._on_ended, state)

    def _post(self, callback: Callable[..., None], *arguments: object) -> None:
        post(self._loop, callback, *arguments)

    # The asyncio loop.

    def absolute(self, path: str) -> str:
        """A path as the servers know it, with the chroot."""
        return path if not self._chroot else (self._chroot + path).rstrip("/")

    @property
    def is_lacking(self) -> bool:
        """Whether a server was found not to know requests that came with ZooKeeper 3.6."""
        return not (self.has_bulk_reads and self.has_recursive_watches)

    @property
    def is_connected(self) -> bool:
        return self._connected.is_set() and not self._is_over

    async def answers(self, requests: Sequence[object]) -> list[Answer]:
        """The servers' answers in order; what a lost connection swallowed is asked again.

        Raises:
            SessionExpiredError: If the session is over.
            ZooKeeperUnavailableError: If there is no answer within the bound, counted from the
                first failure.
        """
        answers: list[Answer] = [None] * len(requests)
        missing = list(range(len(requests)))
        deadline = self._loop.time() + self._bound_s
        is_first = True
        losses = 0
        while True:
            try:
                await self.connection(deadline)
            except ZooKeeperUnavailableError as error:
                raise ZooKeeperUnavailableError(f"{error}{_after(losses)}") from error
            if not is_first:
                # A server may also answer "not now" over a good connection.
                await asyncio.sleep(_REPEAT_PAUSE_S)
            outcomes = await self.call([requests[index] for index in missing])
            failed: list[int] = []
            for index, outcome in zip(missing, outcomes, strict=True):
                if isinstance(outcome, Exception) and is_repeatable(outcome):
                    failed.append(index)
                else:
                    answers[index] = outcome
            if not failed:
                return answers
            missing = failed
            losses += any(
                isinstance(each, Exception) and code_of(each) == CONNECTION_LOSS
                for each in outcomes
            )
            if is_first:
                is_first = False
                deadline = self._loop.time() + self._bound_s
            elif self._loop.time() >= deadline:
                raise ZooKeeperUnavailableError(
                    f"no answer within {self._bound_s:g} s{_after(losses)}"
                )

    async def call(self, requests: Sequence[object]) -> list[Answer]:
        """Send requests once; each one's answer, or the exception with which it failed.

        Args:
            requests: At most :data:`BATCH_SIZE`.

        Raises:
            SessionExpiredError: If the session is or gets over.
            ZooKeeperUnavailableError: If there is no answer within the bound.
        """
        async with self._slots:
            return await self._call(requests)

    async def call_at_once(self, request: object) -> Answer:
        """:meth:`call`, without waiting for what was to be sent before. For a few short ones: they
        are beside :data:`BATCHES_IN_FLIGHT`."""
        (answer,) = await self._call([request])
        return answer

    async def _call(self, requests: Sequence[object]) -> list[Answer]:
        self.require()
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        batch = Batch(len(requests), future, on_contact=self.record_contact)
        entries = [(request, Slot(batch, index)) for index, request in enumerate(requests)]
        self._pending[future] = None
        try:
            for request, slot in entries:
                self.client._call(request, slot)
            return await self._within_bound(future)
        except BaseException:
            self._withdraw(entries)
            raise
        finally:
            del self._pending[future]

    def _withdraw(self, entries: Sequence[tuple[object, Slot]]) -> None:
        """Take back what waits for a connection, so that it is not carried out long after its
        caller has given up."""
        for entry in entries:
            with contextlib.suppress(ValueError):  # it has been sent
                self.client._queue.remove(entry)

    async def connection(self, deadline: float | None = None) -> None:
        """Wait until the session is connected.

        Args:
            deadline: Loop time; None: the bound from now on.

        Raises:
            SessionExpiredError: If the session is over.
            ZooKeeperUnavailableError: If the time is up.
        """
        self.require()
        if not self._connected.is_set():
            when = self._loop.time() + self._bound_s if deadline is None else deadline
            try:
                async with asyncio.timeout_at(when):
                    await self._connected.wait()
            except TimeoutError as error:
                raise ZooKeeperUnavailableError(
                    f"no connection to ZooKeeper within {self._bound_s:g} s"
                ) from error
            self.require()

    def require(self) -> None:
        """Raise ``SessionExpiredError`` if the session is over."""
        if self._is_over:
            raise SessionExpiredError("the ZooKeeper session is gone")

    async def _within_bound(self, future: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._bound_s):
                return await future
        except TimeoutError as error:
            raise ZooKeeperUnavailableError(
                f"no answer from ZooKeeper within {self._bound_s:g} s"
            ) from error

    def _on_connected(self) -> None:
        self._connected.set()
        self._listener.on_connected(self)

    def _on_suspended(self) -> None:
        self._connected.clear()
        self._listener.on_suspended(self)

    def _on_ended(self, state: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._connected.set()  # those who wait find that the session is over
        for future in self._pending:
            if not future.done():
                future.set_exception(SessionExpiredError("the ZooKeeper session is gone"))
        self._listener.on_ended(self, state)


def _after(losses: int) -> str:
    """What many connections that were lost at the same requests may mean."""
    if losses < _LOSSES_SUSPICIOUS:
        return ""
    return (
        f"; {losses} connections were lost at the same requests: if a server's log says "
        "'Len error', its jute.maxbuffer is smaller than zookeeper_jute_max_buffer, which has to "
        "be set to that of the servers"
    )


def is_repeatable(error: Exception) -> bool:
    """Whether a request that failed so is to be sent again.

    Raises:
        SessionExpiredError: If the session is over.
    """
    failure = failure_of(error)
    if failure is Failure.SESSION_OVER:
        raise SessionExpiredError("the ZooKeeper session is gone") from error
    return failure is Failure.REPEATABLE
