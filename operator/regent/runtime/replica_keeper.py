"""Has the replicas of a Regent know each other, and what follows from that.

Registers this one in ZooKeeper, follows the registrations of the others, and gives them to the
heartbeats. A suspicion becomes an event of the core, which decides. And whoever leaves while it
leads names its successor.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from regent.controller.effects import StillAbsent
from regent.controller.events import AbsentReplica, ControllerEvent, ReplicasAbsent
from regent.model.cluster import Address
from regent.model.errors import MalformedZNodeError, UnexpectedZooKeeperError, ZooKeeperError
from regent.model.replica import ReplicaPresence, SuspectedReplica
from regent.runtime.blocking_call import call_blocking
from regent.runtime.heartbeats_port import HeartbeatsPort
from regent.runtime.ports import ZooKeeperPort
from regent.zk_data.operations import Create, SessionState, WatchedEvent, Written, ZkError
from regent.zk_data.replicas import (
    decode_presence,
    encode_presence,
    presence_node,
    presence_path,
    queue_order,
)

logger = logging.getLogger(__name__)

HAND_OVER_MAX_S: Final = 5.0
"""So long a successor has to take over, while this replica goes on to lead."""

DEFECT_PAUSE_S: Final = 60.0
"""After an exception that nobody expects."""

RETRY_PAUSE_S: Final = 1.0
"""After what no reconnection explains: a right that is missing, for instance."""


class ReplicaKeeper:
    """Belongs to the controller's loop, except :meth:`status`, :attr:`suspicions` and
    :attr:`unheard`.

    Args:
        zookeeper: Of the session that owns whatever this replica has.
        heartbeats: Started and closed here.
        controller_id: Under which this replica holds ``/controller`` when it leads.
        election_path: Where the replicas elect one among themselves.
        own_host: Where others reach this machine; may take a while, and is called in a thread.
        enqueue: Of the controller's events.
        is_ready: Whether this process could take over now. May be called from any thread.
        is_active: Whether this process is the controller.
    """

    def __init__(
        self,
        *,
        zookeeper: ZooKeeperPort,
        heartbeats: HeartbeatsPort,
        controller_id: int,
        election_path: str,
        own_host: Callable[[], str],
        enqueue: Callable[[ControllerEvent], None],
        is_ready: Callable[[], bool],
        is_active: Callable[[], bool],
    ) -> None:
        self._zookeeper = zookeeper
        self._heartbeats = heartbeats
        self._controller_id = controller_id
        self._election_path = election_path
        self._own_host = own_host
        self._enqueue = enqueue
        self._is_ready = is_ready
        self._is_active = is_active
        self._loop = asyncio.get_running_loop()
        self._peers: dict[int, ReplicaPresence] = {}
        self._is_contending = asyncio.Event()
        self._is_connected = asyncio.Event()
        self._wake = asyncio.Event()
        self._event_processed = asyncio.Event()
        self._is_leaving = False
        self._problem: str | None = None

    @property
    def suspicions(self) -> Mapping[str, int]:
        """How often others were suspected, by reason."""
        return self._heartbeats.suspicions

    @property
    def unheard(self) -> int:
        """How many others are asked in vain now, without being suspected."""
        return len(self._heartbeats.unheard())

    def status(self) -> dict[str, object]:
        """For ``/status``."""
        return {
            "others": dict(self._heartbeats.problems()),
            "suspicions": dict(self._heartbeats.suspicions),
            "problem": self._problem,
        }

    def defect(self) -> str | None:
        """Why others will not hear of this replica any more, or None. May be called in any
        thread."""
        return self._heartbeats.defect()

    # What happens

    def contend(self) -> None:
        """Take part from now on."""
        self._is_contending.set()

    def session_changed(self, state: SessionState) -> None:
        """The session is in another state."""
        if state in (SessionState.CONNECTED, SessionState.RECONNECTED):
            self._is_connected.set()
        else:
            self._is_connected.clear()
        self._wake.set()

    def watch_fired(self, watched: WatchedEvent) -> None:
        """Some watch has fired."""
        if watched.path == presence_path(self._election_path):
            self._wake.set()

    def event_processed(self) -> None:
        """The controller has processed an event: it may be the controller no more."""
        self._event_processed.set()

    def still_absent(self, effect: StillAbsent) -> tuple[int, ...]:
        """What the effect asks for."""
        suspected, unheard = self._heartbeats.suspected(), self._heartbeats.unheard()
        return (
            *(session_id for session_id in effect.suspected if session_id in suspected),
            *(session_id for session_id in effect.unheard if session_id in unheard),
        )

    # What it does

    async def run(self) -> None:
        """Know the others until cancelled."""
        await self._is_contending.wait()
        host = await asyncio.to_thread(self._own_host)
        own = ReplicaPresence(
            self._heartbeats.instance, self._controller_id, Address(host, self._heartbeats.port)
        )
        await asyncio.to_thread(self._start)
        while True:
            await self._is_connected.wait()
            self._wake.clear()
            pause_s = await self._know_others(own)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    async def _know_others(self, own: ReplicaPresence) -> float | None:
        """Be registered, and know who else is. Returns when to try again; None: when woken."""
        try:
            await self._register(own)
            await self._look()
        except ZooKeeperError as error:
            self._fail(error)
            return RETRY_PAUSE_S
        except Exception as error:  # the controller goes on without knowing the others
            logger.exception("A defect keeps replicas from knowing each other; trying again later")
            self._problem = f"a defect: {error!r}"
            return DEFECT_PAUSE_S
        self._problem = None
        return None

    def _start(self) -> None:
        self._heartbeats.start(
            on_suspected=lambda found: self._post(self._suspected, found),
            on_named=lambda session_id: self._post(self._named, session_id),
            is_ready=lambda: not self._is_leaving and self._is_ready(),
        )

    def _post(self, function: Callable[..., None], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the controller's loop has ended
            self._loop.call_soon_threadsafe(function, *args)

    def _fail(self, error: ZooKeeperError) -> None:
        problem = str(error)
        if isinstance(error, UnexpectedZooKeeperError) and problem != self._problem:
            logger.warning("Replicas cannot know each other", extra={"error": problem})
        self._problem = problem

    async def _register(self, own: ReplicaPresence) -> None:
        """Have a node under the present session. Its parents stay for good."""
        path = presence_node(self._election_path, self._zookeeper.session_id)
        (found,) = await self._zookeeper.get_data([path])
        if found is not None:
            return
        parts = presence_path(self._election_path).split("/")[1:]
        for depth in range(1, len(parts) + 1):
            await self._create(Create("/" + "/".join(parts[:depth])))
        await self._create(Create(path, encode_presence(own), ephemeral=True))

    async def _create(self, operation: Create) -> None:
        (result,) = await self._zookeeper.multi([operation])
        if not isinstance(result, Written) and result is not ZkError.NODE_EXISTS:
            raise UnexpectedZooKeeperError(result.value, operation.path)

    async def _look(self) -> None:
        """Know who there is, with a watch on that."""
        parent = presence_path(self._election_path)
        (children,) = await self._zookeeper.get_children([parent], watch=True)
        names = [f"{parent}/{name}" for name in children or ()]
        nodes = await self._zookeeper.get_data(names)
        peers: dict[int, ReplicaPresence] = {}
        for path, node in zip(names, nodes, strict=True):
            if node is None or node.ephemeral_owner in (0, self._zookeeper.session_id):
                continue
            try:
                peers[node.ephemeral_owner] = decode_presence(path, node.data)
            except MalformedZNodeError as error:
                logger.warning(
                    "Registration of a replica skipped",
                    extra={"path": error.path, "reason": error.reason},
                )
        self._peers = peers
        self._heartbeats.set_peers(peers)

    def _suspected(self, found: Mapping[int, SuspectedReplica]) -> None:
        absent = tuple(AbsentReplica(session_id, *suspect) for session_id, suspect in found.items())
        unheard = tuple(AbsentReplica(*each) for each in self._heartbeats.unheard().items())
        if not self._is_leaving and not self._is_active():
            self._enqueue(ReplicasAbsent(self._zookeeper.session_id, absent, unheard=unheard))

    def _named(self, session_id: int) -> None:
        if self._is_leaving:
            return
        who = self._peers.get(session_id)
        absent = AbsentReplica(session_id, f"{who or 'a replica'} leaves, and has named this one")
        logger.info("Named as the successor", extra={"by": str(who)})
        self._enqueue(ReplicasAbsent(self._zookeeper.session_id, (absent,), is_named=True))

    # The end

    async def hand_over(self, events: asyncio.Task[None]) -> None:
        """If this process leads, and another one is ready: have that one take over. Returns when it
        has, when the processing of events has ended, or when the time is up.

        Args:
            events: The processing of the events.
        """
        self._is_leaving = True
        if not self._is_active() or events.done():
            return
        began = time.monotonic()
        successor: ReplicaPresence | None = None
        try:
            async with asyncio.timeout(HAND_OVER_MAX_S):
                successor = await self._successor()
                if successor is None:
                    logger.info("No other replica is ready to take over")
                    return
                self._heartbeats.name(successor.instance)
                await self._until_deposed(events)
        except (TimeoutError, ZooKeeperError) as error:
            logger.warning(
                "No other replica has taken over",
                extra={"named": str(successor), "error": str(error) or "not in time"},
            )
            return
        except Exception:  # the brokers get it instead
            logger.exception("A defect keeps this replica from handing over to another one")
            return
        if self._is_active():
            return  # the processing of events has ended
        logger.info(
            "Another replica has taken over",
            extra={
                "named": str(successor),
                "took_ms": round((time.monotonic() - began) * 1000),
            },
        )

    async def _successor(self) -> ReplicaPresence | None:
        """The first in the queue of the replicas that can take over now."""
        ready = self._heartbeats.ready()
        (children,) = await self._zookeeper.get_children([self._election_path])
        places = [f"{self._election_path}/{name}" for name in queue_order(children or ())]
        for node in await self._zookeeper.get_data(places):
            peer = None if node is None else self._peers.get(node.ephemeral_owner)
            if peer is not None and peer.instance in ready:
                return peer
        return None

    async def _until_deposed(self, events: asyncio.Task[None]) -> None:
        while self._is_active() and not events.done():
            self._event_processed.clear()
            processed = asyncio.create_task(self._event_processed.wait())
            try:
                await asyncio.wait([processed, events], return_when=asyncio.FIRST_COMPLETED)
            finally:
                processed.cancel()

    async def close(self) -> None:
        """End the heartbeats. This process has nothing any more that others could take over."""
        self._heartbeats.leave()
        await call_blocking(self._heartbeats.close)
