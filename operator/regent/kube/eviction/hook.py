"""Answers whether a pod may be evicted, in every replica: the cluster is read from the API only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError

from regent.kube.client import KubeClient
from regent.kube.errors import KubeApiError, KubeConflictError, KubeError, KubeNotFoundError
from regent.kube.eviction.broker_pods import (
    UnknownBrokerError,
    broker_of,
    is_broker,
    is_out_of_use,
    is_ready,
)
from regent.kube.eviction.drain_records import BrokerPod, EvictionRecord, KnownDrain, new_drain
from regent.kube.eviction.reviews import ALLOWED, EvictionReview, Verdict
from regent.kube.eviction.rules import Decision, decide
from regent.kube.eviction.settings import EvictionSettings
from regent.kube.listing import list_namespace
from regent.kube.settings import KubeSettings
from regent.resources.broker_drain import BrokerDrain
from regent.resources.kind import ALL_NAMESPACES

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 3
"""At a decision whose BrokerDrain somebody else changes at the same moment."""

_KIND: Final = BrokerDrain.kind


class EvictionHook:
    """Decides about evictions.

    Args:
        evictions: How.
        settings: Which BrokerDrains there are for the Kafka cluster.
        now: Returns the present, aware.
    """

    def __init__(
        self,
        client: KubeClient,
        evictions: EvictionSettings,
        settings: KubeSettings,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._evictions = evictions
        self._settings = settings
        self._now = now

    async def verdict(self, review: EvictionReview) -> Verdict:
        """Whether the pod may be evicted. Makes the BrokerDrain that it waits for.

        Raises:
            KubeError: The API server refuses something, or does not answer.
        """
        body = await self._pod(review)
        if body is None or not is_broker(body, self._evictions.pod_labels) or is_out_of_use(body):
            return ALLOWED
        try:
            broker = broker_of(body, label=self._evictions.broker_id_label)
        except UnknownBrokerError as error:
            return Verdict(HTTPStatus.FORBIDDEN, str(error))
        uid = body["metadata"]["uid"]
        pod = BrokerPod(review.namespace, review.pod, uid, broker, is_ready(body))
        problem: KubeError | None = None
        for _ in range(_ATTEMPTS):
            try:
                drains = await self._drains()
            except KubeApiError as error:
                why = "is drained is not known: the API server refuses to list BrokerDrains"
                return self._stays(pod, f"whether broker {broker} {why}", error)
            decision = decide(pod, drains, self._evictions, now=self._now())
            if review.is_dry_run:
                return decision.verdict
            try:
                await self._write(pod, decision)
            except (KubeConflictError, KubeNotFoundError) as error:
                logger.info(
                    "A BrokerDrain was changed while its eviction was decided",
                    extra={"pod": str(pod), "broker": broker, "problem": str(error)},
                )
                problem = error
                continue
            except KubeApiError as error:
                return self._stays(pod, self._not_written(pod, decision), error)
            self._report(pod, decision)
            return decision.verdict
        return Verdict(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"the BrokerDrain of broker {broker} is being changed by somebody else, or cannot be "
            f"written; try again: {problem}",
        )

    async def _pod(self, review: EvictionReview) -> Mapping[str, Any] | None:
        """None if there is no such pod: the API server says so itself."""
        try:
            return await self._client.get(
                f"/api/v1/namespaces/{review.namespace}/pods/{review.pod}"
            )
        except KubeNotFoundError:
            return None

    async def _drains(self) -> list[KnownDrain]:
        bodies: list[dict[str, Any]] = []
        for namespace in self._settings.namespaces or (ALL_NAMESPACES,):
            try:
                listed, _ = await list_namespace(
                    self._client, _KIND, namespace, page_size=self._settings.page_size
                )
            except KubeApiError as error:
                is_needed = namespace in (ALL_NAMESPACES, self._evictions.namespace)
                if is_needed or error.status != HTTPStatus.FORBIDDEN:
                    raise
                continue  # no resource in it is served while it may not be read; /readyz says so
            bodies.extend(filter(self._settings.selection.serves, listed))
        return [drain for drain in map(_known, bodies) if drain is not None]

    async def _write(self, pod: BrokerPod, decision: Decision) -> None:
        if decision.creates:
            body = new_drain(pod, self._evictions, now=self._now())
            path = _KIND.collection_path(self._evictions.namespace)
            await self._client.create(path, body)
        elif decision.notes is not None:
            metadata = decision.notes.parsed.metadata
            record = EvictionRecord.of(pod, now=self._now())
            patch = {
                "metadata": {
                    "resourceVersion": metadata.resource_version,
                    "annotations": record.annotations(),
                }
            }
            await self._client.merge_patch(
                _KIND.object_path(metadata.namespace, metadata.name), patch
            )

    def _stays(self, pod: BrokerPod, why: str, error: KubeApiError) -> Verdict:
        """Say why, if it is a refusal: a failed webhook lets the pod go, or says nothing.

        Raises:
            KubeApiError: The error, if it is none.
        """
        if not error.is_refusal:
            raise error
        logger.warning(
            "The API server refuses what an eviction needs",
            extra={"pod": str(pod), "broker": pod.broker, "problem": str(error)},
        )
        return Verdict(HTTPStatus.TOO_MANY_REQUESTS, f"{why}: {error}")

    def _not_written(self, pod: BrokerPod, decision: Decision) -> str:
        if decision.notes is not None:
            return (
                "the API server refuses what is to be noted in BrokerDrain "
                f"{decision.notes}, so broker {pod.broker} would not be looked after"
            )
        drain = f"{self._evictions.namespace}/{self._evictions.drain_name(pod.broker)}"
        return (
            f"broker {pod.broker} is not drained yet: the API server refuses BrokerDrain {drain} "
            "for this eviction"
        )

    def _report(self, pod: BrokerPod, decision: Decision) -> None:
        about = {"pod": str(pod), "broker": pod.broker}
        if decision.creates:
            name = self._evictions.drain_name(pod.broker)
            logger.info("An eviction waits for a new BrokerDrain", extra={**about, "drain": name})
        elif decision.verdict.refused_with is None:
            logger.info("A drained broker's pod may be evicted", extra=about)


def _known(body: Mapping[str, Any]) -> KnownDrain | None:
    try:
        return KnownDrain.read(body)
    except ValidationError as error:
        logger.warning(
            "A BrokerDrain cannot be read",
            extra={"drain": body["metadata"].get("name"), "problem": str(error)},
        )
        return None
