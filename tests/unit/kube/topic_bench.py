"""A KafkaTopic that is reconciled again and again, beside a controller that a test speaks for."""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry

from regent.admin.commands import Accepted, CreateTopic, Outcome
from regent.controller.commands import Command
from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.kube.command_batcher import CommandBatcher
from regent.kube.event_recorder import EventRecorder
from regent.kube.kafka_topics import KafkaTopics
from regent.kube.metrics import ResourceMetrics
from regent.kube.moving_partitions import MovingPartitions
from regent.kube.reconciler import Reconciler, ReconcilerParts
from regent.kube.settings import KubeSettings
from regent.kube.status_writer import StatusWriter
from regent.kube.topic_configs import TopicConfigs
from regent.model.cluster import Broker
from regent.model.topic import topic_id_to_text
from regent.reconcile.topics.kind import KAFKA_TOPIC
from tests.support.viewed_port import ViewedPort
from tests.unit.kube.jumping_clock import elapse, run
from tests.unit.kube.stored_objects import Store, key, topic_cache

ID, DRAWN = uuid.UUID(int=7), uuid.UUID(int=8)
OWNED = {
    "observedGeneration": 1,
    "ownership": "Created",
    "topicId": topic_id_to_text(ID),
    "clusterId": "c",
}


class Port(ViewedPort):
    """Accepts every command, unless a test says otherwise. Its view is what a test says."""

    def __init__(self, *topics: TopicView) -> None:
        self.outcome: Outcome = Accepted()
        self.after_creation: Callable[[], None] = lambda: None
        self.commands: list[Command] = []
        self.view = ClusterView(
            is_active=True,
            is_complete=True,
            controller_epoch=5,
            brokers={1: Broker(1, 1, ())},
            topics={topic.name: topic for topic in topics},
            cluster_id="c",
        )

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        self.commands.extend(commands)
        if any(isinstance(command, CreateTopic) for command in commands):
            self.after_creation()
        return [self.outcome for _ in commands]


class Bench:
    def __init__(self, stored: dict[str, Any], *topics: TopicView) -> None:
        self.store = Store(copy.deepcopy(stored))
        self.port = Port(*topics)
        self.registry = CollectorRegistry()
        self.metrics = ResourceMetrics(self.registry)
        self.cache, self.index = topic_cache()
        self.cache.put(copy.deepcopy(stored))
        self.looks: list[float | None] = []
        self.on_step: Callable[[], None] = lambda: None
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.configs = TopicConfigs()
        self.definition_goes = False
        self.ages: list[float] = []
        self.on_question: Callable[[], None] = lambda: None
        self.borne: tuple[type[Exception], ...] = ()
        """Errors after which the next look is taken all the same."""

    async def is_with_definition(self, deleted_at: datetime, max_age_s: float) -> bool:
        assert deleted_at.isoformat() == "2026-01-01T00:00:00+00:00", "nobody else has to ask"
        self.ages.append(max_age_s)
        self.on_question()
        return self.definition_goes

    def reconcile(
        self,
        *,
        times: int = 1,
        every_s: float = 0.0,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        run(self._reconcile(times, every_s, between))

    async def _reconcile(self, times: int, every_s: float, between: Callable[[], None]) -> None:
        def now() -> datetime:
            return self.now

        settings = KubeSettings()
        batcher = CommandBatcher(self.port, timeout_s=60)
        recorder = EventRecorder(self.store, now=now, instance="pod")
        self.kafka_topics = kafka_topics = KafkaTopics(
            index=self.index,
            configs=self.configs,
            moving=MovingPartitions(),
            batcher=batcher,
            metrics=self.metrics,
            settings=settings,
            view=lambda: self.port.view,
            now=now,
            jitter=lambda: 1.0,
            new_topic_id=lambda: DRAWN,
            is_with_definition=self.is_with_definition,
        )
        reconciler = Reconciler(
            ReconcilerParts(
                cache=self.cache,
                writer=StatusWriter(
                    self.store,
                    KAFKA_TOPIC,
                    self.cache,
                    on_news=lambda _: None,
                    on_step=lambda: self.on_step(),
                ),
                recorder=recorder,
                settings=settings,
                view=lambda: self.port.view,
                on_step=lambda: self.on_step(),
                ask_about_definition=kafka_topics.ask_about_definition,
                on_gone=kafka_topics.forget,
                on_contest=lambda known: self.metrics.contested(known.kind),
            ),
            kafka_topics,
        )
        tasks = [asyncio.create_task(batcher.run()), asyncio.create_task(recorder.run())]
        try:
            for _ in range(times):
                try:
                    self.looks.append((await reconciler.reconcile(key())).again_s)
                except self.borne:
                    self.looks.append(None)
                await elapse(every_s)
                between()
        finally:
            await recorder.flush()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(event["type"], event["reason"]) for event in self.store.created]

    @property
    def stored(self) -> dict[str, Any]:
        assert self.store.stored is not None
        return self.store.stored

    @property
    def losses(self) -> float | None:
        return self.registry.get_sample_value("regent_kafkatopic_foreign_deletions_total")


def a_topic(topic_id: uuid.UUID = ID) -> TopicView:
    partition = PartitionView(0, PartitionHealth.ONLINE, (1,), 1, 0, (1,))
    return TopicView("orders", topic_id, (partition,))
