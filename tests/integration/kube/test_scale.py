"""Many KafkaTopics at once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from regent.controller.commands import CreateTopic
from regent.kube.client import KubeClient
from regent.kube.listing import list_objects
from regent.kube.settings import KubeSettings
from regent.resources.kafka_topic import KafkaTopic
from sandbox import wait_until_async
from tests.integration.kube.conftest import Namespace, condition, running, topic
from tests.support.live_controller import LiveController
from tests.support.soak import soak

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.usefixtures("kubeconfig"),
]

TOPICS = [40, pytest.param(150, marks=soak("controller"))]


@pytest.mark.parametrize("topics", TOPICS)
async def test_many_topics_converge_with_few_writes(
    namespace: Namespace, controller: LiveController, topics: int, record_property: Any
) -> None:
    settings = KubeSettings(namespaces=(namespace.name,))
    collection = KafkaTopic.kind.collection_path(namespace.name)
    names = [f"topic-{number:04d}" for number in range(topics)]
    async with (
        KubeClient(max_connections=16, request_timeout_s=120) as client,
        running(controller, namespace) as operator,
    ):
        started = time.monotonic()
        await asyncio.gather(
            *(client.create(collection, topic(name, config={"retention.ms": 1})) for name in names)
        )
        created_s = time.monotonic() - started

        async def ready() -> int:
            bodies = (await list_objects(client, KafkaTopic.kind, settings)).bodies
            return sum(condition(body, "Ready").get("status") == "True" for body in bodies)

        await wait_until_async(
            ready, until=lambda count: count == topics, describe="all to be ready"
        )
        converged_s = time.monotonic() - started
        await wait_until_async(_idle(operator.queue), until=bool, describe="the queue to be idle")
        # What a busy machine does not answer in time is asked for again, with the same id.
        created = {(c.topic, c.topic_id) for c in controller.commands if isinstance(c, CreateTopic)}
        assert sorted(topic for topic, _ in created) == names
        # A finalizer, a status, and a second one for topics that took more than ten seconds.
        assert operator.writes <= 3 * topics
        record_property("created_s", round(created_s, 1))
        record_property("converged_s", round(converged_s, 1))
        print(
            f"{topics} created in {created_s:.1f} s, converged after {converged_s:.1f} s: "
            f"{operator.writes} writes, {len(controller.batches)} batches, "
            f"{operator.reconciliations} reconciliations"
        )

        writes, started = operator.writes, time.monotonic()
        for name in names:
            await client.request("DELETE", f"{collection}/{name}")

        async def left() -> int:
            return len((await list_objects(client, KafkaTopic.kind, settings)).bodies)

        await wait_until_async(left, until=lambda count: count == 0, describe="all to be gone")
        print(
            f"deleted after {time.monotonic() - started:.1f} s: {operator.writes - writes} writes"
        )
    assert not controller.view.topics


def _idle(queue: Any) -> Any:
    async def look() -> bool:
        return bool(queue.is_idle)

    return look
