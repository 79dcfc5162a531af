"""The parts that serve each kind of resource, wired together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from regent.controller.view import ClusterView
from regent.kube.broker_drains import BrokerDrains, DrainIndex
from regent.kube.claim_index import ClaimIndex
from regent.kube.client import KubeClient
from regent.kube.command_batcher import CommandBatcher
from regent.kube.copy_watch import CopyWatch
from regent.kube.cordon_keeper import CordonKeeper
from regent.kube.definition import DefinitionCheck
from regent.kube.definition_end import DefinitionEnd
from regent.kube.drain_news import DrainNews, wanted_cordon
from regent.kube.event_recorder import EventRecorder
from regent.kube.eviction.keeper import EvictionKeeper
from regent.kube.health import KubeHealth
from regent.kube.hosted_topics import HostedTopics
from regent.kube.kafka_topics import KafkaTopics, TopicIndex
from regent.kube.metrics import ResourceMetrics
from regent.kube.moving_partitions import MoveNews, MovingPartitions
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.kube.partition_reassignments import PartitionReassignments, ReassignmentIndex
from regent.kube.rebalance_planning import PlanningTools, RebalancePlanning, SparkTools
from regent.kube.reconciler import (
    MemoryT,
    ReconciledKind,
    Reconciler,
    ReconcilerParts,
    RequestT,
    StatusT,
)
from regent.kube.resync import Resync
from regent.kube.served_kind import ServedKind
from regent.kube.settings import KubeSettings
from regent.kube.spark_runner import SparkRunner
from regent.kube.status_writer import StatusWriter
from regent.kube.topic_configs import TopicConfigs, config_version
from regent.kube.watching import KindWatch
from regent.model.topic import new_topic_id
from regent.reconcile.drains.kind import BROKER_DRAIN
from regent.reconcile.kinds import ClaimT, KindDescriptor
from regent.reconcile.reassignments.kind import PARTITION_REASSIGNMENT
from regent.reconcile.request import Absence, ResourceT
from regent.reconcile.topics.kind import KAFKA_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSurroundings:
    """What all kinds share.

    Attributes:
        view: Returns the newest view of the cluster.
        absence: Returns for how long this process has not been the controller, and whether an
            object is to be left to another one.
        now: Returns the present, aware.
        jitter: Returns numbers from 0 to 1 that spread retries.
        enqueue: Called with the keys of objects that are to be reconciled.
        compare_everything: Called with a kind all of whose objects have just been listed.
        on_step: Called whenever a step of a reconciliation is finished.
        copies: How far copies are.
        planning: What plans for spec.rebalance are made with; None: there is nothing.
        moving: What moves in the cluster.
        topics: Who claims which topic.
        reassignments: Which PartitionReassignment executes what.
    """

    client: KubeClient
    settings: KubeSettings
    view: Callable[[], ClusterView]
    absence: Callable[[Mapping[str, Any]], Absence]
    batcher: CommandBatcher
    recorder: EventRecorder
    metrics: ResourceMetrics
    health: KubeHealth
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    enqueue: Callable[[frozenset[ObjectKey]], None]
    compare_everything: Callable[[str], None]
    copies: CopyWatch
    planning: PlanningTools | None = None
    on_step: Callable[[], None] = lambda: None
    moving: MovingPartitions = field(default_factory=MovingPartitions)
    topics: TopicIndex = field(default_factory=lambda: ClaimIndex(KAFKA_TOPIC))
    reassignments: ReassignmentIndex = field(
        default_factory=lambda: ClaimIndex(PARTITION_REASSIGNMENT)
    )


def serve_kafka_topics(around: KindSurroundings) -> ServedKind:
    """What serves KafkaTopics."""
    index = around.topics
    configs = TopicConfigs()
    moves = MoveNews(around.moving)
    definition_end = DefinitionEnd(around.client, KAFKA_TOPIC.kind)
    kafka_topics = KafkaTopics(
        index=index,
        configs=configs,
        moving=around.moving,
        batcher=around.batcher,
        metrics=around.metrics,
        settings=around.settings,
        view=around.view,
        absence=around.absence,
        unreadable=lambda: around.health.of(KAFKA_TOPIC.kind.kind).unreadable,
        now=around.now,
        jitter=around.jitter,
        new_topic_id=new_topic_id,
        is_with_definition=definition_end.explains,
    )

    around.moving.on_room.append(lambda: around.enqueue(kafka_topics.take_waiting()))

    def topics_changed(topics: frozenset[str]) -> frozenset[ObjectKey]:
        concerned = _concerned(topics, index, configs, around.view())
        concerned |= kafka_topics.take_without_name(topics)
        if moves.see_topics(around.view(), topics):
            concerned |= kafka_topics.take_waiting()
        return concerned

    return _served(
        around,
        KAFKA_TOPIC,
        index,
        kafka_topics,
        topics_changed=topics_changed,
        all_changed=configs.invalidate_all,
        duty=lambda _: definition_end.learn_right(
            every_s=around.settings.resync_interval_s, retry_s=around.settings.check_interval_s
        ),
        ask_about_definition=kafka_topics.ask_about_definition,
        on_gone=kafka_topics.forget,
    )


def serve_partition_reassignments(around: KindSurroundings) -> ServedKind:
    """What serves PartitionReassignments."""
    index = around.reassignments
    configs = TopicConfigs()
    moving = around.moving
    moves = MoveNews(moving)
    spark = None if around.planning is None else around.planning.spark
    planning = RebalancePlanning(
        around.planning,
        jobs=None if spark is None else _jobs(around, spark),
        concurrent_jobs=1 if spark is None else spark.concurrent_jobs,
        view=around.view,
        rules=around.settings.topic_name_rules,
        on_news=around.enqueue,
    )

    def topics_changed(topics: frozenset[str]) -> frozenset[ObjectKey]:
        concerned = _concerned(topics, index, configs, around.view())
        # What keeps one from going on is news for the plans of the others, too.
        if moves.see_topics(around.view(), topics) or concerned:
            concerned |= served.cache.keys_not_ready()
        return concerned

    served = _served(
        around,
        PARTITION_REASSIGNMENT,
        index,
        PartitionReassignments(
            index=index,
            topics=around.topics,
            configs=configs,
            moving=moving,
            copies=around.copies,
            batcher=around.batcher,
            settings=around.settings,
            view=around.view,
            absence=around.absence,
            now=around.now,
            jitter=around.jitter,
            planned=planning.outcome_for,
        ),
        topics_changed=topics_changed,
        all_changed=configs.invalidate_all,
        view_replaced=lambda: moving.see_all(around.view()),
        duty=planning.run,
        planning=planning,
    )
    # A plan for the whole cluster waits for the end of what others execute.
    _look_when_others_end(around, served)
    return served


def _jobs(around: KindSurroundings, tools: SparkTools) -> SparkRunner:
    return SparkRunner(client=around.client, exchange=tools.exchange, policy=tools.policy)


def serve_broker_drains(around: KindSurroundings) -> ServedKind:
    """What serves BrokerDrains."""
    index: DrainIndex = ClaimIndex(BROKER_DRAIN)
    drains = BrokerDrains(
        index=index,
        configs=TopicConfigs(),
        hosted=HostedTopics(),
        moving=around.moving,
        copies=around.copies,
        reassignments=around.reassignments,
        batcher=around.batcher,
        settings=around.settings,
        view=around.view,
        absence=around.absence,
        now=around.now,
        jitter=around.jitter,
    )
    news = DrainNews(drains)
    keeper = CordonKeeper(
        around.batcher,
        wanted=lambda: wanted_cordon(served.cache, around.view()),
        view=around.view,
        jitter=around.jitter,
    )
    index.on_change = keeper.changed

    def topics_changed(topics: frozenset[str]) -> frozenset[ObjectKey]:
        keeper.changed()
        return news.topics_changed(topics, served.cache)

    def view_replaced() -> None:
        keeper.changed()
        news.view_replaced()

    async def duties(known: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(keeper.run(known), name="cordon keeper")
            if around.settings.evictions is not None:
                evictions = EvictionKeeper(
                    around.client, around.settings.evictions, keys=served.cache.keys, now=around.now
                )
                group.create_task(evictions.run(known), name="eviction keeper")

    served = _served(
        around,
        BROKER_DRAIN,
        index,
        drains,
        topics_changed=topics_changed,
        all_changed=drains.configs.invalidate_all,
        view_replaced=view_replaced,
        duty=duties,
    )
    # What a PartitionReassignment does not move any more may leave its broker.
    _look_when_others_end(around, served)
    return served


def _look_when_others_end(around: KindSurroundings, served: ServedKind) -> None:
    """Look at what is not ready when a PartitionReassignment executes something, or one does not
    any more, and when moves were refused that took up room."""

    def look() -> None:
        around.enqueue(served.cache.keys_not_ready())

    before = around.reassignments.on_change

    def changed() -> None:
        before()
        look()

    around.reassignments.on_change = changed
    around.moving.on_room.append(look)


def _concerned(
    topics: frozenset[str],
    index: ClaimIndex[ResourceT, ClaimT],
    configs: TopicConfigs,
    view: ClusterView,
) -> frozenset[ObjectKey]:
    """The resources of topics that have changed. If it was their configuration, what was read of
    that is out of date."""
    concerned = {topic: index.keys(topic) for topic in topics}
    for topic, keys in concerned.items():
        if keys or configs.get(topic) is not None:
            configs.see(topic, config_version(view, topic))
    return frozenset(key for keys in concerned.values() for key in keys)


def _served(
    around: KindSurroundings,
    descriptor: KindDescriptor[ResourceT, ClaimT],
    index: ClaimIndex[ResourceT, ClaimT],
    reconciled: ReconciledKind[RequestT, StatusT, MemoryT],
    *,
    topics_changed: Callable[[frozenset[str]], frozenset[ObjectKey]],
    all_changed: Callable[[], None],
    view_replaced: Callable[[], None] = lambda: None,
    duty: Callable[[asyncio.Event], Coroutine[Any, Any, None]] | None = None,
    planning: RebalancePlanning | None = None,
    ask_about_definition: Callable[[Any, Any, bool], Awaitable[bool]] | None = None,
    on_gone: Callable[[ObjectKey], None] = lambda _: None,
) -> ServedKind:
    kind, health = descriptor.kind, around.health.of(descriptor.kind.kind)
    cache = ObjectCache(kind.kind, index, serves=around.settings.selection.serves)
    writer = StatusWriter(
        around.client, descriptor, cache, on_news=around.enqueue, on_step=around.on_step
    )
    resync = Resync(
        around.client,
        kind,
        around.settings,
        cache=cache,
        health=health,
        jitter=around.jitter,
        on_news=around.enqueue,
        on_resync=lambda: around.compare_everything(kind.kind),
    )
    parts = ReconcilerParts(
        cache=cache,
        writer=writer,
        recorder=around.recorder,
        settings=around.settings,
        view=around.view,
        planning=planning,
        ask_about_definition=ask_about_definition,
        on_gone=on_gone,
        on_step=around.on_step,
        on_contest=lambda key: around.metrics.contested(key.kind),
    )
    return ServedKind(
        kind=kind,
        cache=cache,
        resync=resync,
        watch=KindWatch(kind, cache, resync, around.settings),
        definition=DefinitionCheck(
            around.client,
            kind,
            {"spec": descriptor.spec_fields, "status": descriptor.status_fields},
            around.settings,
            health=health,
        ),
        writer=writer,
        reconciler=Reconciler(parts, reconciled),
        topics_changed=topics_changed,
        all_changed=all_changed,
        view_replaced=view_replaced,
        duty=duty,
    )
