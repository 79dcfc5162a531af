"""The parts that serve each kind of resource, wired together."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from regent.controller.view import ClusterView
from regent.kube.claim_index import ClaimIndex
from regent.kube.client import KubeClient
from regent.kube.command_batcher import CommandBatcher
from regent.kube.definition import DefinitionCheck
from regent.kube.event_recorder import EventRecorder
from regent.kube.health import KubeHealth
from regent.kube.kafka_topics import KafkaTopics, TopicIndex
from regent.kube.metrics import ResourceMetrics
from regent.kube.moving_partitions import MovingPartitions
from regent.kube.object_cache import ObjectCache, ObjectKey
from regent.kube.partition_reassignments import PartitionReassignments, ReassignmentIndex
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
from regent.kube.status_writer import StatusWriter
from regent.kube.topic_configs import TopicConfigs
from regent.kube.watching import KindWatch
from regent.reconcile.kinds import ClaimT, KindDescriptor
from regent.reconcile.reassignments.kind import PARTITION_REASSIGNMENT
from regent.reconcile.request import Absence, ResourceT
from regent.reconcile.topics.kind import KAFKA_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSurroundings:
    """What all kinds share.

    Attributes:
        view: Returns the newest view of the cluster.
        absence: Returns for how long this process has not been the controller.
        now: Returns the present, aware.
        jitter: Returns numbers from 0 to 1 that spread retries.
        enqueue: Called with the keys of objects that are to be reconciled.
        compare_everything: Called with a kind all of whose objects have just been listed.
        topics: Who claims which topic.
    """

    client: KubeClient
    settings: KubeSettings
    view: Callable[[], ClusterView]
    absence: Callable[[], Absence]
    batcher: CommandBatcher
    recorder: EventRecorder
    metrics: ResourceMetrics
    health: KubeHealth
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    enqueue: Callable[[frozenset[ObjectKey]], None]
    compare_everything: Callable[[str], None]
    topics: TopicIndex = field(default_factory=lambda: ClaimIndex(KAFKA_TOPIC))


def serve_kafka_topics(around: KindSurroundings) -> ServedKind:
    """What serves KafkaTopics."""
    index = around.topics
    configs = TopicConfigs()

    def topics_changed(topics: frozenset[str]) -> frozenset[ObjectKey]:
        concerned = {topic: index.keys(topic) for topic in topics}
        for topic, keys in concerned.items():
            if keys:
                configs.invalidate(topic)
        return frozenset(key for keys in concerned.values() for key in keys)

    return _served(
        around,
        KAFKA_TOPIC,
        index,
        KafkaTopics(
            index=index,
            configs=configs,
            batcher=around.batcher,
            metrics=around.metrics,
            settings=around.settings,
            view=around.view,
            absence=around.absence,
            now=around.now,
            jitter=around.jitter,
            new_topic_id=uuid.uuid4,
        ),
        topics_changed=topics_changed,
        all_changed=configs.invalidate_all,
    )


def serve_partition_reassignments(around: KindSurroundings) -> ServedKind:
    """What serves PartitionReassignments."""
    index: ReassignmentIndex = ClaimIndex(PARTITION_REASSIGNMENT)
    configs = TopicConfigs()
    moving = MovingPartitions()

    def topics_changed(topics: frozenset[str]) -> frozenset[ObjectKey]:
        concerned: set[ObjectKey] = set()
        for topic in topics:
            keys = index.keys(topic)
            if keys:
                configs.invalidate(topic)
            concerned.update(keys)
        if moving.see_topics(around.view(), topics):
            # What has arrived leaves room for moves of others.
            concerned |= served.cache.keys_not_ready()
        return frozenset(concerned)

    def view_replaced() -> None:
        moving.see_all(around.view())

    served = _served(
        around,
        PARTITION_REASSIGNMENT,
        index,
        PartitionReassignments(
            index=index,
            topics=around.topics,
            configs=configs,
            moving=moving,
            batcher=around.batcher,
            settings=around.settings,
            view=around.view,
            absence=around.absence,
            now=around.now,
            jitter=around.jitter,
        ),
        topics_changed=topics_changed,
        all_changed=configs.invalidate_all,
        view_replaced=view_replaced,
    )
    return served


def _served(
    around: KindSurroundings,
    descriptor: KindDescriptor[ResourceT, ClaimT],
    index: ClaimIndex[ResourceT, ClaimT],
    reconciled: ReconciledKind[RequestT, StatusT, MemoryT],
    *,
    topics_changed: Callable[[frozenset[str]], frozenset[ObjectKey]],
    all_changed: Callable[[], None],
    view_replaced: Callable[[], None] = lambda: None,
) -> ServedKind:
    kind, health = descriptor.kind, around.health.of(descriptor.kind.kind)
    cache = ObjectCache(kind.kind, index, serves=around.settings.selection.serves)
    writer = StatusWriter(around.client, descriptor, cache, on_news=around.enqueue)
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
    )
    return ServedKind(
        kind=kind,
        cache=cache,
        resync=resync,
        watch=KindWatch(kind, cache, resync, around.settings),
        definition=DefinitionCheck(
            around.client, kind, descriptor.spec_fields, around.settings, health=health
        ),
        writer=writer,
        reconciler=Reconciler(parts, reconciled),
        topics_changed=topics_changed,
        all_changed=all_changed,
        view_replaced=view_replaced,
    )
