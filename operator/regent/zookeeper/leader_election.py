"""Which of Regent's replicas leads: kazoo's lock recipe, in a thread of its own.

Replicas elect one among themselves before that one contends for ``/controller`` with the brokers.
This election is a courtesy that keeps replicas from working against each other. What keeps a
deposed one from doing harm is the controller epoch, which fences every write.

A *term* begins when the replica stands first in line, and ends when its node or the trust in the
session is gone. The end is reported at once: also when the session is fenced by its own clock while
the servers may still believe in it, and when somebody deletes the node. Then the replica queues up
again, behind the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Self

from kazoo.client import KazooClient
from kazoo.exceptions import CancelledError, KazooException, NoNodeError, SessionExpiredError
from kazoo.protocol.states import WatchedEvent
from kazoo.recipe.lock import Lock
from kazoo.retry import KazooRetry

from regent.runtime.blocking_call import call_blocking
from regent.runtime.ports import ZooKeeperPort
from regent.zk_data.operations import SessionState, ZkError
from regent.zk_data.replicas import queue_order
from regent.zookeeper.answering import post
from regent.zookeeper.awaited_answers import AnswerLostError
from regent.zookeeper.errors import code_of, unexpected
from regent.zookeeper.generation import Generation
from regent.zookeeper.session import ZooKeeperSession
from regent.zookeeper.vital_thread import VitalThread, defect_of

logger = logging.getLogger(__name__)

DEFAULT_PATH: Final = "/regent/election"

_SEQUENCE_LENGTH: Final = 10
_RETRY_PAUSE_S: Final = 1.0
_CLOSE_TIMEOUT_S: Final = 5.0


class Identity(NamedTuple):
    """A replica as its node in the queue names it. Its text is ``host/pid/controller_id``.

    Attributes:
        host: Name of the machine, in Kubernetes that of the pod.
        pid: Id of the process on that host.
        controller_id: The setting.
    """

    host: str
    pid: int
    controller_id: int

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.controller_id}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Inverse of ``str``; None for any other text."""
        try:
            host, pid, controller_id = text.rsplit("/", 2)
            return cls(host, int(pid), int(controller_id))
        except ValueError:
            return None

    def conflicts_with(self, own: Identity) -> bool:
        """Whether this replica has the controller id of this process, and may be alive.

        A former process on this host is dead, and its place ends with its session: its process id
        is free again, or this process has it, as after the restart of a container.
        """
        if self.controller_id != own.controller_id:
            return False
        return self.host != own.host or (self.pid != own.pid and _is_running(self.pid))


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


class ControllerIdInUseError(KazooException):
    """Another replica in the queue has our controller id."""


