"""The newest known version of every object of a kind.

Fed by the watch, by lists and by the answers to Regent's own writes, in whatever order these come
in: an older version never replaces a newer one. Because answers are fed in, the watch event that
follows a status write is no news, and costs no reconciliation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

_KEPT_METADATA: Final = (
    "name",
    "namespace",
    "uid",
    "generation",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
)

_DELETED_MAX: Final = 20_000
"""Deleted objects that are remembered. What overtakes them is seconds old at most."""


class ObjectKey(NamedTuple):
    """Identifies an object. Strings only: hashing and comparing happen in C."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class ObjectIndex(Protocol):
    """What follows from the objects for one another. Its methods return the keys of those that a
    change is news for."""

    def put(self, key: ObjectKey, body: Mapping[str, Any]) -> frozenset[ObjectKey]: ...

    def remove(self, key: ObjectKey) -> frozenset[ObjectKey]: ...

    def clear(self) -> None: ...


@dataclass(frozen=True, slots=True)
class CachedObject:
    """A version of an object, without the metadata that is not needed."""

    key: ObjectKey
    uid: str
    version: str
    body: Mapping[str, Any]

    @property
    def status(self) -> Mapping[str, Any]:
        """The raw status."""
        return _mapping(self.body.get("status"))

    @property
    def is_ready(self) -> bool:
        """Whether the status says that it is ready, as it is now."""
        if self.status.get("observedGeneration") != self.generation:
            return False
        conditions = self.status.get("conditions")
        return any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in (conditions if isinstance(conditions, list) else ())
            if isinstance(condition, Mapping)
        )

    @property
    def generation(self) -> int:
        return int(self.body["metadata"].get("generation", 0))

    def is_same_generation(self, other: CachedObject) -> bool:
        """Whether it is the same object, and the same is wanted of it."""
        return (self.uid, self.generation) == (other.uid, other.generation)

    @property
    def finalizers(self) -> list[str]:
        return list(self.body["metadata"].get("finalizers", ()))


class _Deletion(NamedTuple):
    """An object that is gone, and the resourceVersion of its deletion; 0 if that is not known."""

    key: ObjectKey
    version: int


