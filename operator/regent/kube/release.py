"""``regent release``: takes Regent's finalizer off the KafkaTopics, for the time after Regent.

Without Regent the finalizer of a KafkaTopic that is deleted stays, so it, and its namespace,
would never go. Nothing else of the resources is changed, and nothing in Kafka.

A Regent that still runs would put the finalizers back. So its Deployment can be scaled to zero
first, and afterwards everything is listed again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from regent.kube.claim_index import ClaimIndex
from regent.kube.client import KubeClient
from regent.kube.errors import (
    KubeApiError,
    KubeError,
    KubeNotFoundError,
    KubeUnavailableError,
)
from regent.kube.eviction.broker_pods import is_name
from regent.kube.listing import list_namespace
from regent.kube.login import login
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.kube.settings import KubeSettings
from regent.kube.status_writer import StatusWriter, WriteResult
from regent.model.errors import ConfigurationError, RegentError
from regent.reconcile.selection import ClusterSelection
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.kafka_topic import FINALIZER
from regent.resources.kind import ALL_NAMESPACES

_CONCURRENCY: Final = 16
_PODS_TIMEOUT_S: Final = 180.0
_POLL_INTERVAL_S: Final = 0.5
_PUT_BACK_WITHIN_S: Final = 3.0
"""A Regent that still runs puts a finalizer back within moments of the watch event."""
_CONFLICTS_MAX: Final = 5
_FOUND_IN_EVERY_CLUSTER: Final = "/apis/apiextensions.k8s.io/v1"
_POD_PHASES_THAT_ENDED: Final = ("Succeeded", "Failed")


class ReleaseError(RegentError):
    """Some KafkaTopics still have Regent's finalizer."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A Deployment of Regent."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Deployment:
        """From ``NAMESPACE/NAME``.

        Raises:
            ConfigurationError: If it is something else.
        """
        namespace, _, name = text.partition("/")
        # They become a path of the API.
        if not (is_name(namespace) and is_name(name)):
            raise ConfigurationError(f"{text!r} is not NAMESPACE/NAME of a Deployment")
        return cls(namespace, name)

    @property
    def path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.name}"


async def release(
    *,
    namespaces: Sequence[str],
    deployment: Deployment | None,
    dry_run: bool,
    report: Callable[[str], None],
    skip_forbidden: bool = False,
    selection: ClusterSelection | None = None,
) -> None:
    """Release all KafkaTopics.

    Args:
        namespaces: Only those in these namespaces; none: in all.
        deployment: Regent's, to be scaled to zero first; None: nothing of it runs.
        dry_run: Only report.
        report: Called with a line for everything that is done.
        skip_forbidden: Skip namespaces in which KafkaTopics may not be listed, and those that do
            not exist.
        selection: Only those that a Regent with this selection serves; None: all.

    Raises:
        ConfigurationError: One of the namespaces does not exist. Nothing was changed in any.
        ReleaseError: Some resources could not be released, or a Regent put finalizers back that
            was not stopped. If it was, that is another one, whose resources these are, too.
        KubeError: The API server does not answer or refuses.
    """
    settings = KubeSettings()
    async with KubeClient(
        max_connections=_CONCURRENCY,
        request_timeout_s=settings.request_timeout_s,
        credentials=login,
    ) as client:
        scopes = await _scopes(client, namespaces, skip_missing=skip_forbidden, report=report)
        is_stopped = deployment is not None and await _stop(
            client, deployment, dry_run=dry_run, report=report
        )
        serves = (lambda _: True) if selection is None else selection.serves
        listed = partial(_list, client, scopes, serves=serves, skip_forbidden=skip_forbidden)
        cache = await listed(report=report)
        held = _holding(cache)
        found = len(cache)  # one that is being deleted is gone with its finalizer
        if dry_run:
            for key in held:
                report(f"would release {key}")
            report(f"{len(held)} of {found} KafkaTopics would be released")
            return
        await _release_all(client, cache, held, report=report)
        report(f"{len(held)} of {found} KafkaTopics released; their topics stay in Kafka")

        async def look() -> list[ObjectKey]:
            return _holding(await listed(report=lambda _: None))

        left = await _put_back(look, within_s=_PUT_BACK_WITHIN_S if held and not is_stopped else 0)
    if left:
        again = (
            f"{len(left)} KafkaTopics have the finalizer {FINALIZER} again, for instance {left[0]}"
        )
        if not is_stopped:
            raise ReleaseError(
                f"{again}: a Regent still runs; scale its Deployment to 0 (see --deployment) and "
                "try again"
            )
        report(f"{again}: another Regent, which still runs, serves them, too")


