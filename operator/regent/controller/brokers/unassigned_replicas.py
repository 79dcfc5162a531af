"""Replicas that brokers have and should not have are reported. They are never deleted.

They are what a StopReplica was to delete that never arrived: a broker's own controller removes a
topic, or a replica that has left, and notes nothing, so what it had not sent when it ended no
successor knows of (Regent notes what is left: ``topics/stray_replicas.py``). Their brokers keep the
files for ever.

Why nothing is deleted: a replica that ZooKeeper does not assign may be needed all the same.
A ZooKeeper that was restored from a backup, a topic node that was deleted by mistake: in both cases
the brokers' files are all that is left, and what ZooKeeper says looks exactly as it does after a
StopReplica that was lost. "Assigned elsewhere and fully in sync" is no proof either, since after a
restore those replicas are in sync in ZooKeeper only. Evidence would be the topic id beside the
files, which no request asks a broker for, and which old versions do not have. Brokers in KRaft mode
do not delete such logs either, they rename them. So this is a person's decision; how to go about it
is said in ``docs/operating.md``.

Brokers are asked a minute after the failover and after a broker's start, when there is nothing more
urgent, and then every hour. Brokers that start again and again put that off for five minutes at
most: else one of them would keep all others from being asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.effects import ArmTimer
from regent.controller.events import UnassignedReplicaCheck
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.model.log import examples
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import DescribeLogDirsResponse

SOON_MS: Final = 60_000

ANNOUNCED_MAX: Final = 5
"""So often a check is announced. Each puts it off by :data:`SOON_MS` at most."""

_TIMER: Final = "unassigned replicas"


async def schedule_soon(active: ActiveController) -> None:
    """Have brokers asked in a minute, if they are to be asked at all. A resignation ends it."""
    known = active.context.unassigned_replicas
    if active.config.unassigned_replica_check_interval_s is None:
        return
    if known.announced_checks < ANNOUNCED_MAX:
        known.announced_checks += 1
        await ArmTimer(_TIMER, SOON_MS, UnassignedReplicaCheck())


async def process_unassigned_replica_check(active: ActiveController) -> None:
    """Ask all brokers for their replicas, and arm the timer of the next time."""
    active.context.unassigned_replicas.announced_checks = 0
    batch = ControllerBrokerRequestBatch(active.context)
    batch.add_replica_listing(active.context.cluster.brokers)
    await batch.send()
    interval_s = active.config.unassigned_replica_check_interval_s
    if interval_s is not None:
        await ArmTimer(_TIMER, interval_s * 1_000, UnassignedReplicaCheck())


def take_log_dirs(active: ActiveController, response: DescribeLogDirsResponse) -> None:
    """Keep, and log, what a broker has and should not have."""
    if response.replicas is None:
        return
    known, broker_id = active.context.unassigned_replicas, response.broker_id
    before = known.on_broker(broker_id)
    found = _unassigned(active.context, broker_id, response.replicas)
    if found.keys() != before.keys():
        report = active.log.warning if found else active.log.info
        report(
            "Replicas that are not assigned to their broker",
            broker=broker_id,
            replicas=len(found),
            size=sum(found.values()),
            examples=examples(found),
        )
    known.replace(broker_id, found)


def _unassigned(
    context: ControllerContext, broker_id: int, replicas: Mapping[str, Mapping[int, int]]
) -> dict[TopicPartition, int]:
    """Bytes by replica. What is about to be deleted, or noted as to be, is left out."""
    noted = context.stray_replicas.get(broker_id, {})
    doubtful = context.doubtful_replicas.get(broker_id, ())
    found: dict[TopicPartition, int] = {}
    for topic, sizes in replicas.items():
        if context.is_topic_queued_for_deletion(topic):
            continue
        assignments = context.cluster.partitions_of(topic)
        for partition, size in sizes.items():
            tp = TopicPartition(topic, partition)
            assignment = assignments.get(tp)
            if assignment is not None and broker_id in assignment.replicas:
                continue
            if tp not in noted.get(topic, ()) and tp not in doubtful:
                found[tp] = size
    return found
