"""The access control lists of the cluster, read from ZooKeeper when they are needed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final

from regent.model.acls import Acl, Acls, ResourcePattern
from regent.model.errors import MalformedZNodeError, RegentError, ZooKeeperError
from regent.runtime.zookeeper_read_port import ZooKeeperReadPort
from regent.zk_data.acls import (
    ACLS,
    CHANGES,
    STORES,
    acl_path,
    acls_or_denial,
    decode_acl_change,
    resource_type_of,
)

logger = logging.getLogger(__name__)

_FORGOTTEN_S: Final = 300.0
"""After so long without a look everything is read again: brokers remove notifications that are
older than a quarter of an hour."""


class AclsUnavailableError(RegentError):
    """The access control lists cannot be read now: nobody can say who may do what."""


class AclCache:
    """The entries as of the last look at ZooKeeper, which takes a round trip.

    Whoever asks for what is newer than the last look waits for the next one, which all share that
    wait.
    """

    def __init__(self, zookeeper: ZooKeeperReadPort) -> None:
        self._zookeeper = zookeeper
        self._lock = asyncio.Lock()
        self._acls = Acls({})
        self._looked_at: float | None = None
        self._notifications: frozenset[str] = frozenset()

    async def acls(self, *, max_age_s: float) -> Acls:
        """The entries as they were at most ``max_age_s`` ago.

        Raises:
            AclsUnavailableError: ZooKeeper does not say.
        """
        wanted = time.monotonic() - max_age_s
        if self._looked_at is not None and self._looked_at >= wanted:
            return self._acls
        async with self._lock:
            if self._looked_at is None or self._looked_at < wanted:
                await self._look()
            return self._acls

    async def exists(self) -> bool:
        """Whether there has ever been an authorizer of Kafka's: it makes the node at its start.

        Raises:
            AclsUnavailableError: ZooKeeper does not say.
        """
        try:
            (found,) = await self._zookeeper.exists([ACLS])
        except ZooKeeperError as error:
            raise _unavailable(error) from error
        return found

    async def _look(self) -> None:
        begun = time.monotonic()
        is_current = self._looked_at is not None and begun - self._looked_at < _FORGOTTEN_S
        try:
            listed = await self._zookeeper.get_children(CHANGES)
            notifications = [
                f"{parent}/{child}"
                for parent, children in zip(CHANGES, listed, strict=True)
                for child in children or ()
            ]
            news = [path for path in notifications if path not in self._notifications]
            changed = await self._changed(news) if is_current else None
            if changed is None:
                self._acls = Acls(await self._read(await self._all_patterns()))
            elif changed:
                self._acls = self._acls.with_changes(await self._read(changed))
        except ZooKeeperError as error:
            self._looked_at = None
            raise _unavailable(error) from error
        self._notifications = frozenset(notifications)
        self._looked_at = begun

    async def _changed(self, notifications: Sequence[str]) -> list[ResourcePattern] | None:
        """The patterns that notifications name; None if not all of them can be understood."""
        nodes = await self._zookeeper.get_data(notifications) if notifications else ()
        changed: dict[ResourcePattern, None] = {}
        for path, node in zip(notifications, nodes, strict=True):
            if node is None:
                return None
            try:
                changed[decode_acl_change(path.rpartition("/")[0], path, node.data)] = None
            except MalformedZNodeError as error:
                logger.warning(
                    "Malformed notification of access control lists: all are read again",
                    extra={"path": error.path, "reason": error.reason},
                )
                return None
        return list(changed)

    async def _all_patterns(self) -> list[ResourcePattern]:
        types = await self._zookeeper.get_children(list(STORES.values()))
        parents = [
            (pattern_type, name, f"{store}/{name}")
            for (pattern_type, store), names in zip(STORES.items(), types, strict=True)
            for name in names or ()
        ]
        children = await self._zookeeper.get_children([path for *_, path in parents])
        patterns: list[ResourcePattern] = []
        for (pattern_type, type_name, path), names in zip(parents, children, strict=True):
            resource_type = resource_type_of(type_name)
            if resource_type is None:
                logger.warning("Unknown type of resources ignored", extra={"path": path})
                continue
            patterns += [ResourcePattern(resource_type, n, pattern_type) for n in names or ()]
        return patterns

    async def _read(
        self, patterns: Sequence[ResourcePattern]
    ) -> Mapping[ResourcePattern, tuple[Acl, ...]]:
        """The entries of patterns; none for one that is gone."""
        paths = [acl_path(pattern) for pattern in patterns]
        nodes = await self._zookeeper.get_data(paths) if paths else ()
        entries: dict[ResourcePattern, tuple[Acl, ...]] = {}
        for pattern, path, node in zip(patterns, paths, nodes, strict=True):
            if node is None:
                entries[pattern] = ()
                continue
            entries[pattern], problem = acls_or_denial(path, node.data)
            if problem is not None:
                logger.error(
                    "Malformed access control list: what it concerns is denied to everybody",
                    extra={"path": problem.path, "reason": problem.reason},
                )
        return entries


def _unavailable(error: ZooKeeperError) -> AclsUnavailableError:
    return AclsUnavailableError(f"access control lists cannot be read from ZooKeeper: {error}")
