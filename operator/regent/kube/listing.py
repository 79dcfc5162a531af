"""Complete lists of KafkaTopics, page by page."""

from __future__ import annotations

from typing import Any

from regent.kube.client import KubeClient
from regent.kube.errors import KubeNotFoundError
from regent.kube.settings import KubeSettings
from regent.resources.kafka_topic import KafkaTopic
from regent.resources.kind import API_VERSION


async def list_topics(
    client: KubeClient, settings: KubeSettings
) -> tuple[list[dict[str, Any]], str]:
    """All KafkaTopics that are served, and a resourceVersion that they are not older than.

    With several namespaces the version is that of the oldest list: good for deciding that an object
    known in an older version is gone.

    Raises:
        KubeError: As the client does; ``KubeNotFoundError`` if there is no CRD.
    """
    plural = KafkaTopic.kind.plural
    paths = [f"/namespaces/{namespace}" for namespace in settings.namespaces] or [""]
    bodies: list[dict[str, Any]] = []
    versions: list[str] = []
    for path in paths:
        listed, version = await _list(
            client, f"/apis/{API_VERSION}{path}/{plural}", page_size=settings.page_size
        )
        bodies.extend(listed)
        versions.append(version)
    return bodies, min(versions, key=lambda version: int(version) if version.isdigit() else 0)


async def _list(
    client: KubeClient, path: str, *, page_size: int
) -> tuple[list[dict[str, Any]], str]:
    bodies: list[dict[str, Any]] = []
    query = {"limit": str(page_size)}
    while True:
        try:
            page = await client.get(path, query=query)
        except KubeNotFoundError as error:
            raise KubeNotFoundError(
                "the API server does not know KafkaTopics: the CustomResourceDefinition "
                f"{KafkaTopic.kind.crd_name} is not installed; `regent crds | kubectl apply -f -` "
                "does it",
                status=error.status,
                reason=error.reason,
            ) from error
        bodies.extend(page.get("items", ()))
        metadata = page.get("metadata", {})
        token = metadata.get("continue")
        if not token:
            return bodies, str(metadata.get("resourceVersion", ""))
        query = {"limit": str(page_size), "continue": token}
