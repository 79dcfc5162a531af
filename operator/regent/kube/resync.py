"""Lists of all resources of a kind, beside the watch: at the beginning, every few minutes, and
whenever something has changed that no watch reports, such as a right or the API server's history.
And lists of one namespace that the watch asks for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError, KubeError, KubeNotFoundError
from regent.kube.health import KindHealth
from regent.kube.listing import Listing, list_namespace, list_objects, version_now
from regent.kube.object_cache import ObjectCache, ObjectKey, is_history_restarted, number_of
from regent.kube.rights import Lack, lack_of, missing_rights
from regent.kube.settings import KubeSettings
from regent.kube.work_queue import backoff_s
from regent.resources.kind import ALL_NAMESPACES, ResourceKind

logger = logging.getLogger(__name__)

_REPEATED_AFTER_S: Final = 600.0
"""Between two log entries about the same problem."""


class Resync:
    """Keeps the object cache of one kind complete.

    Args:
        kind: The kind.
        cache: Takes the lists in.
        health: Where it is said what cannot be read or written.
        jitter: Returns numbers from 0 to 1 that spread what happens periodically.
        on_news: Called with the keys of the objects that a list is news for.
        on_resync: Called after each list that is made every few minutes.

    Attributes:
        namespaces_changed: Set when other namespaces can be watched than before, or the present
            watches are of no use.
        loaded: Set once the resources were listed.
    """

    def __init__(
        self,
        client: KubeClient,
        kind: ResourceKind,
        settings: KubeSettings,
        *,
        cache: ObjectCache,
        health: KindHealth,
        jitter: Callable[[], float],
        on_news: Callable[[frozenset[ObjectKey]], None],
        on_resync: Callable[[], None],
    ) -> None:
        self._client = client
        self._kind = kind
        self._settings = settings
        self._cache = cache
        self._health = health
        self._jitter = jitter
        self._on_news = on_news
        self._on_resync = on_resync
        self._readable: tuple[str, ...] = ()
        self._is_refused = False
        self._unlisted_logged: tuple[str | None, float] = None, 0.0
        self.namespaces_changed = asyncio.Event()
        self.loaded = asyncio.Event()

    @property
    def can_read(self) -> bool:
        """Whether there is a namespace that can be watched now."""
        return bool(self._readable)

    @property
    def watched(self) -> tuple[str, ...]:
        """The namespaces to be watched; ``ALL_NAMESPACES`` alone: all of them."""
        return self._readable

    def request_refused(self) -> None:
        """A right was missing: rights are checked at the next opportunity."""
        self._is_refused = True

    def delay_after(self, failures: int) -> float:
        """Seconds to wait after failures in a row of something that everything depends on."""
        return backoff_s(min(failures, 5), jitter=self._jitter())

    async def load(self) -> None:
        """List all resources; waits for the API server, for the CRD and for the right to read at
        least one namespace as long as it takes.
        """
        failures = 0
        while True:
            try:
                await self._list()
            except KubeError as error:
                problem = str(error)
                self._health.not_listed(problem)
            else:
                if self.can_read:
                    self.loaded.set()
                    logger.info(
                        "Serving resources",
                        extra={"kind": self._kind.kind, "count": len(self._cache)},
                    )
                    return
                problem = "no namespace can be read"
            failures += 1
            self._log_unlisted(problem)
            await asyncio.sleep(self.delay_after(failures))

    async def run(self) -> None:
        """List everything every few minutes, until cancelled."""
        await self.loaded.wait()
        while True:
            await asyncio.sleep(self._settings.resync_interval_s * (0.9 + 0.2 * self._jitter()))
            await self._list_again()
            self._on_resync()

    async def check(self) -> None:
        """Check again and again what no watch reports, until cancelled: that a right was granted or
        taken away, and that the API server has gone back to an earlier state.
        """
        await self.loaded.wait()
        while True:
            await asyncio.sleep(self._settings.check_interval_s * (0.9 + 0.2 * self._jitter()))
            if (
                self._health.unlisted is not None
                or await self._are_rights_changed()
                or await self._may_have_gone_back()
            ):
                await self._list_again()

    async def look_up(self, namespace: str) -> bool:
        """List one of the watched namespaces: the watch has not shown all that is known of it.
        Returns whether that was possible.
        """
        since = self._cache.newest_version
        try:
            bodies, version = await list_namespace(
                self._client,
                self._kind,
                namespace,
                page_size=self._settings.page_size,
                reduce=self._cache.reduced,
            )
        except KubeError as error:
            logger.warning(
                "A namespace cannot be listed, retrying",
                extra={"kind": self._kind.kind, "namespace": namespace, "error": str(error)},
            )
            if isinstance(error, KubeApiError) and error.status == HTTPStatus.FORBIDDEN:
                self.request_refused()
            return False
        if self._cache.shows_earlier_state(bodies, listed_version=version, since=since):
            await self._list_again()
            return True
        news = self._cache.replace(
            bodies,
            listed_version=version,
            among=lambda key: namespace in (ALL_NAMESPACES, key.namespace),
        )
        self._on_news(news)
        self._log_missed(news)
        return True

    async def _list_again(self) -> None:
        try:
            missed = await self._list()
        except KubeError as error:
            self._log_unlisted(str(error))
            self._health.not_listed(str(error))
            return
        self._log_missed(missed)

    def _log_unlisted(self, problem: str) -> None:
        """A definition that nobody has applied may be missing for good, and ``/readyz`` names it:
        the log does once in a while."""
        now = asyncio.get_running_loop().time()
        logged, at = self._unlisted_logged
        if problem != logged or now - at >= _REPEATED_AFTER_S:
            self._unlisted_logged = problem, now
            logger.warning(
                "Resources cannot be listed, retrying",
                extra={"kind": self._kind.kind, "problem": problem},
            )

    def _log_missed(self, missed: frozenset[ObjectKey]) -> None:
        if missed:
            logger.info(
                "A list showed changes that no watch reported",
                extra={"kind": self._kind.kind, "count": len(missed)},
            )

    async def _may_have_gone_back(self) -> bool:
        """Whether a backup of the API server's store may have been restored: then a list tells.

        The version of a list shows it only until versions have caught up. After that the last write
        and the last deletion show it: a backup that is older than they are has neither.
        """
        if not self.can_read:
            return False
        since, deletion = self._cache.newest_version, self._cache.last_deletion
        newest = self._cache.newest(among=self._is_readable)
        try:
            version = await version_now(self._client, self._kind, self._readable[0])
            if is_history_restarted(version, since=since):
                return True
            if newest is not None:
                found = await self._version_of(newest.key, newest.uid)
                if found < number_of(newest.version):
                    return True
            if deletion is None or not self._is_readable(deletion[0]):
                return False
            return await self._version_of(*deletion) > 0
        except KubeError as error:
            if isinstance(error, KubeApiError) and error.status == HTTPStatus.FORBIDDEN:
                self.request_refused()
                return False
            return True  # the list says what is wrong

    async def _version_of(self, key: ObjectKey, uid: str) -> int:
        """The version of an object; 0: it does not exist, or another one has its name.

        Raises:
            KubeError: As the client does.
        """
        try:
            found = await self._client.get(self._kind.object_path(key.namespace, key.name))
        except KubeNotFoundError:
            return 0
        metadata = found["metadata"]
        return number_of(metadata["resourceVersion"]) if metadata["uid"] == uid else 0

    def _is_readable(self, key: ObjectKey) -> bool:
        return ALL_NAMESPACES in self._readable or key.namespace in self._readable

    async def _are_rights_changed(self) -> bool:
        """Whether rights are others than the last list has found.

        Namespaces that lacked none then are asked about only after a request was refused.
        """
        suspects = {**self._health.unreadable, **self._health.unwritable}
        if self._is_refused:
            suspects |= dict.fromkeys(self._settings.namespaces or (ALL_NAMESPACES,), "")
        self._is_refused = False
        for namespace in suspects:
            try:
                missing = await missing_rights(self._client, self._kind, namespace)
            except KubeError as error:
                logger.warning(
                    "Rights cannot be checked, retrying later",
                    extra={"namespace": namespace, "error": str(error)},
                )
                self._is_refused = True
                return False
            known = Lack(
                self._health.unreadable.get(namespace), self._health.unwritable.get(namespace)
            )
            if lack_of(missing, self._kind, namespace) != known:
                return True
        return False

    async def _list(self) -> frozenset[ObjectKey]:
        """List all resources and take the list in; the keys of the objects that it is news for.

        Raises:
            KubeError: As :func:`~regent.kube.listing.list_objects` does.
        """
        since = self._cache.newest_version
        listing = await list_objects(
            self._client, self._kind, self._settings, reduce=self._cache.reduced
        )
        return self._take(listing, since=since)

    def _take(self, listing: Listing, *, since: int) -> frozenset[ObjectKey]:
        """Take in a list that was asked for when the newest known version was ``since``; the keys
        of the objects that it is news for.
        """
        is_restarted = self._cache.shows_earlier_state(
            listing.bodies, listed_version=listing.version, since=since
        )
        if is_restarted:
            logger.warning(
                "The API server shows resources otherwise than before (a backup was restored, or "
                "their definition was changed); all are read anew",
                extra={"listed_version": listing.version},
            )
        if listing.readable:
            self._unlisted_logged = None, 0.0
        self._health.listed(unreadable=listing.unreadable, unwritable=listing.unwritable)
        # What was seen of a namespace that cannot be read any more still claims its topics.
        keys = self._cache.keys()
        kept = [
            known.body
            for known in map(self._cache.get, keys)
            if known is not None and known.key.namespace in listing.unreadable
        ]
        news = self._cache.replace_all(
            (*listing.bodies, *kept), listed_version=listing.version, is_restarted=is_restarted
        )
        self._on_news(news)
        if listing.readable != self._readable or is_restarted:
            self._readable = listing.readable
            self.namespaces_changed.set()
        return news
