"""The controller hosts nothing: assignments that name it are corrected before partitions are born.

Brokers that create a topic (auto-created and internal ones), and tools that write ZooKeeper, place
replicas on whatever looks like a live broker: on the announced controller, too. Here its id is
replaced in the topic node, on condition that the node is still the one that was read, before the
first state of a partition is written. A replica on it would count as one that is down, for good.

A Regent that was killed may have left its id in a topic node. So any id of the range from which
Regents draw theirs is replaced, if no broker has it and no ISR names it. Partitions that exist
already (a broker's controller led meanwhile) get their new replicas by a reassignment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from regent.admin.replica_assignment import BrokerRack
from regent.admin.topic_admin import broker_racks
from regent.controller.active_controller import ActiveController
from regent.controller.reassignment.stored_assignments import store_assignments
from regent.controller.state.context import ControllerContext
from regent.controller.topics.replica_replacement import replace_replicas
from regent.model.cluster import DRAWN_CONTROLLER_IDS
from regent.model.log import examples
from regent.model.partition import ReplicaAssignment, TopicPartition


async def repair_loaded(active: ActiveController) -> None:
    """At a failover: topics and states are loaded, and nothing is known of replicas yet."""
    context = active.context
    phantoms = _phantoms(context, context.cluster.topics)
    if phantoms:
        known = {replica for state in context.cluster.leadership.values() for replica in state.isr}
        partitions = list(context.cluster.all_partitions())
        await _repair(active, partitions, phantoms - known)


async def repair(active: ActiveController, partitions: Collection[TopicPartition]) -> None:
    """Partitions are new, and none of them is born yet."""
    context = active.context
    phantoms = _phantoms(context, dict.fromkeys(tp.topic for tp in partitions))
    phantoms = {b for b in phantoms if not context.has_replicas_on(b)}
    await _repair(active, partitions, phantoms)


def is_controller_id(context: ControllerContext, broker_id: int) -> bool:
    """Whether an id is that of a Regent, and so no target for replicas."""
    if broker_id == context.term.controller_id:
        return True
    if not context.term.served or broker_id in context.cluster.brokers:
        return False
    return broker_id in DRAWN_CONTROLLER_IDS and not context.has_replicas_on(broker_id)


def _phantoms(context: ControllerContext, topics: Iterable[str]) -> set[int]:
    """Ids of controllers among the replicas of topics, as far as the ids alone say."""
    if not context.term.served:
        return set()
    replicas = {
        replica
        for lists in {
            assignment.replicas
            for topic in topics
            for assignment in context.cluster.partitions_of(topic).values()
        }
        for replica in lists
    }
    ours = context.term.controller_id
    return {
        replica
        for replica in replicas
        if (replica == ours or replica in DRAWN_CONTROLLER_IDS)
        and replica not in context.cluster.brokers
    }


async def _repair(
    active: ActiveController, partitions: Iterable[TopicPartition], phantoms: Collection[int]
) -> None:
    if not phantoms:
        return
    context = active.context
    affected: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        if any(replica in phantoms for replica in context.cluster.replicas(tp)):
            affected.setdefault(tp.topic, []).append(tp)
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    left: list[TopicPartition] = []
    live, loads = broker_racks(context.cluster, context.live_broker_ids), _loads(context)
    brokers = [b for b in live if b.broker_id not in context.cordoned_brokers]
    cordoned = [b for b in live if b.broker_id in context.cordoned_brokers]
    spare = [*cordoned, *_further_brokers(context, phantoms)]
    for topic, named in affected.items():
        if context.is_topic_queued_for_deletion(topic):
            continue
        known = context.cluster.partitions_of(topic)
        replaced = replace_replicas(
            {tp.partition: assignment for tp, assignment in known.items()},
            phantoms=phantoms,
            brokers=brokers,
            loads=loads,
            spare=spare,
            unborn={tp.partition for tp in known if tp not in context.cluster.leadership},
        )
        wanted |= {tp: replaced[tp.partition] for tp in named if tp.partition in replaced}
        left += [tp for tp in named if tp.partition not in replaced]
    fewer = [tp for tp, a in wanted.items() if len(a.replicas) < len(context.cluster.replicas(tp))]
    not_stored = await store_assignments(active, wanted)
    stored = [tp for tp in wanted if tp not in not_stored]
    for tp in stored:
        context.set_assignment(tp, wanted[tp])
    if stored:
        active.log.info(
            "Replicas on the controller replaced", partitions=len(stored), examples=examples(stored)
        )
    if fewer:
        active.log.warning(
            "Partitions have fewer replicas than asked for: too few brokers are known",
            partitions=len(fewer),
            examples=examples(fewer),
        )
    if left:
        active.log.error(
            "Replicas on the controller not replaced: no broker is known",
            partitions=len(left),
            examples=examples(left),
        )


def _further_brokers(context: ControllerContext, phantoms: Collection[int]) -> list[BrokerRack]:
    """Brokers that shut down, and those that are down and have replicas."""
    cluster = context.cluster
    stopping = [BrokerRack(b, cluster.brokers[b].rack) for b in context.shutting_down_broker_ids]
    lists = {cluster.replicas(tp) for tp in cluster.all_partitions()}
    hosts = sorted({replica for replicas in lists for replica in replicas} - set(phantoms))
    return [*stopping, *(BrokerRack(b, None) for b in hosts if b not in cluster.brokers)]


def _loads(context: ControllerContext) -> Mapping[int, int]:
    return {b: len(context.replica_states_on(b)) for b in context.cluster.brokers}