async def _scopes(
    client: KubeClient,
    namespaces: Sequence[str],
    *,
    skip_missing: bool,
    report: Callable[[str], None],
) -> Sequence[str]:
    """Where to list: in the namespaces that exist; in all, if none is named.

    A namespace that may not be looked up is taken to exist.

    Raises:
        ConfigurationError: One does not exist, and is not to be skipped: its name is misspelled.
    """
    if not namespaces:
        return (ALL_NAMESPACES,)
    existing = []
    for namespace in namespaces:
        try:
            await client.get(f"/api/v1/namespaces/{namespace}")
        except KubeNotFoundError as error:
            await _require_api_server(client)
            if not skip_missing:
                raise ConfigurationError(
                    f"there is no namespace {namespace!r}; correct --namespace (nothing was "
                    "changed)"
                ) from error
            report(f"skipped namespace {namespace}: it does not exist")
            continue
        except KubeApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
        existing.append(namespace)
    return existing


async def _put_back(
    look: Callable[[], Awaitable[list[ObjectKey]]], *, within_s: float
) -> list[ObjectKey]:
    """The resources that have the finalizer again, as soon as there are any within that time."""
    now = asyncio.get_running_loop().time
    until = now() + within_s
    while not (left := await look()) and now() < until:  # noqa: ASYNC110 - as below
        await asyncio.sleep(_POLL_INTERVAL_S)
    return left


async def _list(
    client: KubeClient,
    scopes: Sequence[str],
    *,
    serves: Callable[[Mapping[str, Any]], bool],
    skip_forbidden: bool,
    report: Callable[[str], None],
) -> ObjectCache:
    """All KafkaTopics of namespaces, or of ALL_NAMESPACES. Without the CRD there are none.

    Raises:
        KubeError: The API server does not answer or refuses, or there is none at its address.
    """
    bodies: list[dict[str, Any]] = []
    version = ""
    page_size = KubeSettings().page_size
    for namespace in scopes:
        try:
            listed, version = await list_namespace(
                client, KAFKA_TOPIC.kind, namespace, page_size=page_size
            )
        except KubeNotFoundError:
            await _require_api_server(client)
            report("there is no CustomResourceDefinition of KafkaTopics, so there are none")
            break
        except KubeApiError as error:
            if not (namespace and skip_forbidden and error.status == HTTPStatus.FORBIDDEN):
                raise
            report(f"skipped namespace {namespace}: {error}")
            continue
        bodies.extend(listed)
    cache = ObjectCache(KAFKA_TOPIC.kind.kind, ClaimIndex(KAFKA_TOPIC), serves=serves)
    cache.replace_all(bodies, listed_version=version)
    return cache


async def _require_api_server(client: KubeClient) -> None:
    """Raise KubeUnavailableError for what answers 404 to everything."""
    try:
        await client.get(_FOUND_IN_EVERY_CLUSTER)
    except KubeNotFoundError as error:
        raise KubeUnavailableError(
            f"{error}: what answers is no API server; correct the server's address in the "
            "kubeconfig"
        ) from error
    except KubeApiError:  # who may not read it has asked an API server
        pass