class LeaderElection:
    """A replica's part in the election, from :meth:`start` to :meth:`close`.

    Belongs to the session's asyncio loop, in which it also calls back.

    Attributes:
        problem: Why this replica cannot take part, None if it can. May be read by any thread.

    Args:
        session: Started by the caller, and closed after the election.
        identifier: Name of the replica for people. If it is the text of an :class:`Identity`, the
            replica stays out of the queue while a live replica there has the same controller id.
        on_elected: A term has begun.
        on_lost: The term is over. Always called once for each ``on_elected``.
        path: Parent of the contenders' nodes, inside the chroot. Created if missing.
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        *,
        identifier: str,
        on_elected: Callable[[], None],
        on_lost: Callable[[], None],
        path: str = DEFAULT_PATH,
    ) -> None:
        self._session = session
        self._identifier = identifier
        self._on_elected = on_elected
        self._on_lost = on_lost
        self._path = session.settings.chroot + path
        self._candidacy: _Candidacy | None = None
        self._is_started = False
        self._is_leader = False
        self._fence_timer: asyncio.TimerHandle | None = None
        self._next_attempt: asyncio.TimerHandle | None = None
        self.problem: str | None = None
        self._logged_problem: str | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this replica's term lasts, as far as it can know."""
        return self._is_leader and not self._session.is_fenced()

    def defect(self) -> str | None:
        """Why this replica will not take part under this session any more, or None. May be called
        in any thread."""
        candidacy = self._candidacy
        return None if candidacy is None else candidacy.defect()

    def start(self) -> None:
        """Contend under the current session and every later one."""
        self._is_started = True
        self._session.subscribe(self._session_changed)
        if self._session.session_id:
            self._contend()

    def resign(self) -> None:
        """End the term, if there is one, and queue up again behind the others."""
        if self._is_leader and self._candidacy is not None:
            self._candidacy.requeue()
        self._end_term()

    async def close(self) -> None:
        """End the term, if there is one, and leave the queue."""
        if self._is_started:
            self._is_started = False
            self._session.unsubscribe(self._session_changed)
        self._attempt_no_more()
        self._end_term()
        if self._candidacy is not None:
            await call_blocking(self._candidacy.withdraw, _CLOSE_TIMEOUT_S)
            self._candidacy = None

    async def __aenter__(self) -> LeaderElection:
        self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def _session_changed(self, state: SessionState) -> None:
        match state:
            case SessionState.CONNECTED:
                self._contend()
            case SessionState.EXPIRED:
                self._attempt_no_more()
                self._candidacy = None  # its thread finds the session gone
                self._end_term()
            case SessionState.SUSPENDED | SessionState.RECONNECTED:
                pass  # the fence decides how long a term outlives its connection

    def _contend(self) -> None:
        """Queue up under the current session: now, or as soon as there is a thread for it."""
        self._attempt_no_more()
        try:
            self._candidacy = self._started_candidacy()
        except Exception as error:  # noqa: BLE001 - said, and tried again
            self._fail(f"it cannot begin: {error!r}", error)
            loop = asyncio.get_running_loop()
            self._next_attempt = loop.call_later(_RETRY_PAUSE_S, self._contend)

    def _attempt_no_more(self) -> None:
        if self._next_attempt is not None:
            self._next_attempt.cancel()
            self._next_attempt = None

    def _started_candidacy(self) -> _Candidacy:
        candidacy = _Candidacy(
            self._session.generation(),
            path=self._path,
            identifier=self._identifier,
            on_acquired=self._acquired,
            on_released=self._released,
            on_queued=self._queued,
            on_failed=self._failed,
        )
        candidacy.start()
        return candidacy

    def _queued(self, candidacy: _Candidacy) -> None:
        if candidacy is self._candidacy:
            self.problem = None

    def _failed(self, candidacy: _Candidacy, error: Exception) -> None:
        if candidacy is self._candidacy:
            self._fail(self._explained(error), error)

    def _explained(self, error: Exception) -> str:
        if isinstance(error, ControllerIdInUseError):
            return str(error)
        if not isinstance(error, KazooException):
            return repr(error)
        refusal = unexpected(code_of(error), self._path)
        remedy = refusal.remedy
        if refusal.code == ZkError.NO_AUTH.value:
            remedy = "Regent's ZooKeeper user needs all rights there, and that to create it"
        return str(refusal) if remedy is None else f"{refusal}; {remedy}"

    def _fail(self, why: str, error: Exception) -> None:
        """Keep the reason until there is a place in the queue. The same one is logged once."""
        self.problem = f"the election among the replicas fails: {why}"
        if self.problem != self._logged_problem:
            logger.error(
                "The election among the replicas failed; trying again",
                extra={"path": self._path, "error": repr(error)},
            )
            self._logged_problem = self.problem

    def _acquired(self, candidacy: _Candidacy) -> None:
        if candidacy is not self._candidacy or candidacy.is_leaving:
            return
        if self._session.is_fenced():
            candidacy.requeue()
            return
        self._is_leader = True
        self._logged_problem = None
        self._watch_fence()
        logger.info("Elected among the replicas", extra={"identifier": self._identifier})
        self._on_elected()

    def _released(self, candidacy: _Candidacy) -> None:
        if candidacy is self._candidacy:
            self._end_term()

    def _end_term(self) -> None:
        if self._fence_timer is not None:
            self._fence_timer.cancel()
            self._fence_timer = None
        if self._is_leader:
            self._is_leader = False
            logger.info("No longer the elected replica", extra={"identifier": self._identifier})
            self._on_lost()

    def _watch_fence(self) -> None:
        left_s = self._session.fence_deadline - time.monotonic()
        if left_s > 0:
            loop = asyncio.get_running_loop()
            self._fence_timer = loop.call_later(left_s, self._watch_fence)
        else:
            logger.warning("No contact with ZooKeeper for too long; giving the leadership up")
            self.resign()


class _ReportingLock(Lock):
    """kazoo's lock, which else says nothing before it is acquired, and waits for ever behind a
    place that this process has itself: whose creation or removal was broken off, and a server that
    lagged behind did not show it when it was looked for.

    The lock refuses to stand behind a replica that has the same controller id.

    Args:
        on_queued: Called in the thread that acquires the lock, when it stands in the queue.
    """

    def __init__(
        self, client: KazooClient, path: str, identifier: str, *, on_queued: Callable[[], None]
    ) -> None:
        super().__init__(client, path, identifier)
        self._own_identity = Identity.parse(identifier)
        self._on_queued = on_queued

    def _inner_acquire(self, blocking: bool, timeout: float | None, ephemeral: bool = True) -> bool:
        if not self.create_tried:
            self._refuse_id_in_use()
        return super()._inner_acquire(blocking, timeout, ephemeral)

    def _refuse_id_in_use(self, *, before: str | None = None) -> None:
        """Look for another replica in the queue that has our controller id.

        Args:
            before: Our own node. Replicas behind this node look for us.

        Raises:
            ControllerIdInUseError: Names the replica, its session and the way out.
        """
        own = self._own_identity
        if own is None:
            return
        try:
            children = self.client.get_children(self.path)
        except NoNodeError:
            return
        for name in itertools.takewhile(lambda name: name != before, queue_order(children)):
            with contextlib.suppress(NoNodeError):
                data, stat = self.client.get(f"{self.path}/{name}")
                other = Identity.parse(data.decode(errors="replace"))
                if other is not None and other.conflicts_with(own):
                    raise ControllerIdInUseError(
                        f"controller_id {own.controller_id} is in use by another replica, {other} "
                        f"(host/process/id), in the ZooKeeper session {stat.ephemeralOwner:#x}. "
                        "Leave controller_id out, so that each replica draws its own at its start, "
                        "or give each replica another one, and restart this replica. If the other "
                        "replica has ended, this replica continues when that session has expired"
                    )

    def _get_predecessor(self, node: str) -> str | None:
        while (predecessor := super()._get_predecessor(node)) and self._is_own(predecessor):
            logger.warning(
                "A former place in the queue of the replicas is left", extra={"node": predecessor}
            )
            with contextlib.suppress(NoNodeError):
                self.client.delete(f"{self.path}/{predecessor}")
        self._refuse_id_in_use(before=node)
        self._on_queued()
        return predecessor

    def _is_own(self, node: str) -> bool:
        session, stat = self.client.client_id, self.client.exists(f"{self.path}/{node}")
        return session is not None and stat is not None and stat.ephemeralOwner == session[0]