class ObjectCache:
    """The objects of one kind by key.

    Args:
        kind: Its name.
        index: Kept up to date.
        serves: Whether an object is served here. Others are not kept.
    """

    def __init__(
        self,
        kind: str,
        index: ObjectIndex,
        *,
        serves: Callable[[Mapping[str, Any]], bool] = lambda _: True,
    ) -> None:
        self._kind = kind
        self._index = index
        self._serves = serves
        # Versions by uid of objects that are not served: an older one may say that they are.
        self._unserved: dict[str, str] = {}
        # By uid, in the order in which they were found out: the versions of deletions, if known.
        self._deleted: dict[str, _Deletion] = {}
        self._objects: dict[ObjectKey, CachedObject] = {}
        self._newest = 0

    def __len__(self) -> int:
        return len(self._objects)

    def keys(self) -> tuple[ObjectKey, ...]:
        """All keys, in the order in which the objects became known."""
        return tuple(self._objects)

    def identities(self) -> list[tuple[str, str]]:
        """Namespace and uid of every object."""
        return [(key.namespace, known.uid) for key, known in self._objects.items()]

    def get(self, key: ObjectKey) -> CachedObject | None:
        """The newest known version of an object, None if it does not exist."""
        return self._objects.get(key)

    @property
    def newest_version(self) -> int:
        """The newest resourceVersion of anything that was taken in; 0 if there is none.

        What is listed from now on cannot be older, unless :meth:`shows_earlier_state`.
        """
        return self._newest

    def keys_not_ready(self) -> frozenset[ObjectKey]:
        """Objects whose status does not say that they are ready."""
        return frozenset(key for key, cached in self._objects.items() if not cached.is_ready)

    def key_of(self, body: Mapping[str, Any]) -> ObjectKey:
        """The key of an object."""
        metadata = body["metadata"]
        return ObjectKey(self._kind, metadata.get("namespace", ""), metadata["name"])

    def reduced(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out the parts of an object that nothing here reads.

        The result can be put, or reduced again, in place of the object. So the other parts of a
        listed page need not stay in memory until the last page is listed.
        """
        metadata = body["metadata"]
        return {
            "metadata": {name: metadata[name] for name in _KEPT_METADATA if name in metadata},
            "spec": body.get("spec"),  # of another shape it is refused: an empty one would be valid
            "status": _mapping(body.get("status")),
        }

    def put(self, body: Mapping[str, Any]) -> frozenset[ObjectKey]:
        """Take in a version of an object; the keys of the objects that it is news for.

        A version that is not newer than the known one is no news. Nor is one of an object that is
        known to be deleted: lists and answers can be overtaken by the watch.
        """
        new = self._cached(body)
        self._note_version(new.version)
        if new.uid in self._deleted:
            return frozenset()
        old = self._objects.get(new.key)
        if old is not None and old.uid == new.uid and not _is_newer(new.version, old.version):
            return frozenset()
        if not self._is_served(new):
            if old is None or not _is_newer(new.version, old.version):
                return frozenset()
            return self.remove(new.key, uid=old.uid)
        self._objects[new.key] = new
        news = self._index.put(new.key, new.body)
        if old is None or _essence(old.body) != _essence(new.body):
            news |= {new.key}
        return news

    def _cached(self, body: Mapping[str, Any]) -> CachedObject:
        metadata = body["metadata"]
        return CachedObject(
            key=self.key_of(body),
            uid=metadata.get("uid", ""),
            version=metadata.get("resourceVersion", ""),
            body=self.reduced(body),
        )

    def _is_served(self, new: CachedObject) -> bool:
        """Whether an object is served, by the newest of its versions."""
        newest = self._unserved.get(new.uid)
        if newest is not None and not _is_newer(new.version, newest):
            return False
        if self._serves(new.body):
            self._unserved.pop(new.uid, None)
            return True
        self._unserved[new.uid] = new.version
        return False

    def newest(self, *, among: Callable[[ObjectKey], bool]) -> CachedObject | None:
        """The object that was written last, None if there is none."""
        known = (known for key, known in self._objects.items() if among(key))
        return max(known, key=lambda each: number_of(each.version), default=None)

    def delete(self, key: ObjectKey, *, uid: str, version: str = "") -> frozenset[ObjectKey]:
        """Forget an object that was deleted for good, which no later version can revive; the keys
        of the objects that it is news for.

        Args:
            version: resourceVersion of the deletion, as a watch reports it.
        """
        self._unserved.pop(uid, None)
        self._deleted[uid] = _Deletion(key, number_of(version))
        while len(self._deleted) > _DELETED_MAX:
            del self._deleted[next(iter(self._deleted))]
        return self.remove(key, uid=uid)

    def remove(self, key: ObjectKey, *, uid: str) -> frozenset[ObjectKey]:
        """Forget an object that was not found; the keys of the objects that it is news for.

        An object that was created again under the same name has another uid and stays.
        """
        old = self._objects.get(key)
        if old is None or old.uid != uid:
            return frozenset()
        del self._objects[key]
        return self._index.remove(key) | {key}

    @property
    def last_deletion(self) -> tuple[ObjectKey, str] | None:
        """Key and uid of the object whose deletion was found out last, None if there was none."""
        uid = next(reversed(self._deleted), None)
        return None if uid is None else (self._deleted[uid].key, uid)

    def shows_earlier_state(
        self, bodies: Iterable[Mapping[str, Any]], *, listed_version: str, since: int = 0
    ) -> bool:
        """Whether a list shows that the API server has gone back to an earlier state: a backup of
        etcd was restored, and versions are given anew from there.

        Why that is sound: etcd's revisions only grow, and a list shows every object as it was at
        the revision that is the list's version. So in one history a list that was asked for after
        a version was seen has no lower version itself; and if its version is not lower than that of
        a known object, or of a known deletion, then it has that object in the same version or a
        later one, and what was deleted is not in it. What contradicts that belongs to another
        history, however far this one has come meanwhile; or the definition has changed, by which
        the API server drops fields and adds defaults as it reads. In both cases what is known is of
        no use. An object that contradicts nothing is
        either unchanged or newer: its listed version is taken in as always.

        Args:
            listed_version: resourceVersion of the list, or of the oldest of several; "0" or empty:
                nothing could be listed.
            since: :attr:`newest_version` before the list was asked for.
        """
        if is_history_restarted(listed_version, since=since):
            return True
        until = number_of(listed_version)
        return any(self._is_contradicted(body, until=until) for body in bodies)

    def _is_contradicted(self, listed: Mapping[str, Any], *, until: int) -> bool:
        uid = listed["metadata"].get("uid", "")
        deletion = self._deleted.get(uid)
        if deletion is not None:
            return 0 < deletion.version <= until
        known = self._objects.get(self.key_of(listed))
        if known is None or known.uid != uid or number_of(known.version) > until:
            return False
        version = listed["metadata"].get("resourceVersion", "")
        if known.version == version:
            return _essence(known.body) != _essence(self.reduced(listed))
        return number_of(version) < number_of(known.version)

    def replace_all(
        self,
        bodies: Iterable[Mapping[str, Any]],
        *,
        listed_version: str,
        is_restarted: bool = False,
    ) -> frozenset[ObjectKey]:
        """Take in a complete list; the keys of the objects that it is news for.

        Args:
            listed_version: resourceVersion of the list: a known object that is missing from the
                list and not newer than it was deleted.
            is_restarted: Whether :meth:`shows_earlier_state` says so of the list.
        """
        bodies = list(bodies)
        news = self._forget() if is_restarted else frozenset()
        news |= self.replace(bodies, listed_version=listed_version, among=lambda _: True)
        uids = {body["metadata"].get("uid", "") for body in bodies}
        for uid in self._unserved.keys() - uids:
            if not _is_newer(self._unserved[uid], listed_version):
                del self._unserved[uid]
        if is_restarted:
            # Among the bodies may be some that could not be listed now, with versions of before.
            self._newest = int(listed_version)
        return news

    def replace(
        self,
        bodies: Iterable[Mapping[str, Any]],
        *,
        listed_version: str,
        among: Callable[[ObjectKey], bool],
    ) -> frozenset[ObjectKey]:
        """Take in a list of some of the objects; the keys of the objects that it is news for.

        Args:
            listed_version: As for :meth:`replace_all`.
            among: Whether a key is one of those that were listed.
        """
        news: set[ObjectKey] = set()
        present: set[ObjectKey] = set()
        self._note_version(listed_version)
        for body in bodies:
            present.add(self.key_of(body))
            news.update(self.put(body))
        for key, known in tuple(self._objects.items()):
            if key in present or not among(key) or _is_newer(known.version, listed_version):
                continue
            news.update(self.remove(key, uid=known.uid))
        return frozenset(news)

    def _note_version(self, version: str) -> None:
        if version.isdigit():
            self._newest = max(self._newest, int(version))

    def _forget(self) -> frozenset[ObjectKey]:
        """Forget every object, the deleted ones, too: they may be back; the keys."""
        keys = frozenset(self._objects)
        self._objects.clear()
        self._index.clear()
        self._deleted.clear()
        self._unserved.clear()
        return keys


def is_history_restarted(listed_version: str, *, since: int) -> bool:
    """Whether the version of a list alone shows an earlier state; see
    :meth:`ObjectCache.shows_earlier_state`. False once the versions have caught up.
    """
    return 0 < number_of(listed_version) < since


def number_of(version: str) -> int:
    """A resourceVersion as a number; 0 if it is none."""
    return int(version) if version.isdigit() else 0


def _mapping(value: object) -> Mapping[str, Any]:
    """What should be an object; anything else, which another schema may have let in, is empty."""
    return value if isinstance(value, Mapping) else {}


def _essence(body: Mapping[str, Any]) -> tuple[Any, ...]:
    """The parts of an object that a reconciliation looks at, without labels, annotations and
    managed fields."""
    metadata = body["metadata"]
    return (
        metadata.get("uid", ""),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        metadata.get("finalizers"),
        _mapping(body.get("status")),
    )


def _is_newer(version: str, than: str) -> bool:
    """Whether one resourceVersion is newer than another.

    They are decimal numbers of etcd's revisions; Kubernetes declares them comparable from 1.35 on.
    Should one not be a number, the one that came last is taken to be newer.
    """
    if version.isdigit() and than.isdigit():
        return int(version) > int(than)
    return version != than
