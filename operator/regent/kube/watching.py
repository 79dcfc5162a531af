"""Watches the objects of a kind from the version of its list on, so that nothing is missed.

After client-go's reflector: a list, then a watch from the very resourceVersion of that list, and a
watch that ends goes on from the last version it has shown. Only when the API server does not know
that version any more (410) are the objects listed again, and the list shows what was deleted
meanwhile. docs/kubernetes-side.md says why kopf's watch streams cannot do that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Final

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError, KubeError, KubeUnavailableError
from regent.kube.resync import Resync
from regent.kube.waiting import cancel
from regent.kube.work_queue import backoff_s
from regent.resources.kind import ResourceKind

logger = logging.getLogger(__name__)

_SERVER_TIMEOUT_S: Final = 600
"""The API server ends a watch after this time; then it goes on."""

_SILENT_AFTER_S: Final = 150.0
"""The API server sends a bookmark every minute. A connection without any is dead."""

_BRIEF_S: Final = 1.0
"""A watch that the API server ends this soon has failed, whatever it says."""

OnEvent = Callable[[str, Mapping[str, Any]], None]
"""Takes the type of a watch event (ADDED, MODIFIED, DELETED) and the object."""


async def watch_kind(
    client: KubeClient,
    kind: ResourceKind,
    resync: Resync,
    *,
    on_event: OnEvent,
    jitter: Callable[[], float],
) -> None:
    """Watch all namespaces that can be read, until cancelled.

    Args:
        resync: Lists when the watches cannot go on, and says what can be watched from where.
        jitter: Returns numbers from 0 to 1 that spread attempts.
    """
    failures = 0
    while True:
        if not resync.can_read:
            await resync.load()
        resync.namespaces_changed.clear()
        changing = asyncio.create_task(resync.namespaces_changed.wait(), name="kube namespaces")
        watches = [
            asyncio.create_task(
                watch_namespace(
                    client, kind, namespace, since=since, on_event=on_event, jitter=jitter
                ),
                name=f"kube watch {kind.kind} {namespace}",
            )
            for namespace, since in resync.watched.items()
        ]
        try:
            await asyncio.wait((changing, *watches), return_when=asyncio.FIRST_COMPLETED)
            ended = [watch for watch in watches if watch.done()]
        finally:
            await cancel((changing, *watches))
        if not ended:
            failures = 0
            continue
        try:
            for watch in ended:
                await watch
        except KubeError as error:
            # A right was taken away, the CRD went: a list shows what is left to be watched.
            failures += 1
            delay_s = resync.delay_after(failures)
            logger.warning(
                "A watch was refused, listing again",
                extra={"kind": kind.kind, "delay_s": round(delay_s, 1), "problem": str(error)},
            )
            await asyncio.sleep(delay_s)
        else:
            failures = 0
            logger.info(
                "The API server does not know the version of a watch any more, listing again",
                extra={"kind": kind.kind},
            )
        await resync.load()


async def watch_namespace(
    client: KubeClient,
    kind: ResourceKind,
    namespace: str,
    *,
    since: str,
    on_event: OnEvent,
    jitter: Callable[[], float],
) -> None:
    """Watch one namespace ("": all), across ends and failures of connections. Returns once the API
    server does not know the version to go on from any more: then a new list is needed.

    Args:
        since: resourceVersion of the list that the watch follows.

    Raises:
        KubeApiError: The API server refuses the watch.
        KubeLoginError: No credentials.
    """
    now = asyncio.get_running_loop().time
    version, failures = since, 0
    while True:
        began_at, has_shown = now(), False
        try:
            async with aclosing(_events(client, kind, namespace, since=version)) as events:
                async for type_, body in events:
                    has_shown = True
                    version = str(body["metadata"]["resourceVersion"])
                    if type_ != "BOOKMARK":
                        on_event(type_, body)
        except KubeUnavailableError as error:
            problem = str(error)
        except KubeApiError as error:
            if error.status == HTTPStatus.GONE:
                return
            if error.status < 500 and error.status != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            problem = str(error)
        else:
            if has_shown or now() - began_at > _BRIEF_S:
                failures = 0
                continue
            problem = "the API server ended it at once"
        failures = 1 if has_shown else failures + 1
        delay_s = backoff_s(min(failures, 6), jitter=jitter())
        logger.info(
            "A watch was interrupted, going on",
            extra={
                "kind": kind.kind,
                "namespace": namespace,
                "delay_s": round(delay_s, 1),
                "problem": problem,
            },
        )
        await asyncio.sleep(delay_s)


async def _events(
    client: KubeClient, kind: ResourceKind, namespace: str, *, since: str
) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
    """The events of one request: type and object.

    Raises:
        KubeError: As the client does; what the API server reports within the stream, too.
    """
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": since,
        "timeoutSeconds": str(_SERVER_TIMEOUT_S),
    }
    lines = client.stream(
        kind.collection_path(namespace), query=query, silent_after_s=_SILENT_AFTER_S
    )
    async with aclosing(lines):
        async for event in lines:
            body = event["object"]
            if event["type"] == "ERROR":
                code = body.get("code")
                raise KubeApiError(
                    str(body.get("message", "the watch failed")),
                    status=code if isinstance(code, int) else HTTPStatus.INTERNAL_SERVER_ERROR,
                    reason=str(body.get("reason", "")),
                )
            yield event["type"], body
