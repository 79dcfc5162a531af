"""The end of a controller: ``/controller`` is handed back, as long as ZooKeeper answers."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from regent.controller.events import Shutdown
from regent.runtime.controller_event_manager import ControllerEventManager
from regent.runtime.ports import ConnectionsPort

logger = logging.getLogger(__name__)

SILENCE_MAX_S: Final = 5.0
"""For so long a stop waits for a ZooKeeper that does not answer at all. Heartbeats are answered
meanwhile by one that is merely busy. Waiting longer would win nothing: the session is closed then,
and a server that was only frozen reads that when it goes on, unless it has to write several answers
first and finds the connection closed: then the session ends by its timeout."""


async def hand_over(
    manager: ControllerEventManager, events: asyncio.Task[None], connections: ConnectionsPort
) -> None:
    """Have the event in progress finished and ``/controller`` given up. Returns when that is done,
    when the processing of events has ended, or when ZooKeeper does not answer.

    An event that is broken off is like a crash at that moment: what it has written is a state from
    which any controller goes on.

    Args:
        events: The processing of the events; to be cancelled afterwards.
    """
    began = time.monotonic()
    handed_over = asyncio.Event()
    manager.put(Shutdown(reply_to=lambda _: handed_over.set()))
    waiting = asyncio.create_task(handed_over.wait())
    try:
        while not waiting.done() and not events.done():
            answered_at = max(began, connections.last_contact())
            left_s = answered_at + SILENCE_MAX_S - time.monotonic()
            if left_s <= 0:
                _report(manager, connections, since=answered_at)
                return
            await asyncio.wait(
                [waiting, events], timeout=left_s, return_when=asyncio.FIRST_COMPLETED
            )
    finally:
        waiting.cancel()


def _report(manager: ControllerEventManager, connections: ConnectionsPort, *, since: float) -> None:
    logger.warning(
        "The controller is not handed over: ZooKeeper does not answer",
        extra={
            "silent_s": round(time.monotonic() - since, 1),
            "problem": connections.session_problem(),
            "event_in_progress": manager.state.name,
            "consequence": "a broker takes over when ZooKeeper has ended the session",
        },
    )
