"""Restarts the Kubernetes side when a defect has ended it.

The Kafka controller lives in the same process and goes on leading: a defect in what serves custom
resources must not cost the cluster its controller. A permanent defect is met with growing pauses.

A cancellation that comes from within is a defect, too: somebody awaited what another part of the
process, or a library, had cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from regent.kube.health import STABLE_AFTER_S, KubeHealth
from regent.kube.waiting import unless_set
from regent.kube.work_queue import backoff_s
from regent.runtime.cancellation import is_to_end

logger = logging.getLogger(__name__)

FORGET_AFTER_S: Final = 10 * STABLE_AFTER_S
"""A defect after this time counts as the first one."""


async def supervise(
    run: Callable[[], Awaitable[None]],
    *,
    stop_event: asyncio.Event,
    health: KubeHealth,
    jitter: Callable[[], float],
) -> None:
    """Run something until ``stop_event`` is set, again after each exception.

    Args:
        run: Returns once ``stop_event`` is set. What it raises is a defect.
        jitter: Returns numbers from 0 to 1 that spread restarts.
    """
    now = asyncio.get_running_loop().time
    defects = 0
    while not stop_event.is_set():
        began_at = now()
        health.began()
        try:
            await run()
        except (Exception, asyncio.CancelledError) as error:
            if is_to_end():
                raise
            if now() - began_at > FORGET_AFTER_S:
                defects = 0
            defects += 1
            delay_s = backoff_s(defects, jitter=jitter())
            health.failed(error)
            logger.exception(
                "The Kubernetes side failed and is started again; the Kafka controller goes on",
                extra={"delay_s": round(delay_s, 1), "defects": defects},
            )
            await unless_set(asyncio.sleep(delay_s), stop_event)
