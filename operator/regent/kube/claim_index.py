"""Which objects of a kind declare the same subject, and what they claim of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from regent.kube.object_cache import ObjectKey
from regent.reconcile.kinds import ClaimT, KindDescriptor
from regent.reconcile.request import ResourceT

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry(Generic[ClaimT]):
    subjects: tuple[str, ...]
    claim: ClaimT | None


class ClaimIndex(Generic[ResourceT, ClaimT]):
    """Kept by the object cache, which feeds it every version that it takes in.

    Attributes:
        on_change: Called after each change of what is declared or claimed.
    """

    def __init__(self, kind: KindDescriptor[ResourceT, ClaimT]) -> None:
        self._kind = kind
        self._entries: dict[ObjectKey, _Entry[ClaimT]] = {}
        self._by_subject: dict[str, dict[ObjectKey, None]] = {}
        self.on_change: Callable[[], None] = lambda: None

    def keys(self, subject: str) -> tuple[ObjectKey, ...]:
        """Keys of the objects that declare a subject."""
        return tuple(self._by_subject.get(subject, ()))

    def claims(self, subject: str) -> tuple[ClaimT, ...]:
        """Claims to a subject, in no particular order."""
        claims = (self._entries[key].claim for key in self._by_subject.get(subject, ()))
        return tuple(claim for claim in claims if claim is not None)

    def all_claims(self) -> tuple[ClaimT, ...]:
        """Claims to any subject, in no particular order."""
        return tuple(each.claim for each in self._entries.values() if each.claim is not None)

    def put(self, key: ObjectKey, body: Mapping[str, Any]) -> frozenset[ObjectKey]:
        """Take in a version; the keys of those that declare the same and that it is news for.

        One that cannot be read because of a defect declares nothing: the others are served on.
        """
        new = self._read(key, body)
        old = self._entries.get(key)
        if old == new:
            return frozenset()
        if old is not None:
            self._unindex(key, old)
        self._entries[key] = new
        for subject in new.subjects:
            self._by_subject.setdefault(subject, {})[key] = None
        self.on_change()
        return self._concerned(old, new)

    def remove(self, key: ObjectKey) -> frozenset[ObjectKey]:
        """Forget an object; the keys of those that declare the same and that it is news for."""
        old = self._entries.pop(key, None)
        if old is None:
            return frozenset()
        self._unindex(key, old)
        self.on_change()
        return self._concerned(old, None)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._by_subject.clear()
        self.on_change()

    def _read(self, key: ObjectKey, body: Mapping[str, Any]) -> _Entry[ClaimT]:
        try:
            return _Entry(self._kind.subjects(body), self._kind.claim(body))
        except Exception:
            # All objects of the kind come through here, in one list. The defect shows again where
            # the resource is reconciled, which is tried again.
            logger.exception(
                "A resource declares nothing after a defect", extra={"resource": str(key)}
            )
            return _Entry((), None)

    def _concerned(
        self, old: _Entry[ClaimT] | None, new: _Entry[ClaimT] | None
    ) -> frozenset[ObjectKey]:
        """Keys of the objects for which it is news that one is declared otherwise than before."""
        entries = [entry for entry in (old, new) if entry is not None]
        before, after = (None if entry is None else entry.claim for entry in (old, new))
        concerned: set[ObjectKey] = set()
        for subject in dict.fromkeys(name for entry in entries for name in entry.subjects):
            is_news = self._kind.news(before, after, self.claims(subject))
            keys = self._by_subject.get(subject, ())
            concerned.update(key for key in keys if is_news(self._entries[key].claim))
        return frozenset(concerned)

    def _unindex(self, key: ObjectKey, old: _Entry[ClaimT]) -> None:
        for subject in old.subjects:
            keys = self._by_subject.get(subject, {})
            keys.pop(key, None)
            if not keys:
                self._by_subject.pop(subject, None)
