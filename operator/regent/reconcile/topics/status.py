"""The status of a KafkaTopic: from what was found out to fields and conditions."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable
from typing import Any, Final

from regent.controller.view import PartitionHealth, PartitionView, TopicView
from regent.model.topic import topic_id_to_text
from regent.reconcile.topics.deletion_policy import effective_deletion_policy
from regent.reconcile.topics.drift import (
    describe_drift,
    described_keys_of_moves,
    described_order,
)
from regent.reconcile.topics.request import ClusterMatch, TopicRequest
from regent.reconcile.verdicts import Assessment, Progress, summary_verdicts, unknown_verdict
from regent.resources.conditions import (
    ConditionReason,
    ConditionStatus,
    ConditionType,
    Verdict,
    enumerate_some,
    find_condition,
)
from regent.resources.kafka_topic_status import (
    MAX_DRIFT_ENTRIES,
    MAX_PARTITION_STATES,
    MAX_REPLICAS,
    DeletionPolicy,
    DriftEntry,
    KafkaTopicStatus,
    Ownership,
    PartitionState,
)

DOMAIN_CONDITIONS: Final = (ConditionType.SYNCED, ConditionType.HEALTHY)


def as_declared_message(request: TopicRequest) -> str:
    """That the topic is as declared, with the differences that are no drift."""
    topic = request.topic
    order = None if topic is None else described_order(topic, request.resource.spec)
    notes = (order, described_keys_of_moves(request))
    return "; ".join(("the topic is as declared", *(note for note in notes if note is not None)))


def synced_verdict(request: TopicRequest, entries: tuple[DriftEntry, ...]) -> Verdict:
    """Whether the topic looks as declared, for a view that knows."""
    topic = request.topic
    if topic is None:
        reason, message = ConditionReason.TOPIC_NOT_FOUND, "the topic does not exist"
    elif topic.is_being_deleted:
        return unknown_verdict(ConditionType.SYNCED, "the topic is being deleted")
    elif entries:
        reason, message = ConditionReason.DRIFTED, describe_drift(entries)
    elif (left := described_keys_of_moves(request)) is not None:
        return Verdict(
            ConditionType.SYNCED,
            ConditionStatus.UNKNOWN,
            ConditionReason.REASSIGNMENT_IN_PROGRESS,
            left,
        )
    else:
        return Verdict(
            ConditionType.SYNCED,
            ConditionStatus.TRUE,
            ConditionReason.AS_DECLARED,
            as_declared_message(request),
        )
    return Verdict(ConditionType.SYNCED, ConditionStatus.FALSE, reason, message)


def healthy_verdict(topic: TopicView | None) -> Verdict:
    """Whether every partition has a leader and all its replicas in sync, and brokers obey."""
    if topic is None:
        return unknown_verdict(ConditionType.HEALTHY, "the topic does not exist")
    refused = refusal_assessment(topic)
    if refused is not None:
        return Verdict(
            ConditionType.HEALTHY, ConditionStatus.FALSE, refused.reason, refused.message
        )
    if topic.is_being_deleted:
        # Its replicas go offline one by one: that is the deletion, and nothing to warn of.
        return unknown_verdict(ConditionType.HEALTHY, "the topic is being deleted")
    unreached = unreached_message(topic)
    if unreached is not None:
        return Verdict(
            ConditionType.HEALTHY,
            ConditionStatus.FALSE,
            ConditionReason.BROKERS_UNREACHED,
            unreached,
        )
    leaderless, under_replicated = topic.leaderless, topic.under_replicated
    if not leaderless and not under_replicated:
        return Verdict(
            ConditionType.HEALTHY,
            ConditionStatus.TRUE,
            ConditionReason.ALL_IN_SYNC,
            "all replicas of all partitions are in sync",
        )
    reason = (
        ConditionReason.PARTITIONS_LEADERLESS if leaderless else ConditionReason.UNDER_REPLICATED
    )
    return Verdict(
        ConditionType.HEALTHY,
        ConditionStatus.FALSE,
        reason,
        f"of {len(topic.partitions)} partitions {leaderless} have no leader and "
        f"{under_replicated} are under-replicated{_failed_dirs(topic.partitions)}",
    )


def _failed_dirs(partitions: Iterable[PartitionView]) -> str:
    """Which brokers have lost log directories of partitions, to be added to a message."""
    numbers: dict[int, list[int]] = {}
    for partition in partitions:
        for broker_id in partition.on_failed_dirs:
            numbers.setdefault(broker_id, []).append(partition.partition)
    named = [
        f"broker {broker_id} has {len(some)} partitions {some[:10]}"
        for broker_id, some in sorted(numbers.items())
    ]
    if not named:
        return ""
    return (
        f"; on failed log directories {enumerate_some(named, limit=5)}: mend them and restart the "
        "brokers"
    )


def is_being_born(topic: TopicView | None) -> bool:
    """Whether there are partitions without a leader, all of which never had one."""
    waiting = [p for p in topic.partitions if not p.has_leader] if topic is not None else []
    return bool(waiting) and all(p.state == PartitionHealth.NEW for p in waiting)


def leadership_assessment(topic: TopicView, live: Container[int]) -> Assessment | None:
    """Progressing as long as partitions have no leader, otherwise None.

    Missing replicas do not count: a rolling restart of the brokers must not turn every topic of a
    GitOps tree red. They are in ``Healthy``.

    Args:
        live: Ids of live brokers.
    """
    waiting = [partition for partition in topic.partitions if not partition.has_leader]
    if not waiting:
        return None
    brokers = sorted({replica for partition in waiting for replica in partition.replicas})
    if is_being_born(topic):
        reason, wait = ConditionReason.CREATING, "their first leader"
    else:
        reason, wait = ConditionReason.PARTITIONS_LEADERLESS, "one of their in-sync replicas"
    return Assessment(
        Progress.PROGRESSING,
        reason,
        f"{len(waiting)} of {len(topic.partitions)} partitions wait for {wait}, on brokers "
        f"{brokers[:10]}{_failed_dirs(waiting)}{_not_elected(waiting, live)}",
    )


def _not_elected(waiting: Iterable[PartitionView], live: Container[int]) -> str:
    """Which partitions no broker has to return for, to be added to a message: what keeps the
    controller from electing a live broker, such as a right to their znodes, is in its log."""
    named = [
        partition.partition
        for partition in waiting
        if not partition.on_failed_dirs and any(i in live for i in partition.isr)
    ]
    if not named:
        return ""
    return (
        f"; of partitions {named[:10]} in-sync replicas are alive: if this lasts, Regent's log "
        "(`No leader elected`) says why none of them leads"
    )


def refusal_assessment(topic: TopicView) -> Assessment | None:
    """Stalled while brokers refuse replicas of the topic, otherwise None.

    ZooKeeper may show a leader and a full ISR all the while. It ends when the broker obeys or
    restarts, which takes somebody who looks at its log.
    """
    replicas: dict[tuple[int, str], list[int]] = {}
    for refused in topic.refused:
        replicas.setdefault((refused.broker_id, refused.error), []).append(refused.partition)
    if not replicas:
        return None
    named = [
        f"broker {broker_id} refuses {len(partitions)} partitions {partitions[:10]} with {error}"
        for (broker_id, error), partitions in replicas.items()
    ]
    return Assessment(
        Progress.STALLED,
        ConditionReason.REPLICAS_REFUSED,
        f"{enumerate_some(named, limit=5)}; the broker's log says why",
    )


def unreached_message(topic: TopicView, *, leaders_only: bool = False) -> str | None:
    """Of which replicas brokers have not been informed that the controller does not reach; None: of
    all. ZooKeeper may show a leader and a full ISR all the while.

    After a failover that is every replica of such a broker: what a former controller sent it, and
    whether it has been restarted since, nobody knows.
    """
    replicas: dict[int, list[int]] = {}
    for partition in topic.partitions:
        for broker_id in partition.uninformed:
            if broker_id == partition.leader or not leaders_only:
                replicas.setdefault(broker_id, []).append(partition.partition)
    if not replicas:
        return None
    what = "leads" if leaders_only else "leads or follows"
    named = [
        f"broker {broker_id} has not confirmed that it {what} "
        f"{len(partitions)} partitions {partitions[:10]}"
        for broker_id, partitions in replicas.items()
    ]
    return (
        f"the controller does not reach brokers {sorted(replicas)[:10]}: "
        f"{enumerate_some(named, limit=5)}; `regent status` says why it does not"
    )


def unreached_assessment(topic: TopicView) -> Assessment | None:
    """Progressing as long as leaders have not been informed that they lead, otherwise None."""
    message = unreached_message(topic, leaders_only=True)
    if message is None:
        return None
    return Assessment(Progress.PROGRESSING, ConditionReason.BROKERS_UNREACHED, message)


def silence_assessment(request: TopicRequest) -> Assessment | None:
    """Progressing while a topic that was not ready has leaders that do not answer, or have not
    answered this controller that they lead; otherwise None.

    A topic does not become ready by a failover: that its leaders were not informed is forgotten
    with the term. One that is ready stays so: a moment without an answer is nothing unusual.
    """
    topic, view = request.topic, request.view
    before = find_condition(request.record.conditions, ConditionType.READY)
    if topic is None or (before and before.status is ConditionStatus.TRUE):
        return None
    waiting = {p.leader for p in topic.partitions if view.is_leader_awaited(topic, p)}
    if not waiting:
        return None
    message = f"brokers {sorted(waiting)[:10]}, which lead partitions, have not answered yet"
    return Assessment(Progress.PROGRESSING, ConditionReason.BROKERS_UNREACHED, message)


def observed_fields(request: TopicRequest) -> dict[str, Any]:
    """The fields of status that report what the view shows."""
    topic, spec = request.topic, request.resource.spec
    count, factor = spec.partition_count, spec.replication_factor
    if topic is None:
        return {
            "topic_id": None,
            "topic_czxid": None,
            "partitions": 0,
            "replicas": 0,
            "leaderless": None,
            "under_replicated": None,
            "partition_summary": _summary(0, count),
            "replica_summary": _summary(0, factor),
            "partition_states": (),
        }
    return {
        "topic_id": request.topic_id,
        "topic_czxid": request.topic_czxid,
        "partitions": len(topic.partitions),
        "replicas": topic.replication_factor,
        "leaderless": topic.leaderless,
        "under_replicated": topic.under_replicated,
        "partition_summary": _summary(len(topic.partitions), count),
        "replica_summary": _summary(topic.replication_factor, factor),
        "partition_states": partition_states(topic),
    }


def _summary(actual: int, declared: int | None) -> str:
    return str(actual) if declared is None else f"{actual}/{declared}"


def partition_states(topic: TopicView) -> tuple[PartitionState, ...]:
    """A bounded sample, also of the replicas, of which a node that somebody else wrote may have any
    number: leaderless partitions first, then those of which brokers refuse replicas or
    do not know, under-replicated ones, and the others by index."""

    def urgency(partition: PartitionView) -> tuple[bool, bool, bool, int]:
        return (
            partition.has_leader,
            not (partition.refusals or partition.uninformed),
            not partition.is_under_replicated,
            partition.partition,
        )

    return tuple(
        PartitionState(
            partition=partition.partition,
            leader=partition.leader,
            replicas=partition.replicas[:MAX_REPLICAS],
            isr=partition.isr[:MAX_REPLICAS],
        )
        for partition in heapq.nsmallest(MAX_PARTITION_STATES, topic.partitions, key=urgency)
    )


def observed_status(
    request: TopicRequest,
    assessment: Assessment,
    *,
    entries: tuple[DriftEntry, ...],
    ownership: Ownership | None,
    managed_config: tuple[str, ...],
) -> KafkaTopicStatus:
    """The status for a view that knows the topic."""
    is_intent = ownership is Ownership.CREATING
    return _status(
        request,
        request.record,
        (
            *summary_verdicts(assessment),
            synced_verdict(request, entries),
            healthy_verdict(request.topic),
        ),
        **observed_fields(request),
        drift=entries[:MAX_DRIFT_ENTRIES],
        ownership=ownership,
        intended_topic_id=topic_id_to_text(request.new_topic_id) if is_intent else None,
        managed_config=managed_config,
        **_provenance(request),
        deletion_policy=effective_deletion_policy(request.resource, ownership),
    )


def blind_status(request: TopicRequest, assessment: Assessment) -> KafkaTopicStatus:
    """The status when nothing is known about the topic: what was last seen stays."""
    is_elsewhere = request.cluster is ClusterMatch.OTHER
    previous = request.resource.status if is_elsewhere else request.record
    ownership = None if is_elsewhere else previous.ownership
    policy = effective_deletion_policy(request.resource, ownership)
    if is_elsewhere and request.resource.spec.deletion_policy is DeletionPolicy.PROTECT:
        policy = DeletionPolicy.PROTECT  # it stays, as whether there is a topic cannot be seen
    return _status(
        request,
        previous,
        (
            *summary_verdicts(assessment),
            *(unknown_verdict(each, assessment.message) for each in DOMAIN_CONDITIONS),
        ),
        **_provenance(request),
        deletion_policy=policy,
    )


def _provenance(request: TopicRequest) -> dict[str, Any]:
    """Which cluster and which controller the status comes from.

    An inactive process has no epoch of its own: it must not seem to have won or lost against the
    controller whose status it amends. What is known of another cluster stays known of that one.
    """
    if not request.view.may_act or request.cluster is not ClusterMatch.SAME:
        return {}
    return {
        "cluster_id": request.view.cluster_id,
        "controller_epoch": request.view.controller_epoch,
    }


def _status(
    request: TopicRequest,
    previous: KafkaTopicStatus,
    verdicts: tuple[Verdict, ...],
    **fields: Any,
) -> KafkaTopicStatus:
    return previous.with_verdicts(
        verdicts,
        generation=request.resource.metadata.generation,
        now=request.now,
        topic_name=request.topic_name,
        **fields,
    )
