from __future__ import annotations

import asyncio
from typing import Any

import pytest

from regent.kube.client import KubeClient
from regent.kube.errors import KubeNotFoundError
from regent.kube.health import KindHealth
from regent.kube.resync import Resync
from regent.kube.settings import KubeSettings
from regent.reconcile.topics.kind import KAFKA_TOPIC
from tests.unit.kube.jumping_clock import jumping
from tests.unit.kube.stored_objects import topic_cache

HOUR_S = 3_600


class WithoutDefinition(KubeClient):
    """An API server without the definition of KafkaTopics."""

    def __init__(self) -> None:
        super().__init__(max_connections=1, request_timeout_s=1)
        self.requests = 0

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        self.requests += 1
        raise KubeNotFoundError("404 page not found", status=404)


@jumping
async def test_a_definition_that_stays_missing_is_logged_once_in_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = WithoutDefinition()
    cache, _ = topic_cache()
    resync = Resync(
        client,
        KAFKA_TOPIC.kind,
        KubeSettings(),
        cache=cache,
        health=KindHealth("KafkaTopic"),
        jitter=lambda: 1.0,
        on_news=lambda _: None,
        on_resync=lambda: None,
    )
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(HOUR_S):
            await resync.load()
    assert client.requests > 300
    assert caplog.messages == ["Resources cannot be listed, retrying"] * 6
