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


class ReplicaClient:
    """The connection to one replica, opened again and again until :meth:`run` is cancelled.

    Attributes:
        suspicion: What is held of the other one.
        problem: Why there is no connection, None while there is one.

    Args:
        instance: Ours.
        peer: Whom to connect to, and which instance has to answer there.
        is_ready: Whether this process could take over now.
        tls: None for none.
        on_change: Something was told to the reducer.
        on_named: The other one wants this process to take over.
    """

    def __init__(
        self,
        instance: str,
        peer: ReplicaPresence,
        *,
        settings: SuspicionSettings,
        is_ready: Callable[[], bool],
        tls: Tls | None,
        on_change: Callable[[], None],
        on_named: Callable[[], None],
    ) -> None:
        self._instance = instance
        self._peer = peer
        self._settings = settings
        self._is_ready = is_ready
        self._tls = tls
        self._on_change = on_change
        self._on_named = on_named
        self._is_problem_logged = False
        self._was_heard = False
        self.suspicion = Suspicion(settings)
        self.problem: str | None = "not connected yet"

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            began = time.monotonic()
            await self._attempt()
            self._on_change()
            pause_s = RETRY_PAUSE_S
            if self.suspicion.is_in_doubt:
                pause_s = max(0.0, began + self._settings.refused_s - time.monotonic())
            await asyncio.sleep(pause_s)

    async def _attempt(self) -> None:
        """Connect, and ask as long as there is an answer."""
        address = self._peer.address
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
        try:
            await self._converse(reader, writer)
        except (OSError, ssl.SSLError, MalformedMessageError, ValueError) as error:
            self._fail(str(error) or repr(error))
        finally:
            writer.transport.abort()
        self.suspicion.lost(time.monotonic())

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
        try:
            while line := await reader.readline():
                answer = decode_answer(line)
                if answer.instance != self._peer.instance:
                    self.suspicion.replaced()
                    self._fail(f"another process answers, instance {answer.instance}")
                    return
                if answer.leaves:
                    self.suspicion.left()
                    self._fail("it has stopped")
                    return
                self._answered()
                if answer.take_over:
                    self._on_named()
            self._fail("the connection has ended")
        finally:
            asking.cancel()
            # Not suppressing: it may be this task that is cancelled meanwhile.
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask(self, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(encode(Ask(self._instance, self._is_ready())))
            await writer.drain()
            await asyncio.sleep(self._settings.heartbeat_s)

    def _answered(self) -> None:
        was_suspected = self.suspicion.reason is not None
        self.suspicion.answered(time.monotonic())
        self.problem = None
        self._was_heard = True
        self._is_problem_logged = False
        if was_suspected:
            self._on_change()

    def _fail(self, problem: str) -> None:
        self.problem = problem
        if not self._is_problem_logged and not self._was_heard:
            self._is_problem_logged = True
            logger.warning(
                "Another replica is not reached: its end will be noticed by its session only",
                extra={"replica": str(self._peer), "problem": problem},
            )
