"""What is sent to the controller, and when not, against a store that behaves as the API server."""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from regent.controller.commands import Accepted, Command, CreateTopic, DeleteTopic, Outcome
from regent.controller.view import ClusterView, PartitionHealth, PartitionView, TopicView
from regent.kube.command_batcher import CommandBatcher
from regent.kube.errors import (
    KubeSchemaError,
    KubeUnavailableError,
)
from regent.kube.event_recorder import EventRecorder
from regent.kube.kafka_topics import KafkaTopics
from regent.kube.metrics import ResourceMetrics
from regent.kube.moving_partitions import MovingPartitions
from regent.kube.reconciler import Reconciler, ReconcilerParts
from regent.kube.settings import KubeSettings
from regent.kube.status_writer import StatusWriter
from regent.kube.topic_configs import TopicConfigs
from regent.kube.usage_watch import UsageWatch
from regent.model.cluster import Broker
from regent.model.topic import topic_id_to_text
from regent.reconcile.topics.kind import KAFKA_TOPIC
from regent.resources.kafka_topic import FINALIZER
from tests.unit.kube.jumping_clock import elapse, run
from tests.unit.kube.test_object_cache import body, key, topic_cache
from tests.unit.kube.test_status_writer import Store

ID, DRAWN = uuid.UUID(int=7), uuid.UUID(int=8)
OWNED = {
    "observedGeneration": 1,
    "ownership": "Created",
    "topicId": topic_id_to_text(ID),
    "clusterId": "c",
}


class Port:
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

    def subscribe(self, listener: Callable[[frozenset[str] | None], None]) -> None:
        raise AssertionError("nobody listens here")


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
            usage=UsageWatch(
                None, view=lambda: self.port.view, clocks=(now,), on_news=lambda keys: None
            ),
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


def test_nothing_is_created_while_an_older_definition_drops_the_intent() -> None:
    bench = Bench(body(version="5", adoptionPolicy="Refuse"))
    bench.store.unknown_fields = frozenset({"intendedTopicId"})
    with pytest.raises(KubeSchemaError, match=r"status\.intendedTopicId.*regent crds"):
        bench.reconcile()
    assert bench.port.commands == []


def test_a_field_that_nothing_depends_on_may_be_dropped_by_an_older_definition() -> None:
    bench = Bench(body(version="5"))
    bench.store.unknown_fields = frozenset({"clusterId"})
    bench.reconcile()
    assert len(bench.port.commands) == 1


def test_the_intent_is_stored_and_then_the_topic_created() -> None:
    bench = Bench(body(version="5", adoptionPolicy="Refuse"))
    bench.reconcile()
    (command,) = bench.port.commands
    assert isinstance(command, CreateTopic)
    assert command.topic_id == DRAWN
    assert bench.stored["status"]["intendedTopicId"] == topic_id_to_text(DRAWN)
    assert bench.stored["metadata"]["finalizers"] == [FINALIZER]
    assert bench.events == [("Normal", "TopicCreated")]


def test_a_topic_that_is_created_and_shows_costs_a_finalizer_and_one_status() -> None:
    bench = Bench(body(version="5"))

    def show() -> None:
        (command,) = bench.port.commands
        assert isinstance(command, CreateTopic)
        assert command.topic_id is not None
        topics = {"orders": a_topic(command.topic_id)}
        bench.port.view = msgspec.structs.replace(bench.port.view, topics=topics)

    bench.reconcile(times=2, every_s=1, between=show)
    finalizer, status = bench.store.patches
    assert finalizer["metadata"]["finalizers"] == [FINALIZER]
    assert status["status"]["ownership"] == "Created"
    assert bench.events == [("Normal", "TopicCreated")]


@pytest.mark.parametrize("dropped", [("ownership",), ("ownership", "topicId", "topicCzxid")])
def test_a_lost_topic_is_not_created_again_where_its_ownership_is_not_stored(
    dropped: Sequence[str],
) -> None:
    """An admission policy may change a status, and people may edit it."""
    bench = Bench(body(version="5"))
    bench.store.unknown_fields = frozenset(dropped)

    def show_and_lose() -> None:
        topics = {}
        if len(bench.looks) == 1:
            command = bench.port.commands[0]
            assert isinstance(command, CreateTopic)
            assert command.topic_id is not None
            topics = {"orders": msgspec.structs.replace(a_topic(command.topic_id), czxid=7)}
        bench.port.view = msgspec.structs.replace(bench.port.view, topics=topics)

    bench.reconcile(times=6, every_s=60, between=show_and_lose)
    assert [type(command) for command in bench.port.commands].count(CreateTopic) == 1
    assert bench.events.count(("Warning", "TopicDeletedExternally")) == 1
    assert bench.losses == 1
    after_a_restart = Bench(bench.stored)
    after_a_restart.store.unknown_fields = bench.store.unknown_fields
    after_a_restart.reconcile(times=2, every_s=60)
    assert after_a_restart.port.commands == []


def test_an_outranked_intent_sends_no_command() -> None:
    newer = {"controllerEpoch": 9, "clusterId": "c"}
    bench = Bench(body(version="5", adoptionPolicy="Refuse", status=newer))
    bench.reconcile()
    assert bench.port.commands == []
    assert bench.stored["status"] == newer
    assert bench.looks[0], "it is requeued, but not at once"


def test_a_status_that_no_newer_controller_can_have_written_is_overwritten() -> None:
    backup = {**OWNED, "controllerEpoch": 9}
    bench = Bench(body(version="5", status=backup, metadata={"finalizers": [FINALIZER]}))
    bench.reconcile(times=12, every_s=10)
    assert bench.stored["status"] == backup
    assert bench.events == []
    bench.reconcile(times=14, every_s=10)
    assert bench.stored["status"]["controllerEpoch"] == 5
    assert bench.stored["status"]["ownership"] == "Lost"
    assert bench.events == [("Warning", "TopicDeletedExternally")]


