"""The thin layer that kopf calls. kopf watches, and does nothing else.

Only ``on.event``: it writes nothing to the objects and keeps no progress. A handler puts the object
into the cache and the key into the queue; it does no work, and needs no server that may be away.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, cast

import kopf

from regent.resources.kind import GROUP, VERSION, ResourceKind

Login = Callable[[], Awaitable[kopf.AiohttpSession]]
"""Reads credentials."""

KOPF_FINALIZER: Final = f"{GROUP}/kopf"

_WATCH_SERVER_TIMEOUT_S: Final = 600
_WATCH_CLIENT_TIMEOUT_S: Final = 660


class NoDiffBase(kopf.DiffBaseStorage):
    """Keeps nothing, and builds nothing to be compared.

    kopf builds an object's essence, a deep copy, for every event, also where nobody has asked for
    differences. That was a third of what kopf does for an event.
    """

    def build(self, **_: Any) -> kopf.BodyEssence:
        return cast(kopf.BodyEssence, {})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        pass


class HandlerContext:
    """What the handlers reach through kopf's memo. kopf copies the memo for each object."""

    def __init__(self, *, on_event: Callable[[str, str | None, Mapping[str, Any]], None]) -> None:
        """
        Args:
            on_event: Takes the kind, the type of a watch event (None: from the initial list) and
                the object.
        """
        self.on_event = on_event

    def __copy__(self) -> HandlerContext:
        return self


def build_registry(kinds: Iterable[ResourceKind], login: Login) -> kopf.OperatorRegistry:
    """The registry with all handlers. Not the default one: importing must have no effects.

    Args:
        login: Called at the beginning, and whenever the API server does not know the credentials.
    """
    registry = kopf.OperatorRegistry()

    for kind in kinds:
        _register_kind(registry, kind)

    @kopf.on.login(registry=registry, id="login", errors=kopf.ErrorsMode.TEMPORARY, backoff=5)
    async def on_login(**_: Any) -> kopf.AiohttpSession:
        return await login()

    return registry


def _register_kind(registry: kopf.OperatorRegistry, kind: ResourceKind) -> None:
    @kopf.on.event(GROUP, VERSION, kind.plural, registry=registry, id=kind.kind.lower())
    async def on_event(event: Any, memo: Any, **_: Any) -> None:
        memo.on_event(kind.kind, event["type"], event["object"])


def build_settings(*, page_size: int) -> kopf.OperatorSettings:
    """kopf's settings: no peering, no posting, no scanning, its marks under our own names.

    Args:
        page_size: Objects per page when listing.
    """
    settings = kopf.OperatorSettings()
    # Peering is not a lock and has no fencing token. ZooKeeper elects, /controller fences.
    settings.peering.standalone = True
    settings.posting.enabled = False
    # CRDs and namespaces are fixed for the life of the process: fewer rights are needed that way.
    settings.scanning.disabled = True
    # For safety only: bookmarks and kopf's inactivity timeout already end silent watches.
    settings.watching.server_timeout = _WATCH_SERVER_TIMEOUT_S
    settings.watching.client_timeout = _WATCH_CLIENT_TIMEOUT_S
    settings.watching.chunk_size = page_size
    settings.networking.request_timeout = 30
    settings.execution.max_workers = 1
    # A handler only enqueues: its task need not stay, nor be waited for at the end.
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 0.5
    # Nothing of this is written with on.event alone. But kopf *removes* its finalizer wherever it
    # finds it and has no use for it: so this must be another one than Regent's own.
    settings.persistence.finalizer = KOPF_FINALIZER
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = NoDiffBase()
    return settings
