"""Workers: take a key from the queue, have it reconciled, decide when it is requeued."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from regent.kube.errors import KubeApiError, KubeError
from regent.kube.metrics import ResourceMetrics
from regent.kube.object_cache import ObjectKey
from regent.kube.reconciler import Reconciled
from regent.kube.work_queue import WorkQueue
from regent.model.entry_budget import EntryBudget

logger = logging.getLogger(__name__)

Reconcile = Callable[[ObjectKey], Awaitable[Reconciled]]
"""Reconciles one resource."""


async def work(
    queue: WorkQueue[ObjectKey],
    reconcile: Reconcile,
    *,
    metrics: ResourceMetrics,
    entries: EntryBudget,
) -> None:
    """Reconcile keys until cancelled. Run as many of these as keys may be worked on at once.

    Args:
        entries: Shared by all of them.
    """
    now = asyncio.get_running_loop().time
    while True:
        key = await queue.get()
        began_at, cost_s = now(), 0.0
        try:
            result, cost_s = await _reconcile_one(queue, key, reconcile, entries)
            metrics.reconciled(key.kind, result=result, took_s=now() - began_at)
        finally:
            queue.done(key, cost_s=cost_s)


async def _reconcile_one(
    queue: WorkQueue[ObjectKey], key: ObjectKey, reconcile: Reconcile, entries: EntryBudget
) -> tuple[str, float]:
    """Reconcile one key; which of :data:`~regent.kube.metrics.RESULTS` came of it, and its cost."""
    try:
        again_s, cost_s = await reconcile(key)
    except KubeError as error:
        wanted_s = error.retry_after_s if isinstance(error, KubeApiError) else None
        delay_s = queue.retry(key, at_least_s=wanted_s or 0.0)
        entries.log(
            logger.warning,
            "A resource is requeued, the API server did not serve",
            now=asyncio.get_running_loop().time(),
            resource=str(key),
            delay_s=round(delay_s, 1),
            error=str(error),
        )
        return "api_error", 0.0
    except Exception:
        # A defect. It must not stop the work for all other resources, and it may depend on
        # something that changes: so it is logged with its traceback and tried again.
        delay_s = queue.retry(key)
        logger.exception(
            "A resource is requeued after a defect",
            extra={"resource": str(key), "delay_s": round(delay_s, 1)},
        )
        return "defect", 0.0
    queue.succeed(key)
    if again_s is None:
        return "done", cost_s
    queue.add_after(key, again_s)
    return "requeued", cost_s
