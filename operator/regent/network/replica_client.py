"""Asks another replica whether it lives, and tells a reducer what becomes of that."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from typing import Final

from regent.model.replica import ReplicaPresence
from regent.network.tls import Tls
from regent.network.tls_remedies import remedy_for_replica
from regent.replicas.messages import (
    LINE_BYTES,
    Ask,
    MalformedMessageError,
    decode_answer,
    encode,
)
from regent.replicas.suspicion import Suspicion, SuspicionSettings

logger = logging.getLogger(__name__)

RETRY_PAUSE_S: Final = 1.0
"""Between attempts that decide nothing."""

ATTEMPT_S: Final = 2.0
"""For an attempt that decides nothing, the resolution of a name included."""

HANDSHAKE_MAX_S: Final = 5.0

SILENCES_MAX: Final = 2.0
"""So many times as long as makes a replica frozen a connection may be silent. Then another one is
tried: a firewall may have forgotten this one, or the other side, and TCP notices after a quarter of
an hour."""


class ReplicaClient:
    """The connection to one replica, opened again and again until :meth:`run` is cancelled.

    Attributes:
        suspicion: What is held of the other one.
        problem: Why there is no connection, None while there is one.

    Args:
        instance: Ours.
        peer: Whom to connect to, and which instance has to answer there.
        is_ready: Whether this process could take over now.
        is_alive: Whether an instance is this process, or one that has a session.
        tls: None for none.
        on_change: The reducer has learned something.
        on_named: The other one wants this process to take over.
    """

    def __init__(
        self,
        instance: str,
        peer: ReplicaPresence,
        *,
        settings: SuspicionSettings,
        is_ready: Callable[[], bool],
        is_alive: Callable[[str], bool],
        tls: Tls | None,
        on_change: Callable[[], None],
        on_named: Callable[[], None],
    ) -> None:
        self._instance = instance
        self._peer = peer
        self._settings = settings
        self._is_ready = is_ready
        self._is_alive = is_alive
        self._tls = tls
        self._on_change = on_change
        self._on_named = on_named
        self._is_problem_logged = False
        self._was_heard = False
        self._is_answered = False
        self.suspicion = Suspicion(settings)
        self.problem: str | None = "not connected yet"

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            began = time.monotonic()
            try:
                await self._attempt()
                self._on_change()
            except Exception as error:  # noqa: BLE001 - it says nothing of the other replica
                self._take_for_own(error)
            pause_s = RETRY_PAUSE_S
            if self.suspicion.is_in_doubt:
                pause_s = max(0.0, began + self._settings.refused_s - time.monotonic())
            await asyncio.sleep(pause_s)

    def _take_for_own(self, defect: Exception) -> None:
        """This process could not go on asking, for want of memory for instance. The other one must
        not be taken for frozen for that: nothing is known of it until it answers again."""
        problem = f"a defect of this replica: {defect!r}"
        if problem != self.problem:
            logger.error(
                "A defect has interrupted the heartbeats of a replica; they begin anew",
                extra={"replica": str(self._peer)},
                exc_info=defect,
            )
        self.suspicion.unknown()
        self._was_heard = False
        self._fail(problem)

    async def _attempt(self) -> None:
        """Connect, and ask as long as there is an answer."""
        address = self._peer.address
        self.suspicion.asked(time.monotonic())
        try:
            async with asyncio.timeout(self._attempt_s):
                reader, writer = await asyncio.open_connection(
                    address.host, address.port, limit=LINE_BYTES
                )
        except ConnectionRefusedError as error:
            self.suspicion.refused(time.monotonic())
            self._fail(f"refused: {error}")
            return
        except (OSError, TimeoutError) as error:
            self.suspicion.unreached(time.monotonic())
            self._fail(f"not reached: {str(error) or 'no answer in time'}")
            return
        self.suspicion.accepted()
        self._is_answered = False
        try:
            await self._converse(reader, writer)
        except (OSError, ssl.SSLError, MalformedMessageError, ValueError) as error:
            self._fail(self._described(str(error) or repr(error), error))
        finally:
            writer.transport.abort()
        self.suspicion.lost(time.monotonic())

    def _described(self, what: str, error: Exception | None) -> str:
        """What has ended a conversation and, as far as it is known, what to do about it."""
        if self._tls is None or self._is_answered or isinstance(error, TimeoutError):
            return what
        return f"{what}; {remedy_for_replica(error, own_problem=self._tls.problem())}"

    @property
    def _attempt_s(self) -> float:
        """Where an attempt decides, half of the time that does: so two of them do."""
        return self._settings.unreached_s / 2 if self.suspicion.is_in_doubt else ATTEMPT_S

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._tls is not None:
            await writer.start_tls(
                self._tls.context(),
                server_hostname=self._peer.address.host,
                ssl_handshake_timeout=HANDSHAKE_MAX_S,
            )
        asking = asyncio.create_task(self._ask(writer), name="heartbeats of a replica")
        # Who does not ask gets no answer: whatever ends it ends the conversation.
        asking.add_done_callback(lambda _: writer.transport.abort())
        try:
            while line := await self._line(reader):
                answer = decode_answer(line)
                if answer.instance != self._peer.instance:
                    self._answered_by(answer.instance)
                    return
                if answer.leaves:
                    self.suspicion.left()
                    self._fail("it has stopped")
                    return
                self._answered()
                if answer.take_over:
                    self._on_named()
            if asking.done():
                await asking
            self._fail(self._described("the connection has ended", None))
        finally:
            asking.cancel()
            # Not suppressing: it may be this task that is cancelled meanwhile.
            await asyncio.gather(asking, return_exceptions=True)

    async def _line(self, reader: asyncio.StreamReader) -> bytes:
        silence_s = SILENCES_MAX * self._settings.silence_s
        try:
            async with asyncio.timeout(silence_s):
                return await reader.readline()
        except TimeoutError as error:
            raise TimeoutError(f"no answer for {silence_s:g} s") from error

    def _answered_by(self, other: str) -> None:
        """Somebody else has its address: in its place, or beside it."""
        if self._is_alive(other):
            self.suspicion.unknown()
            self._was_heard = False
            self._fail(
                f"instance {other} answers there, which lives, too: give each replica an address "
                "of its own (settings replica_advertised_host and replica_port)"
            )
        else:
            self.suspicion.replaced()
            self._fail(f"another process answers, instance {other}")

    async def _ask(self, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(encode(Ask(self._instance, self._is_ready())))
            await writer.drain()
            await asyncio.sleep(self._settings.heartbeat_s)

    def _answered(self) -> None:
        was_absent = self.suspicion.reason is not None or self.suspicion.is_unheard
        self.suspicion.answered(time.monotonic())
        self.problem = None
        self._was_heard = self._is_answered = True
        self._is_problem_logged = False
        if was_absent:
            self._on_change()

    def _fail(self, problem: str) -> None:
        self.problem = problem
        if not self._is_problem_logged and not self._was_heard:
            self._is_problem_logged = True
            logger.warning(
                "Another replica is not reached: if it leads and ends, its session is waited for",
                extra={"replica": str(self._peer), "problem": problem},
            )