def test_in_a_new_term_a_status_of_a_newer_controller_is_left_alone_as_long_again() -> None:
    newer = {**OWNED, "controllerEpoch": 9}
    bench = Bench(body(version="5", status=newer, metadata={"finalizers": [FINALIZER]}))
    epochs = iter((6, 7, 8))

    def begin_term() -> None:
        if len(bench.looks) % 10 == 0:
            bench.port.view = msgspec.structs.replace(
                bench.port.view, controller_epoch=next(epochs)
            )

    bench.reconcile(times=30, every_s=10, between=begin_term)
    assert bench.stored["status"] == newer


def test_a_status_that_a_newer_controller_writes_again_and_again_is_left_alone() -> None:
    newer = {**OWNED, "controllerEpoch": 9}
    bench = Bench(body(version="5", status=newer, metadata={"finalizers": [FINALIZER]}))

    def write_again() -> None:
        bench.stored["status"]["underReplicated"] = len(bench.looks)
        bench.store.change()
        bench.cache.put(copy.deepcopy(bench.stored))

    bench.reconcile(times=30, every_s=10, between=write_again)
    assert bench.stored["status"]["controllerEpoch"] == 9
    assert bench.stored["status"]["ownership"] == "Created"


def test_an_intent_that_cannot_be_stored_sends_no_command() -> None:
    bench = Bench(body(version="5", adoptionPolicy="Refuse", metadata={"finalizers": [FINALIZER]}))

    def fail() -> None:
        raise KubeUnavailableError("the API server is gone")

    bench.store.before_write = [fail]
    with pytest.raises(KubeUnavailableError):
        bench.reconcile()
    assert bench.port.commands == []


def test_a_resource_that_changes_while_the_intent_is_stored_is_thought_over() -> None:
    bench = Bench(body(version="5", adoptionPolicy="Refuse", metadata={"finalizers": [FINALIZER]}))

    def pause() -> None:
        bench.stored["spec"]["managementPolicy"] = "Paused"
        bench.store.change(generation=2)

    bench.store.before_write = [pause]
    bench.reconcile()
    assert bench.port.commands == []


def test_a_finalizer_is_not_removed_for_a_spec_that_is_not_current_any_more() -> None:
    going = {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    bench = Bench(
        body(version="5", deletionPolicy="Retain", status=OWNED, metadata=going), a_topic()
    )

    def protect() -> None:
        bench.stored["spec"]["deletionPolicy"] = "Delete"
        bench.store.change(generation=2)

    bench.store.before_write = [protect]
    bench.reconcile()
    assert bench.stored["metadata"]["finalizers"] == [FINALIZER]
    assert bench.events == []
    assert bench.looks == [0.0]
    bench.reconcile()
    assert DeleteTopic("orders", ID) in bench.port.commands


def test_a_deletion_that_comes_in_the_middle_of_a_look_is_sent_once() -> None:
    bench = Bench(body(version="5"))

    def show_and_delete() -> None:
        view = bench.port.view
        bench.port.view = msgspec.structs.replace(view, topics={"orders": a_topic(DRAWN)})
        bench.store.change(generation=2, deletionTimestamp="2026-01-01T00:00:00Z")
        bench.cache.put(copy.deepcopy(bench.stored))

    bench.port.after_creation = show_and_delete
    bench.reconcile()
    assert bench.port.commands[1:] == [DeleteTopic("orders", DRAWN)]
    assert bench.events == [("Normal", "TopicCreated"), ("Normal", "TopicDeletionStarted")]


def test_a_loss_is_reported_and_counted_once() -> None:
    owner = {"finalizers": [FINALIZER]}
    bench = Bench(body(version="5", status=OWNED, metadata=owner))
    assert bench.losses == 0
    bench.reconcile(times=3)
    assert bench.port.commands == []
    assert bench.events == [("Warning", "TopicDeletedExternally")]
    assert bench.losses == 1
    assert bench.stored["status"]["ownership"] == "Lost"


def test_a_loss_is_reported_though_the_topic_is_created_again() -> None:
    owner = {"finalizers": [FINALIZER]}
    bench = Bench(body(version="5", status=OWNED, metadata=owner, onForeignDeletion="Recreate"))
    bench.reconcile(times=2)
    (command,) = bench.port.commands
    assert isinstance(command, CreateTopic)
    assert command.topic_id == DRAWN
    assert bench.events == [("Warning", "TopicDeletedExternally"), ("Normal", "TopicCreated")]
    assert bench.losses == 1


def test_a_clock_that_is_set_back_delays_no_command() -> None:
    bench = Bench(body(version="5"))

    def set_back() -> None:
        bench.now -= timedelta(hours=1)

    bench.reconcile(times=3, every_s=10, between=set_back)
    assert len(bench.port.commands) == 3, "a creation that does not show is sent again after 10 s"


def test_a_clock_that_jumps_ahead_makes_nobody_forget_what_was_just_created() -> None:
    bench = Bench(body(version="5"))

    def jump_ahead() -> None:
        bench.now += timedelta(hours=1)
        gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        bench.store.change(generation=2, **gone)
        bench.cache.put(copy.deepcopy(bench.stored))

    bench.reconcile(times=2, every_s=1, between=jump_ahead)
    assert bench.stored["metadata"]["finalizers"] == [FINALIZER], "the topic is about to show"
