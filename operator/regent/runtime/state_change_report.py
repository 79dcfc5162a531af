"""What ``/why`` says of a topic: its partitions as the controller knows them, with their trails.

Made in the controller's loop, so it is bounded: :data:`PARTITIONS_MAX` partitions, those with
problems first.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Container, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from regent.controller.state.causes import Cause
from regent.controller.state.context import ControllerContext
from regent.controller.state.states import PartitionState
from regent.model.partition import NO_LEADER, LeaderAndIsr, TopicPartition

PARTITIONS_MAX: Final = 50

Report = dict[str, Any]


class Reach(NamedTuple):
    """What is known of brokers that the controller does not reach.

    Attributes:
        uninformed: Those that have been out of reach for a while, each with the partitions of whose
            leadership it has not been informed.
        problems: Why brokers are not reached.
    """

    uninformed: Mapping[int, Collection[TopicPartition]] = MappingProxyType({})
    problems: Mapping[int, str] = MappingProxyType({})

    def without(self, tp: TopicPartition) -> list[int]:
        """Brokers that do not know how a partition is led."""
        return sorted(b for b, partitions in self.uninformed.items() if tp in partitions)


def state_change_report(
    context: ControllerContext, topic: str, partition: int | None, reach: Reach | None = None
) -> Report | None:
    """The report on a topic, or on one of its partitions; None if there is none.

    Without the topic it says why the topic is gone, if that is known: ``removed``.
    """
    reach = reach or Reach()
    trail = context.trail
    report: Report = {
        "controllerEpoch": context.term.epoch,
        "termBeganMs": trail.began_ms,
        "evictedPartitions": trail.evicted_partitions,
        "topic": topic,
        "removed": None,
        "partitionCount": 0,
        "omitted": 0,
        "partitions": [],
        "brokers": {},
    }
    if not context.cluster.has_topic(topic):
        cause = trail.removed_topics.get(topic)
        return None if cause is None else report | {"removed": _cause(cause)}
    partitions = context.cluster.partitions_of(topic)
    chosen = list(partitions) if partition is None else [TopicPartition(topic, partition)]
    if partition is not None and chosen[0] not in partitions:
        return None
    shown = heapq.nsmallest(PARTITIONS_MAX, chosen, key=lambda tp: _urgency(context, tp, reach))
    hosts = sorted({b for tp in shown for b in context.cluster.replicas(tp)})
    return report | {
        "isBeingDeleted": context.is_topic_queued_for_deletion(topic),
        "partitionCount": len(partitions),
        "omitted": len(chosen) - len(shown),
        "partitions": [_partition(context, tp, reach) for tp in shown],
        "brokers": {str(b): _broker(context, b, reach) for b in hosts},
    }


def _urgency(context: ControllerContext, tp: TopicPartition, reach: Reach) -> tuple[int, int]:
    """Without a leader first, then with replicas out of sync or brokers that do not know the
    leader, then what has changed."""
    leadership = context.cluster.leadership.get(tp)
    if leadership is None or context.partition_state(tp) is not PartitionState.ONLINE:
        return 0, tp.partition
    if len(leadership.isr) < len(context.cluster.replicas(tp)) or reach.without(tp):
        return 1, tp.partition
    return 2 if tp in context.trail.partitions else 3, tp.partition


def _partition(context: ControllerContext, tp: TopicPartition, reach: Reach) -> Report:
    assignment = context.cluster.assignment(tp)
    assert assignment is not None
    trail = context.trail.partitions.get(tp)
    changes = () if trail is None else trail.changes
    concerned = {*assignment.replicas, *(b for c in changes if c.after for b in c.after.isr)}
    if trail is not None and trail.before is not None:
        concerned.update(trail.before.isr)
    return {
        "partition": tp.partition,
        "state": context.partition_state(tp).name.title(),
        "replicas": assignment.replicas,
        "addingReplicas": assignment.adding_replicas,
        "removingReplicas": assignment.removing_replicas,
        "now": _leadership(context.cluster.leadership.get(tp)),
        "offlineDirs": [
            b for b in assignment.replicas if tp in context.replicas_on_offline_dirs(b)
        ],
        "refusals": context.refusals.of_partition(tp),
        "uninformed": reach.without(tp),
        "before": None if trail is None else _leadership(trail.before),
        "dropped": 0 if trail is None else trail.dropped,
        "changes": [
            {
                "cause": _cause(c.cause, concerned),
                "kind": c.kind,
                "after": _leadership(c.after),
            }
            for c in changes
        ],
    }


def _leadership(state: LeaderAndIsr | None) -> Report | None:
    if state is None:
        return None
    return {
        "leader": None if state.leader == NO_LEADER else state.leader,
        "leaderEpoch": state.leader_epoch,
        "isr": state.isr,
        "controllerEpoch": state.controller_epoch,
        "partitionEpoch": state.partition_epoch,
    }


def _broker(context: ControllerContext, broker_id: int, reach: Reach) -> Report:
    cause = context.trail.broker_causes.get(broker_id)
    return {
        "isLive": broker_id in context.cluster.brokers,
        "isShuttingDown": broker_id in context.shutting_down_broker_ids,
        "problem": reach.problems.get(broker_id),
        "last": None if cause is None else _cause(cause, (broker_id,)),
    }


def _cause(cause: Cause, concerned: Container[int] = ()) -> Report:
    """A cause, with those of its brokers that concern the partition."""
    return {
        "kind": cause.kind,
        "event": cause.event,
        "timeMs": cause.time_ms,
        "brokers": [
            {"id": b.broker_id, "epoch": b.epoch, "sessionId": _session(b.session_id)}
            for b in cause.brokers
            if b.broker_id in concerned
        ],
    }


def _session(session_id: int) -> str | None:
    """As ZooKeeper's own tools and logs print it."""
    return f"0x{session_id & 0xFFFFFFFFFFFFFFFF:x}" if session_id else None
