"""The heartbeats between replicas, in a thread and a loop of their own.

In the controller's loop a step of a large failover takes seconds: its replica would look frozen.
What is said here is that the process lives and gets the processor. Whether its controller makes
progress is the liveness probe's affair.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from regent.model.replica import ReplicaPresence, SuspectedReplica
from regent.network.replica_client import ReplicaClient
from regent.network.replica_server import ReplicaServer
from regent.network.replica_tls import ReplicaTls
from regent.replicas.suspicion import EXPLANATIONS, Reason, SuspicionSettings

logger = logging.getLogger(__name__)

REPEAT_S: Final = 1.0
"""How often a suspicion is reported again while it lasts: it may not have been the time for it."""


class _Peer(msgspec.Struct):
    presence: ReplicaPresence
    client: ReplicaClient
    task: asyncio.Task[None]
    reported: Reason | None = None
    is_unheard: bool = False


class Heartbeats:
    """Implements :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`.

    Args:
        instance: Another one for each process.
        listening: Accepts connections already.
        settings: When who is suspected.
        tls: None for none.
    """

    def __init__(
        self,
        *,
        instance: str,
        listening: socket.socket,
        settings: SuspicionSettings,
        tls: ReplicaTls | None,
    ) -> None:
        self.instance = instance
        self._listening = listening
        self._settings = settings
        self._tls = tls
        self._server = ReplicaServer(instance, listening, tls=None if tls is None else tls.server)
        self._peers: dict[int, _Peer] = {}
        self._counts = dict.fromkeys(Reason, 0)
        self._on_suspected: Callable[[Mapping[int, SuspectedReplica]], None] = lambda _: None
        self._on_named: Callable[[int], None] = lambda _: None
        self._is_ready: Callable[[], bool] = lambda: False
        self._reported_at = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)

    # Any thread

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listening.getsockname()[1]
        return port

    @property
    def suspicions(self) -> Mapping[str, int]:
        """How many there were so far, by their reasons."""
        return {reason.value: count for reason, count in self._counts.items()}

    def defect(self) -> str | None:
        """See :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`."""
        failure = self._failure
        return None if failure is None else f"the heartbeats of replicas have ended: {failure!r}"

    def start(
        self,
        *,
        on_suspected: Callable[[Mapping[int, SuspectedReplica]], None],
        on_named: Callable[[int], None],
        is_ready: Callable[[], bool],
    ) -> None:
        """See :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`."""
        self._on_suspected, self._on_named, self._is_ready = on_suspected, on_named, is_ready
        if self._thread.ident is None:  # else a former attempt has found its thread later
            self._thread.start()
        self._started.result()

    def leave(self) -> None:
        """See :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`."""
        self._post(self._server.leave)

    def close(self) -> None:
        """Close all connections, and the listener."""
        if self._thread.ident is not None:
            concurrent.futures.wait([self._started])
            if self._stop is not None:
                self._post(self._stop.set)
            self._thread.join()
        self._listening.close()

    def set_peers(self, peers: Mapping[int, ReplicaPresence]) -> None:
        """See :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`."""
        self._post(self._set_peers, dict(peers))

    def ready(self) -> frozenset[str]:
        """See :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`."""
        return self._server.ready()

    def name(self, instance: str) -> None:
        """See :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`."""
        self._post(self._server.name, instance)

    def problems(self) -> Mapping[str, str | None]:
        """See :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`."""
        return {
            str(peer.presence): peer.client.problem
            if peer.reported is None
            else EXPLANATIONS[peer.reported]
            for peer in list(self._peers.values())
        }

    def suspected(self) -> Mapping[int, SuspectedReplica]:
        """See :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`."""
        return {
            session_id: SuspectedReplica(
                f"{peer.presence} is suspected: {EXPLANATIONS[peer.reported]}",
                is_dead=peer.reported is Reason.DEAD,
            )
            for session_id, peer in list(self._peers.items())
            if peer.reported is not None
        }

    def unheard(self) -> Mapping[int, str]:
        """See :class:`~regent.runtime.heartbeats_port.HeartbeatsPort`."""
        return {
            session_id: f"{peer.presence} does not answer: {peer.client.problem}"
            for session_id, peer in list(self._peers.items())
            if peer.is_unheard
        }

    def _post(self, function: Callable[..., None], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function, *args)

    # The thread of the heartbeats

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as failure:
            self._failure = failure
            if not self._started.done():
                self._started.set_exception(failure)
            logger.critical("Heartbeats between replicas failed", exc_info=failure)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await self._server.start()
        self._started.set_result(None)
        stopping = asyncio.create_task(self._stop.wait())
        try:
            while not stopping.done():
                self._look()
                await asyncio.wait([stopping], timeout=self._settings.heartbeat_s)
        finally:
            self._set_peers({})
            await self._server.close()

    def _set_peers(self, peers: dict[int, ReplicaPresence]) -> None:
        for session_id, peer in list(self._peers.items()):
            if peers.get(session_id) != peer.presence:
                peer.task.cancel()
                del self._peers[session_id]
        for session_id, presence in peers.items():
            if session_id not in self._peers:
                self._add(session_id, presence)

    def _add(self, session_id: int, presence: ReplicaPresence) -> None:
        client = ReplicaClient(
            self.instance,
            presence,
            settings=self._settings,
            is_ready=self._is_ready,
            is_alive=self._is_alive,
            tls=None if self._tls is None else self._tls.client,
            on_change=self._report,
            on_named=lambda: self._on_named(session_id),
        )
        task = asyncio.create_task(client.run(), name=f"heartbeats to {presence}")
        task.add_done_callback(_log_defect)
        self._peers[session_id] = _Peer(presence, client, task)

    def _is_alive(self, instance: str) -> bool:
        return instance == self.instance or any(
            peer.presence.instance == instance for peer in self._peers.values()
        )

    def _look(self) -> None:
        now = time.monotonic()
        for peer in self._peers.values():
            peer.client.suspicion.looked(now)
        self._report()

    def _report(self) -> None:
        """Say who is suspected, when that or who is unheard has changed, and then every second."""
        is_new = False
        for peer in self._peers.values():
            is_unheard = peer.client.suspicion.is_unheard
            is_new |= is_unheard and not peer.is_unheard
            peer.is_unheard = is_unheard
            reason = peer.client.suspicion.reason
            if reason is not peer.reported:
                is_new |= reason is not None
                peer.reported = reason
                self._note(peer.presence, reason)
        suspected = self.suspected()
        if suspected and (is_new or time.monotonic() - self._reported_at >= REPEAT_S):
            self._reported_at = time.monotonic()
            self._on_suspected(suspected)

    def _note(self, replica: ReplicaPresence, reason: Reason | None) -> None:
        if reason is None:
            logger.info("A replica answers again", extra={"replica": str(replica)})
            return
        self._counts[reason] += 1
        logger.warning(
            "A replica is suspected",
            extra={
                "replica": str(replica),
                "reason": reason.value,
                "explanation": EXPLANATIONS[reason],
            },
        )


def _log_defect(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("A defect has ended the heartbeats of a replica", exc_info=task.exception())
