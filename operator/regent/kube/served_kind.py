"""A kind of resource that is served, and what serves it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from regent.kube.definition import DefinitionCheck
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.kube.reconciler import Reconciler
from regent.kube.resync import Resync
from regent.kube.status_writer import StatusWriter
from regent.kube.watching import KindWatch
from regent.resources.kind import ResourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKind:
    """The parts that serve one kind.

    Attributes:
        topics_changed: Called when topics have changed in the view; the keys that it is news for.
        view_replaced: Called at the start, and whenever the view was made anew.
        all_changed: Called when everything may have changed and nobody says what: after an
            election, and every few minutes.
        duty: What is to be done for the kind beside its resources, for ever; it is given what is
            set once these are known. None: nothing.
    """

    kind: ResourceKind
    cache: ObjectCache
    resync: Resync
    watch: KindWatch
    definition: DefinitionCheck
    writer: StatusWriter[Any, Any]
    reconciler: Reconciler[Any, Any, Any]
    topics_changed: Callable[[frozenset[str]], frozenset[ObjectKey]]
    all_changed: Callable[[], None]
    view_replaced: Callable[[], None]
    duty: Callable[[asyncio.Event], Coroutine[Any, Any, None]] | None = None

    def background(self) -> tuple[tuple[str, Coroutine[Any, Any, None]], ...]:
        """What has to run beside the watch, until cancelled, each with a name."""
        duty = () if self.duty is None else (("duty", self.duty(self.resync.loaded)),)
        return (
            *duty,
            ("confirmation", self.watch.confirm()),
            ("resync", self.resync.run()),
            ("checks", self.resync.check()),
            ("definition", self.definition.run()),
        )