class _Candidacy:
    """The queueing of a replica under one session. ``_run`` and below are its thread's."""

    def __init__(
        self,
        generation: Generation,
        *,
        path: str,
        identifier: str,
        on_acquired: Callable[[_Candidacy], None],
        on_released: Callable[[_Candidacy], None],
        on_queued: Callable[[_Candidacy], None],
        on_failed: Callable[[_Candidacy, Exception], None],
    ) -> None:
        self._client = generation.client
        self._path = path
        self._identifier = identifier
        self._on_acquired = on_acquired
        self._on_released = on_released
        self._on_queued = on_queued
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self._wake = threading.Event()
        self._is_withdrawn = False
        self._must_requeue = False
        self._lock: Lock | None = None
        self._thread = VitalThread(target=self._run, name="leader-election", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def defect(self) -> str | None:
        """What has ended its thread, if that was an error. May be called in any thread."""
        return defect_of(self._thread)

    @property
    def is_leaving(self) -> bool:
        """Whether the place in the queue is about to be given up."""
        return self._is_withdrawn or self._must_requeue

    def requeue(self) -> None:
        """Give the lock up, if it is held, and queue up again."""
        self._must_requeue = True
        self._wake.set()

    def withdraw(self, timeout_s: float) -> None:
        """Leave the queue for good. Blocks until it is done, or the time is up.

        Without a connection it is done when the connection is back or the session is closed.
        """
        self._is_withdrawn = True
        lock = self._lock
        if lock is not None:
            lock.cancel()
        self._wake.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        self._client.add_listener(self._state_changed)
        try:
            while not self._is_withdrawn:
                self._must_requeue = False
                self._wake.clear()
                try:
                    self._take_turn()
                except CancelledError:
                    return
                except SessionExpiredError:  # or the client is closed
                    return
                except Exception as error:  # noqa: BLE001 - without this thread it never leads again
                    post(self._loop, self._on_failed, self, error)
                    self._wake.wait(_RETRY_PAUSE_S)
        finally:
            self._client.remove_listener(self._state_changed)
            post(self._loop, self._on_released, self)

    def _take_turn(self) -> None:
        """Wait for the lock; lead; release the lock."""
        lock = _ReportingLock(
            self._client,
            self._path,
            self._identifier,
            on_queued=lambda: post(self._loop, self._on_queued, self),
        )
        # kazoo's own pauses grow with every lost connection of a long wait, up to a minute.
        lock._retry = KazooRetry(max_tries=-1, max_delay=_RETRY_PAUSE_S)
        self._lock = lock
        if self._is_withdrawn or not lock.acquire():
            return
        post(self._loop, self._on_acquired, self)
        try:
            self._hold(f"{self._path}/{lock.node}")
        finally:
            post(self._loop, self._on_released, self)
            lock.release()

    def _hold(self, node: str) -> None:
        """Return when the lock is to be released, or its node is gone."""
        while not self.is_leaving:
            self._wake.clear()
            if self.is_leaving or not self._is_there(node):
                return
            self._wake.wait()

    def _is_there(self, node: str) -> bool:
        try:
            return self._client.exists(node, watch=self._node_changed) is not None
        except SessionExpiredError:
            raise
        except AnswerLostError:
            self._wake.set()  # nothing else says that it is to be asked again
            return True
        except KazooException:
            return True  # nothing is known; the connection, or the session, wakes us again

    def _node_changed(self, event: WatchedEvent) -> None:
        self._wake.set()

    def _state_changed(self, state: str) -> None:
        self._wake.set()


async def contenders(zookeeper: ZooKeeperPort, path: str = DEFAULT_PATH) -> list[str]:
    """Identifiers of the replicas in the queue, the leader first."""
    (children,) = await zookeeper.get_children([path])
    queue = sorted(children or (), key=lambda name: name[-_SEQUENCE_LENGTH:])
    nodes = await zookeeper.get_data([f"{path}/{name}" for name in queue])
    return [node.data.decode(errors="replace") for node in nodes if node is not None]
