"""Watches the objects of a kind with kopf, and has looked up what kopf's stream does not show.

docs/kubernetes-side.md says why that is needed; what is to be looked up is decided in
:mod:`regent.kube.confirmation`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import aiohttp

from regent.kube.confirmation import ConfirmationRounds
from regent.kube.errors import KubeError
from regent.kube.kopf_runner import KopfOptions, run_kopf
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.kube.resync import Resync
from regent.kube.settings import KubeSettings
from regent.kube.waiting import cancel, unless_set
from regent.resources.kind import ALL_NAMESPACES, ResourceKind

logger = logging.getLogger(__name__)


class KindWatch:
    """The watch of one kind.

    Args:
        cache: The known objects of it.
        resync: Says what can be watched, and lists.

    Attributes:
        watching: Set once the objects are known and watched.
    """

    def __init__(
        self, kind: ResourceKind, cache: ObjectCache, resync: Resync, settings: KubeSettings
    ) -> None:
        self._kind = kind
        self._cache = cache
        self._resync = resync
        self._now = asyncio.get_running_loop().time
        self._rounds = ConfirmationRounds(
            settled_after_s=settings.stream_settled_after_s,
            silent_after_s=settings.stream_silent_after_s,
            pause_max_s=settings.resync_interval_s,
        )
        self._due_sooner = asyncio.Event()
        self.watching = asyncio.Event()

    @property
    def is_confirmed(self) -> bool:
        """Whether the stream has shown all objects, or those that it has not were looked up."""
        return self._rounds.is_over

    def take(self, type_: str | None, body: Mapping[str, Any]) -> frozenset[ObjectKey]:
        """Take in an event of kopf's stream; the keys that it is news for.

        Args:
            type_: None: the object is from a list of kopf.
        """
        metadata, key = body["metadata"], self._cache.key_of(body)
        uid = metadata.get("uid", "")
        before = self._rounds.due_at
        self._rounds.take(type_, namespace=key.namespace, uid=uid, at=self._now())
        after = self._rounds.due_at
        if after is not None and (before is None or after < before):
            self._due_sooner.set()
        if type_ != "DELETED":
            return self._cache.put(body)
        return self._cache.delete(key, uid=uid, version=metadata.get("resourceVersion", ""))

    async def run(self, options: KopfOptions, *, stop_event: asyncio.Event) -> None:
        """Watch what can be read until ``stop_event`` is set.

        Args:
            options: For this kind alone, with :attr:`watching` for its ``ready_flag``.
        """
        resync, failures = self._resync, 0
        while not stop_event.is_set():
            if not resync.can_read and not await unless_set(resync.load(), stop_event):
                return
            resync.namespaces_changed.clear()
            stopping = asyncio.create_task(stop_event.wait(), name="kube stop")
            changing = asyncio.create_task(resync.namespaces_changed.wait(), name="kube namespaces")
            self._begin(resync.watched)
            try:
                await run_kopf(
                    options, namespaces=_named(resync.watched), until=(stopping, changing)
                )
                failures = 0
            except Exception as error:
                # The API server took a right away, the CRD went: what is left is served.
                failures += 1
                delay_s = resync.delay_after(failures)
                logger.warning(
                    "Watching failed, restarting",
                    extra={
                        "kind": self._kind.kind,
                        "error": reason_of(error),
                        "delay_s": round(delay_s, 1),
                    },
                    exc_info=not _is_refusal(error),
                )
                await unless_set(asyncio.sleep(delay_s), stop_event)
                await unless_set(resync.load(), stop_event)
            finally:
                await cancel((stopping, changing))

    def _begin(self, namespaces: tuple[str, ...]) -> None:
        self._rounds.begin(namespaces, at=self._now())
        self._due_sooner.set()

    async def confirm(self) -> None:
        """Have looked up what the stream has not shown, whenever that is due, until cancelled."""
        while True:
            self._due_sooner.clear()
            try:
                async with asyncio.timeout_at(self._rounds.due_at):
                    await self._due_sooner.wait()
            except TimeoutError:
                await self._look_up()

    async def _look_up(self) -> None:
        unconfirmed = self._rounds.check_out(self._cache.identities(), at=self._now())
        for namespace, uids in unconfirmed.items():
            logger.info(
                "The watch has not shown all known resources, listing them",
                extra={"kind": self._kind.kind, "namespace": namespace, "count": len(uids)},
            )
            if not await self._resync.look_up(namespace):
                self._rounds.not_looked_up(namespace, at=self._now())


def reason_of(error: Exception) -> str:
    """Why watching has failed. What kopf makes of an answer without a body says nothing."""
    return str(error) or str(error.__cause__ or "") or repr(error)


def _is_refusal(error: Exception) -> bool:
    """Whether the API server has answered so (kopf has no public type for that): no defect."""
    return isinstance(error, KubeError) or isinstance(error.__cause__, aiohttp.ClientResponseError)


def _named(namespaces: tuple[str, ...]) -> tuple[str, ...]:
    """The namespaces as kopf takes them; none: all of them."""
    return () if namespaces == (ALL_NAMESPACES,) else namespaces
