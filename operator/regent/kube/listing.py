"""Complete lists of the objects of a kind, page by page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError, KubeNotFoundError, KubeUnavailableError
from regent.kube.rights import LIST, describe_missing, lack_of, missing_rights
from regent.kube.settings import KubeSettings
from regent.resources.kind import ALL_NAMESPACES, ResourceKind

Body = dict[str, Any]
"""An object as the API server has it."""

_ATTEMPTS: Final = 5
"""At a list that the API server forgets before all its pages are read."""


def _whole(body: Body) -> Body:
    return body


@dataclass(frozen=True, slots=True)
class Listing:
    """What can be listed now.

    Attributes:
        bodies: The objects of all readable namespaces.
        version: A resourceVersion that they are not older than: that of the oldest list. Good for
            deciding that an object known in an older version is gone.
        readable: The namespaces that were listed; ``ALL_NAMESPACES`` if none was named.
        unreadable: The others, each with what is missing.
        unwritable: Readable ones in which a right to write is missing, each with what it is.
    """

    bodies: list[Body]
    version: str
    readable: tuple[str, ...]
    unreadable: Mapping[str, str]
    unwritable: Mapping[str, str]


async def list_objects(
    client: KubeClient,
    kind: ResourceKind,
    settings: KubeSettings,
    *,
    reduce: Callable[[Body], Body] = _whole,
) -> Listing:
    """List all objects of a kind that are served, namespace by namespace.

    A namespace that may not be read does not keep the others from being listed.

    Args:
        reduce: See :func:`list_namespace`.

    Raises:
        KubeError: What concerns all namespaces: no answer, no credentials, ``KubeNotFoundError`` if
            there is no CRD.
    """
    bodies: list[Body] = []
    versions: list[str] = []
    readable: list[str] = []
    unreadable: dict[str, str] = {}
    unwritable: dict[str, str] = {}
    for namespace in settings.namespaces or (ALL_NAMESPACES,):
        lack = lack_of(await missing_rights(client, kind, namespace), kind, namespace)
        if lack.reading is not None:
            unreadable[namespace] = lack.reading
            continue
        try:
            listed, version = await list_namespace(
                client, kind, namespace, page_size=settings.page_size, reduce=reduce
            )
        except KubeApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            unreadable[namespace] = describe_missing([LIST], kind, namespace)
            continue
        bodies.extend(listed)
        versions.append(version)
        readable.append(namespace)
        if lack.writing is not None:
            unwritable[namespace] = lack.writing
    oldest = min(versions, key=lambda v: int(v) if v.isdigit() else 0, default="0")
    return Listing(bodies, oldest, tuple(readable), unreadable, unwritable)


async def list_namespace(
    client: KubeClient,
    kind: ResourceKind,
    namespace: str,
    *,
    page_size: int,
    reduce: Callable[[Body], Body] = _whole,
) -> tuple[list[Body], str]:
    """The objects of a kind in a namespace (``ALL_NAMESPACES``: in all), and the list's version.

    Args:
        reduce: What is needed of an object. The rest is let go with its page: annotations may be a
            hundred times as large.

    Raises:
        KubeError: As the client does; ``KubeNotFoundError`` if there is no CRD.
    """
    expired = 0
    while True:
        try:
            return await _list_pages(client, kind, namespace, page_size=page_size, reduce=reduce)
        except KubeNotFoundError as error:
            raise KubeNotFoundError(
                f"the API server does not know {kind.kind}s: the CustomResourceDefinition "
                f"{kind.crd_name} is not installed; `regent crds | kubectl apply -f -` "
                "does it",
                status=error.status,
                reason=error.reason,
            ) from error
        except KubeApiError as error:
            expired += 1
            if error.status != HTTPStatus.GONE or expired >= _ATTEMPTS:
                raise


async def _list_pages(
    client: KubeClient,
    kind: ResourceKind,
    namespace: str,
    *,
    page_size: int,
    reduce: Callable[[Body], Body],
) -> tuple[list[Body], str]:
    """One attempt. The API server answers 410 if it has forgotten the version that is listed."""
    path = kind.collection_path(namespace)
    bodies: list[Body] = []
    query = {"limit": str(page_size)}
    while True:
        page = await client.get(path, query=query)
        metadata, items = page.get("metadata"), page.get("items", "")
        if items is None:  # a list of Go without elements
            items = []
        if (
            not isinstance(metadata, Mapping)
            or not metadata.get("resourceVersion")
            or not isinstance(items, list)
        ):
            raise KubeUnavailableError(
                f"GET {path}: the answer is no list of {kind.kind}s: {str(page)[:200]}; is there "
                "an API server at this address?"
            )
        bodies.extend(map(reduce, items))
        token = metadata.get("continue")
        if not token:
            return bodies, str(metadata["resourceVersion"])
        if token == query.get("continue"):
            raise KubeUnavailableError(f"GET {path}: the API server answers the same page again")
        query = {"limit": str(page_size), "continue": token}


async def version_now(client: KubeClient, kind: ResourceKind, namespace: str) -> str:
    """The resourceVersion that a list of a namespace (``ALL_NAMESPACES``: of all) has now.

    Raises:
        KubeError: As the client does.
    """
    page = await client.get(kind.collection_path(namespace), query={"limit": "1"})
    return str(page.get("metadata", {}).get("resourceVersion", ""))