def _holding(cache: ObjectCache) -> list[ObjectKey]:
    """Keys of the resources with Regent's finalizer."""
    known = ((key, cache.get(key)) for key in sorted(cache.keys()))
    return [key for key, topic in known if topic is not None and FINALIZER in topic.finalizers]


async def _release_all(
    client: KubeClient,
    cache: ObjectCache,
    keys: Sequence[ObjectKey],
    *,
    report: Callable[[str], None],
) -> None:
    writer = StatusWriter(client, KAFKA_TOPIC, cache, on_news=lambda _: None)
    turns = asyncio.Semaphore(_CONCURRENCY)
    failures: list[str] = []

    async def release_one(key: ObjectKey) -> None:
        async with turns:
            try:
                result = await _remove_finalizer(writer, cache, key)
            except KubeError as error:
                failures.append(f"{key}: {error}")
                return
        if result is WriteResult.CHANGED:
            failures.append(f"{key} changes faster than it can be written")
        else:
            report(f"{key} is gone" if result is WriteResult.GONE else f"released {key}")

    await asyncio.gather(*map(release_one, keys))
    if failures:
        shown = "\n  ".join(failures[:10])
        raise ReleaseError(f"{len(failures)} KafkaTopics could not be released:\n  {shown}")


async def _remove_finalizer(
    writer: StatusWriter[Any, Any], cache: ObjectCache, key: ObjectKey
) -> WriteResult:
    """Remove the finalizer, whatever the resource says by then."""
    for _ in range(_CONFLICTS_MAX):
        known = cache.get(key)
        if known is None:
            return WriteResult.GONE
        result = await writer.remove_finalizer(key, known.uid, generation=known.generation)
        if result is not WriteResult.CHANGED:
            return result
    return WriteResult.CHANGED


async def _stop(
    client: KubeClient,
    deployment: Deployment,
    *,
    dry_run: bool,
    report: Callable[[str], None],
) -> bool:
    """Scale to zero, and wait until no pod is left that could put finalizers back.

    Returns:
        Whether that was done. There may be no such Deployment, or none by this name.
    """
    shown = f"Deployment {deployment.namespace}/{deployment.name}"
    try:
        found = await client.get(deployment.path)
    except KubeNotFoundError:
        report(f"there is no {shown}")
        return False
    if dry_run:
        report(f"would scale {shown} to 0")
        return False
    selector = label_selector(found["spec"]["selector"])
    await client.merge_patch(f"{deployment.path}/scale", {"spec": {"replicas": 0}})
    report(f"scaled {shown} to 0")

    async def pods() -> list[str]:
        listed = await client.get(
            f"/api/v1/namespaces/{deployment.namespace}/pods", query={"labelSelector": selector}
        )
        return [
            pod["metadata"]["name"]
            for pod in listed["items"]
            if pod.get("status", {}).get("phase") not in _POD_PHASES_THAT_ENDED
        ]

    await _wait_until_gone(pods, shown)
    return True


def label_selector(selector: Mapping[str, Any]) -> str:
    """A selector of an object as lists take it in their query."""
    terms = [f"{name}={value}" for name, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        name, values = each["key"], ",".join(each.get("values") or ())
        match each["operator"]:
            case "Exists":
                terms.append(name)
            case "DoesNotExist":
                terms.append(f"!{name}")
            case operator:
                terms.append(f"{name} {operator.lower()} ({values})")
    return ",".join(terms)


async def _wait_until_gone(pods: Callable[[], Awaitable[list[str]]], owner: str) -> None:
    try:
        async with asyncio.timeout(_PODS_TIMEOUT_S):
            while await pods():  # noqa: ASYNC110 - what is awaited happens elsewhere
                await asyncio.sleep(_POLL_INTERVAL_S)
    except TimeoutError as error:
        raise ReleaseError(
            f"pods of {owner} still run {_PODS_TIMEOUT_S:.0f} s after it was scaled to 0; they "
            "would put the finalizers back"
        ) from error
