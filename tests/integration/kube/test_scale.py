"""Many KafkaTopics at once."""

from __future__ import annotations

import asyncio

import pytest

from regent.admin.commands import CreateTopic
from regent.kube.client import KubeClient
from regent.kube.listing import list_objects
from regent.kube.settings import KubeSettings
from regent.resources.kafka_topic import KafkaTopic
from sandbox import wait_until_async
from tests.integration.kube.conftest import Namespace, condition, running, topic, wait_for
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
    namespace: Namespace, controller: LiveController, topics: int
) -> None:
    settings = KubeSettings(namespaces=(namespace.name,))
    collection = KafkaTopic.kind.collection_path(namespace.name)
    names = [f"topic-{number:04d}" for number in range(topics)]
    async with (
        KubeClient(max_connections=16, request_timeout_s=120) as client,
        running(controller, namespace) as operator,
    ):
        await asyncio.gather(
            *(client.create(collection, topic(name, config={"retention.ms": 1})) for name in names)
        )

        async def ready() -> int:
            bodies = (await list_objects(client, KafkaTopic.kind, settings)).bodies
            return sum(condition(body, "Ready").get("status") == "True" for body in bodies)

        await wait_until_async(
            ready, until=lambda count: count == topics, describe="all to be ready"
        )
        await wait_for(lambda: operator.queue.is_idle, describe="the queue to be idle")
        # What a busy machine does not answer in time is asked for again, with the same id.
        created = {(c.topic, c.topic_id) for c in controller.commands if isinstance(c, CreateTopic)}
        assert sorted(topic for topic, _ in created) == names
        # A finalizer, a status, and a second one for topics that took more than ten seconds.
        assert operator.writes <= 3 * topics

        for name in names:
            await client.request("DELETE", f"{collection}/{name}")

        async def left() -> int:
            return len((await list_objects(client, KafkaTopic.kind, settings)).bodies)

        await wait_until_async(left, until=lambda count: count == 0, describe="all to be gone")
    assert not controller.view.topics
