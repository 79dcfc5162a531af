"""The ZooKeeper session: its life, and how long it can be trusted.

A :class:`ZooKeeperSession` keeps one session alive and replaces it by a new one when it is gone;
each is a :class:`~regent.zookeeper.generation.Generation`. Everything public belongs to one asyncio
loop, except what is said to be safe from any thread. kazoo's threads only pass events on to that
loop.

**Fencing.** Code that relies on the session (sends requests to brokers) must stop
before the servers can have expired it. kazoo reports an expired session only after it has reached a
server again (python-zk/kazoo#89), so the session keeps a deadline of its own: two thirds of the
granted session timeout after the moment at which the last request was *sent* that the servers have
answered. Only handshakes and heartbeats count. A heartbeat is a ``sync``, which a follower has to
pass on to the leader, so a follower that was cut off from the ensemble cannot keep us confident.
Heartbeats come from a thread of their own: a busy loop must not look like a lost session.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from kazoo.protocol.states import KeeperState

from regent.model.errors import (
    RegentError,
    SessionExpiredError,
    UnexpectedZooKeeperError,
    ZooKeeperError,
    ZooKeeperUnavailableError,
)
from regent.runtime.blocking_call import call_blocking
from regent.zk_data.operations import SessionState
from regent.zookeeper.establishing import ensure_chroot, find_bulk_reads
from regent.zookeeper.generation import Generation
from regent.zookeeper.host_lookup import HostLookup
from regent.zookeeper.settings import ZooKeeperSettings
from regent.zookeeper.tls import tls_context
from regent.zookeeper.upgraded_server import is_upgraded
from regent.zookeeper.vital_thread import VitalThread, defect_of

logger = logging.getLogger(__name__)

StateListener = Callable[[SessionState], None]

_RETRY_PAUSE_S_MIN: Final = 0.5
_RETRY_PAUSE_S_MAX: Final = 15.0
_CHROOT_PAUSE_S: Final = 5.0
LOOK_AGAIN_PAUSE_S: Final = 30.0
"""From a reconnection until a server that was too old for some requests is asked again."""


class ZooKeeperSession:
    """One session after the other.

    Use as ``async with``, or call :meth:`start` and :meth:`close`.
    """

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self._settings = settings
        self._listeners: list[StateListener] = []
        self._generation: Generation | None = None
        self._established = asyncio.Event()
        self._failure: RegentError | None = None
        self._establishing: asyncio.Task[None] | None = None
        self._establishing_of: Generation | None = None
        self._looking_again: asyncio.Task[None] | None = None
        self._closing = threading.Event()
        self._supervisor: VitalThread | None = None
        self._supervised: Generation | None = None
        self._logged_failure: str | None = None
        self._lookup = HostLookup()

    # Any thread.

    @property
    def settings(self) -> ZooKeeperSettings:
        return self._settings

    @property
    def last_contact(self) -> float:
        """When the last request was sent that ZooKeeper has answered; monotonic seconds."""
        generation = self._generation
        return float("-inf") if generation is None else generation.last_contact

    @property
    def fence_deadline(self) -> float:
        """The time from which nothing may be done under this session; monotonic seconds."""
        generation = self._generation
        return float("-inf") if generation is None else generation.fence_deadline

    @property
    def problem(self) -> str | None:
        """Why there is no connection, as far as is known; None while there is one."""
        supervised = self._supervised
        return None if supervised is None else supervised.problem

    def defect(self) -> str | None:
        """Why there will be no further session in this process, or None."""
        return defect_of(self._supervisor)

    def is_fenced(self, now: float | None = None) -> bool:
        """Whether the session must not be trusted (any more).

        Args:
            now: ``time.monotonic()``, which is also the default.
        """
        return (time.monotonic() if now is None else now) >= self.fence_deadline

    # The asyncio loop.

    @property
    def session_id(self) -> int:
        """Id of the current session, 0 if there is none."""
        return 0 if self._generation is None else self._generation.session_id

    @property
    def is_connected(self) -> bool:
        """Whether there is a session and a connection."""
        return self._generation is not None and self._generation.is_connected

    def subscribe(self, listener: StateListener) -> None:
        """Call ``listener`` with every change of the session's state, in the loop."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: StateListener) -> None:
        """Undo :meth:`subscribe`."""
        self._listeners.remove(listener)

    def generation(self) -> Generation:
        """The current session.

        Raises:
            SessionExpiredError: If there is none (yet, or any more).
        """
        if self._generation is None:
            raise SessionExpiredError("there is no ZooKeeper session")
        return self._generation

    async def start(self, *, timeout_s: float | None = None) -> None:
        """Connect, and wait for the first session.

        Args:
            timeout_s: How long to wait; None: no bound. Whatever happens, the attempts go on until
                :meth:`close`.

        Raises:
            ConfigurationError: If the settings cannot work.
            ZooKeeperUnavailableError: If the time is up.
            UnexpectedZooKeeperError: If the chroot is missing and may not be created.
        """
        self._settings.validate()
        if self._settings.tls is not None:
            tls_context(self._settings.tls)
        if self._supervisor is None:
            loop = asyncio.get_running_loop()
            supervisor = VitalThread(
                target=self._supervise, args=(loop,), name="zookeeper-session", daemon=True
            )
            supervisor.start()
            self._supervisor = supervisor
        await self.wait_until_established(timeout_s=timeout_s)

    async def wait_until_established(self, *, timeout_s: float | None = None) -> None:
        """Wait until there is a session, be it connected or suspended; see :meth:`start`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._established.wait()
        except TimeoutError as error:
            why = "" if self.problem is None else f": {self.problem}"
            raise ZooKeeperUnavailableError(
                f"no ZooKeeper session within {timeout_s} s; asked "
                f"{','.join(self._settings.hosts)}{why}"
            ) from error
        if self._generation is None and self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """End the session: its ephemeral nodes vanish at once. No state is reported any more."""
        self._listeners.clear()
        self._closing.set()
        if self._looking_again is not None:
            self._looking_again.cancel()
        if self._supervised is not None:
            self._supervised.interrupt()
        if self._supervisor is not None:
            await call_blocking(self._supervisor.join)
        if self._establishing is not None:
            self._establishing.cancel()
        if self._looking_again is not None:
            await asyncio.gather(self._looking_again, return_exceptions=True)

    async def __aenter__(self) -> ZooKeeperSession:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # SessionListener: the life of a generation, in the loop.

    def on_connected(self, generation: Generation) -> None:
        if generation.is_established:
            self._tell(SessionState.RECONNECTED)
            if self._looking_again is not None:
                self._looking_again.cancel()
            self._looking_again = asyncio.create_task(self._look_again(generation))
        elif self._establishing_of is not generation:
            self._establishing_of = generation
            self._establishing = asyncio.get_running_loop().create_task(self._establish(generation))

    def on_suspended(self, generation: Generation) -> None:
        if generation.is_established:
            self._tell(SessionState.SUSPENDED)

    def on_ended(self, generation: Generation, state: str) -> None:
        if state == KeeperState.AUTH_FAILED:
            logger.error(
                "ZooKeeper refused the credentials",
                extra={
                    "servers": ",".join(self._settings.hosts),
                    "problem": self._settings.refused_credentials,
                },
            )
        if generation is self._generation:
            self._generation = None
            self._established.clear()
            self._tell(SessionState.EXPIRED)

    async def _establish(self, generation: Generation) -> None:
        """Make a connected session the current one, once it is good for something."""
        while True:
            try:
                await find_bulk_reads(generation)
                await ensure_chroot(generation, self._settings)
                break
            except SessionExpiredError:
                return
            except ZooKeeperUnavailableError:
                continue
            except UnexpectedZooKeeperError as error:
                logger.exception(
                    "The ZooKeeper chroot cannot be created",
                    extra={"chroot": self._settings.chroot},
                )
                self._failure = error
                self._established.set()
                await asyncio.sleep(_CHROOT_PAUSE_S)  # somebody may create it meanwhile
            except Exception as error:  # noqa: BLE001 - else it would be kept alive, and never used
                self._fail(error)
                await asyncio.sleep(_RETRY_PAUSE_S_MIN)
        if not generation.has_bulk_reads:
            logger.info("ZooKeeper does not know bulk reads; reading one by one")
        if generation.is_connected:
            generation.problem = None
        generation.is_established = True
        self._generation = generation
        self._failure = None
        self._established.set()
        self._tell(SessionState.CONNECTED)
        if not generation.is_connected:
            self._tell(SessionState.SUSPENDED)

    async def _look_again(self, generation: Generation) -> None:
        """After a reconnection: if the session has met a server that was too old for some requests,
        find out whether the one that it is connected to now knows them."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_PAUSE_S)
            server = generation.client.server
            if not (generation.is_lacking and generation.is_connected and server is not None):
                return
            try:
                knows_all = await is_upgraded(server, self._settings)
            except ZooKeeperError as error:
                logger.info("The ZooKeeper server is asked again", extra={"problem": str(error)})
                continue
            except Exception:  # the session goes on with less
                logger.exception("A defect keeps Regent from asking what the server knows")
                return
            if knows_all and generation.is_connected and generation.client.server == server:
                generation.has_bulk_reads = generation.has_recursive_watches = True
                logger.info("The ZooKeeper server was upgraded: it knows bulk reads and watches")
            return

    def _tell(self, state: SessionState) -> None:
        logger.info("ZooKeeper session state", extra={"state": state.value})
        for listener in tuple(self._listeners):
            listener(state)

    # The supervisor's thread.

    def _supervise(self, loop: asyncio.AbstractEventLoop) -> None:
        """Keep a session alive; when it ends, start the next. Whatever fails, such as the start of
        a thread of kazoo's, is an end like others."""
        pause_s = 0.0
        while not self._closing.wait(pause_s):
            end_state: str | None = None
            try:
                end_state = self._live_through(loop)
                self._logged_failure = None
            except Exception as error:  # noqa: BLE001 - without this thread there is no further one
                self._fail(error)
            if end_state == KeeperState.EXPIRED_SESSION:
                pause_s = 0.0
            else:  # refused credentials and the like: they will be refused for some time
                pause_s = min(pause_s * 2 or _RETRY_PAUSE_S_MIN, _RETRY_PAUSE_S_MAX)

    def _live_through(self, loop: asyncio.AbstractEventLoop) -> str | None:
        """Have a session, heartbeat by heartbeat, to its end. Returns kazoo's state for that."""
        generation = Generation(self._settings, loop=loop, listener=self, lookup=self._lookup)
        generation.problem = self.problem
        self._supervised = generation
        try:
            generation.client.start_async()
            while not self._closing.is_set() and not generation.wait_until_over(
                generation.heartbeat_interval_s
            ):
                generation.heartbeat()
        finally:
            try:
                generation.client.dispose()
            finally:
                generation.ended(KeeperState.CLOSED)  # unless its end is known
        return generation.end_state

    def _fail(self, error: Exception) -> None:
        """Keep the reason until there is a connection. The same one is logged once."""
        problem = f"a session cannot be begun or kept, trying again: {error!r}"
        if self._supervised is not None:
            self._supervised.problem = problem
        if problem != self._logged_failure:
            self._logged_failure = problem
            logger.error(
                "The ZooKeeper session failed; trying again",
                extra={"error": repr(error)},
                exc_info=error,
            )
