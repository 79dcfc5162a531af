"""The only place that writes to custom resources: their status and Regent's finalizer. It also
deletes those whose time is over.

Each write is bound to the resourceVersion it was computed from. So it can be compared with what is
really there: a status that is already right is not written, and one that a controller of the same
cluster with a higher epoch wrote is not overwritten, unless the caller knows better. Spec, labels
and annotations are never touched.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol

from regent.kube.client import KubeClient
from regent.kube.errors import KubeConflictError, KubeNotFoundError, KubeSchemaError
from regent.kube.merge_patch import merge_patch, overlaid
from regent.kube.object_cache import CachedObject, ObjectCache, ObjectKey
from regent.reconcile.kinds import ClaimT, KindDescriptor
from regent.reconcile.request import ResourceT

_SOMEBODY_ELSE: Final = (
    "a mutating admission webhook or policy, or another client, changes it; exempt Regent from that"
)

_CONFLICTS_MAX: Final = 4
"""Conflicts in a row after which a write is left to the next look at the resource."""


class WriteResult(enum.Enum):
    """What became of a write."""

    WRITTEN = enum.auto()
    UNCHANGED = enum.auto()
    GONE = enum.auto()
    OUTRANKED = enum.auto()
    CHANGED = enum.auto()
    """Not carried out: the object is not the one any more that this was decided for."""


@dataclass(frozen=True, slots=True)
class _Patch:
    """A merge patch of an object, or of its ``subresource``."""

    subresource: str
    body: dict[str, Any]


_Decision = WriteResult | _Patch


class WritableStatus(Protocol):
    """A status that can be written."""

    def to_api(self) -> dict[str, Any]:
        """Its JSON form."""
        ...


class StatusWriter(Generic[ResourceT, ClaimT]):
    """Writes status and finalizers of one kind, and feeds the answers into the cache.

    Attributes:
        writes: Requests that changed an object, since the start.
    """

    def __init__(
        self,
        client: KubeClient,
        kind: KindDescriptor[ResourceT, ClaimT],
        cache: ObjectCache,
        *,
        on_news: Callable[[frozenset[ObjectKey]], None],
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            on_news: Called with the objects for which an answer was news: another client changed
                them.
            on_step: Called before each request: what came before it is finished.
        """
        self._client = client
        self._kind = kind
        self._cache = cache
        self._on_news = on_news
        self._on_step = on_step
        self.writes = 0

    async def write_status(
        self,
        key: ObjectKey,
        uid: str,
        status: WritableStatus,
        *,
        over: str | None = None,
        in_full: bool = False,
        keeps_unread: bool = False,
    ) -> WriteResult:
        """Make the status of an object what it shall be. ``controllerEpoch`` alone is no change.

        Args:
            over: resourceVersion of the object whose status is overwritten whatever its epoch.
            in_full: Whether something depends on every field being stored.
            keeps_unread: Whether fields that are stored and not in ``status`` stay.

        Raises:
            KubeConflictError: If the object changes faster than it can be written.
            KubeSchemaError: If fields were dropped or changed, and ``in_full`` is asked for.
            KubeError: If the API server does not answer or refuses.
        """
        wanted = status.to_api()

        def decide(known: CachedObject) -> _Decision:
            status = overlaid(known.status, wanted) if keeps_unread else wanted
            return _status_decision(known, status, over)

        result = await self._write(key, uid, decide)
        known = self._cache.get(key)
        if in_full and result is WriteResult.WRITTEN and known is not None and known.uid == uid:
            _require_fields(wanted, known, crd_name=self._kind.kind.crd_name)
        return result

    async def add_finalizer(self, key: ObjectKey, uid: str) -> WriteResult:
        """Put Regent's finalizer on an object, unless it is there or it is being deleted.

        Raises as :meth:`write_status` does, KubeSchemaError if it was taken off again, and
        ValueError if the kind has no finalizer.
        """
        finalizer = self._kind.finalizer
        result = await self._write(key, uid, lambda known: _addition(known, finalizer))
        known = self._cache.get(key)
        if result is WriteResult.WRITTEN and known is not None and known.uid == uid:
            _require_finalizer(finalizer, known)
        return result

    async def remove_finalizer(self, key: ObjectKey, uid: str, *, generation: int) -> WriteResult:
        """Take Regent's finalizer off an object, and no other one.

        The object may be gone for good then. So this is done for the generation it was decided for
        only, and not tried again after a conflict: the decision has to be taken again.

        Raises:
            KubeConflictError: If the API server says that somebody has changed it, and nobody has.
            KubeSchemaError: If the finalizer is still there, or there again.
            KubeError: If the API server does not answer or refuses.
            ValueError: If the kind has no finalizer.
        """
        finalizer = self._kind.finalizer

        def removal(known: CachedObject) -> _Decision:
            return _removal(known, finalizer)

        def decide(known: CachedObject) -> _Decision:
            return WriteResult.CHANGED if known.generation != generation else removal(known)

        result = await self._write(key, uid, decide, is_final=True)
        known = self._cache.get(key)
        if result is WriteResult.WRITTEN and known is not None and known.uid == uid:
            _require_no_finalizer(finalizer, known)
        return result

    async def delete(self, known: CachedObject) -> WriteResult:
        """Delete an object if it is still this version of it. The watch shows when it is gone.

        Raises:
            KubeConflictError: As :meth:`remove_finalizer` does.
            KubeError: If the API server does not answer or refuses.
        """
        path = self._kind.kind.object_path(known.key.namespace, known.key.name)
        try:
            await self._client.delete(path, uid=known.uid, version=known.version)
        except KubeConflictError:
            await self._read_again(known.key, path)
            if self._is_newest(known):
                raise
            return WriteResult.CHANGED
        except KubeNotFoundError:
            self._on_news(self._cache.remove(known.key, uid=known.uid))
            return WriteResult.GONE
        self.writes += 1
        return WriteResult.WRITTEN

    async def _write(
        self,
        key: ObjectKey,
        uid: str,
        decide: Callable[[CachedObject], _Decision],
        *,
        is_final: bool = False,
    ) -> WriteResult:
        """Write what ``decide`` makes of the newest version; ``is_final``: at most once."""
        path = self._kind.kind.object_path(key.namespace, key.name)
        for _ in range(_CONFLICTS_MAX):
            known = self._cache.get(key)
            if known is None or known.uid != uid:
                return WriteResult.GONE
            self._on_step()
            decision = decide(known)
            try:
                if isinstance(decision, WriteResult):
                    return decision
                answer = await self._client.merge_patch(path + decision.subresource, decision.body)
            except KubeConflictError:
                await self._read_again(key, path)
                if not is_final:
                    continue
                if self._is_newest(known):
                    raise
                return WriteResult.CHANGED
            except KubeNotFoundError:
                self._on_news(self._cache.remove(key, uid=uid))
                return WriteResult.GONE
            self.writes += 1
            self._take(key, answer)
            return WriteResult.WRITTEN
        raise KubeConflictError(f"{key} changes faster than it can be written", status=409)

    def _take(self, key: ObjectKey, answer: Mapping[str, Any]) -> None:
        """Feed the answer to a write into the cache."""
        metadata = answer["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            # That was the last finalizer: there is no such object any more.
            self._on_news(self._cache.delete(key, uid=metadata["uid"]))
            return
        # Only what others changed is news; what was just written is not.
        self._on_news(self._cache.put(answer) - {key})

    def _is_newest(self, known: CachedObject) -> bool:
        """Whether nobody has changed an object. A conflict has another cause then, such as an
        admission webhook that answers so; it will be the same at once, so whoever writes waits."""
        newest = self._cache.get(known.key)
        return newest is not None and (newest.uid, newest.version) == (known.uid, known.version)

    async def _read_again(self, key: ObjectKey, path: str) -> None:
        """A conflict: somebody else changed the object. Look, and have everybody else look."""
        self._on_step()
        try:
            self._on_news(self._cache.put(await self._client.get(path)))
        except KubeNotFoundError:
            known = self._cache.get(key)
            if known is not None:
                self._on_news(self._cache.remove(key, uid=known.uid))


def _status_decision(known: CachedObject, wanted: dict[str, Any], over: str | None) -> _Decision:
    if known.version != over and _is_outranked(dict(known.status), wanted):
        return WriteResult.OUTRANKED
    patch = merge_patch(known.status, wanted)
    if not patch.keys() - {"controllerEpoch"}:
        return WriteResult.UNCHANGED
    return _patch(known, status=patch)


def _require_fields(wanted: Mapping[str, Any], known: CachedObject, *, crd_name: str) -> None:
    """Raise KubeSchemaError if a status was stored otherwise than it was written."""
    dropped, changed = _differences(wanted, known.status)
    if dropped:
        raise KubeSchemaError(
            f"the API server does not store {_listed(dropped)}: the CustomResourceDefinition "
            f"{crd_name} is older than this Regent; "
            "`regent crds | kubectl apply -f -` brings it up to date"
        )
    if changed:
        raise KubeSchemaError(
            f"{_listed(changed)} of {known.key} is another one than Regent has just written, and "
            f"nothing is done before it is stored: {_SOMEBODY_ELSE}"
        )


def _listed(fields: Set[str]) -> str:
    return ", ".join(f"status.{name}" for name in sorted(fields))


def _require_finalizer(finalizer: str, known: CachedObject) -> None:
    if _addition(known, finalizer) is not WriteResult.UNCHANGED:
        raise KubeSchemaError(
            f"the finalizer {finalizer} that Regent has just put on {known.key} is not there, and "
            f"nothing is done without it: {_SOMEBODY_ELSE}"
        )


def _require_no_finalizer(finalizer: str, known: CachedObject) -> None:
    if finalizer in known.finalizers:
        raise KubeSchemaError(
            f"the finalizer {finalizer} that Regent has just taken off {known.key} is still there: "
            f"{_SOMEBODY_ELSE}"
        )


def _differences(wanted: object, stored: object, name: str = "") -> tuple[set[str], set[str]]:
    """Names of fields that were not stored, also of those within others or in lists, and of those
    that were stored with another value."""
    dropped: set[str] = set()
    changed: set[str] = set()
    within: list[tuple[object, object, str]] = []
    if isinstance(wanted, Mapping) and isinstance(stored, Mapping):
        names = {each: f"{name}.{each}" if name else each for each in wanted}
        dropped.update(names[each] for each in wanted.keys() - stored.keys())
        within = [(wanted[each], stored[each], names[each]) for each in wanted if each in stored]
    elif isinstance(wanted, list) and isinstance(stored, list) and len(wanted) == len(stored):
        within = [(*each, name) for each in zip(wanted, stored, strict=True)]
    elif wanted != stored:
        changed.add(name)
    for each in within:
        for names_within, known in zip(_differences(*each), (dropped, changed), strict=True):
            known |= names_within
    return dropped, changed


def _addition(known: CachedObject, finalizer: str) -> _Decision:
    if finalizer in known.finalizers or "deletionTimestamp" in known.body["metadata"]:
        return WriteResult.UNCHANGED
    return _finalizer_patch(known, [*known.finalizers, finalizer])


def _removal(known: CachedObject, finalizer: str) -> _Decision:
    if finalizer not in known.finalizers:
        return WriteResult.UNCHANGED
    return _finalizer_patch(known, [name for name in known.finalizers if name != finalizer])


def _finalizer_patch(known: CachedObject, finalizers: list[str]) -> _Patch:
    # The list is replaced as a whole; the version keeps finalizers of others that came meanwhile.
    return _patch(known, metadata={"finalizers": finalizers})


def _patch(
    known: CachedObject,
    *,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> _Patch:
    """A change of exactly the version that is known. (A JSON patch with a test would not do: its
    failure and a refusal by an admission policy have the same answer, 422.)"""
    body: dict[str, Any] = {"metadata": {"resourceVersion": known.version, **(metadata or {})}}
    if status is None:
        return _Patch("", body)
    return _Patch("/status", {**body, "status": status})


def _is_outranked(known: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a newer controller of the same cluster wrote what is there.

    Each cluster counts its own epochs. A status that names no cluster counts for any.
    """
    clusters = {known.get("clusterId"), wanted.get("clusterId")} - {None}
    return len(clusters) < 2 and _epoch(known) > _epoch(wanted)


def _epoch(status: dict[str, Any]) -> int:
    epoch = status.get("controllerEpoch", 0)
    return epoch if isinstance(epoch, int) else 0
