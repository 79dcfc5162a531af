"""Partitions stay on their way, whoever rewrites their topic nodes.

Tools up to Kafka 2.3 that write ZooKeeper themselves know no replicas that are being added or
removed. A node to which ``kafka-topics --zookeeper --alter --partitions`` adds partitions lists the
replicas alone afterwards. This controller remembers what is on its way; a successor would take all
replicas for those that the partition is to have. So it goes back into the node at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from regent.controller.active_controller import ActiveController
from regent.controller.reassignment.stored_assignments import store_assignments
from regent.model.log import examples
from regent.model.partition import ReplicaAssignment, TopicPartition
from regent.zk_data.topics import TopicZNode


async def restore(active: ActiveController, topics: Mapping[str, TopicZNode]) -> None:
    """Topic nodes have changed: write back which replicas come and go, where that is missing.

    Only where the replicas are those that are known: another list is somebody's intention.
    """
    cluster = active.context.cluster
    moving = cluster.partitions_being_reassigned
    if not moving:
        return
    dropped: dict[TopicPartition, ReplicaAssignment] = {}
    for topic, node in topics.items():
        for partition, stored in node.assignments.items():
            tp = TopicPartition(topic, partition)
            known = cluster.assignment(tp) if tp in moving else None
            if known is not None and stored == ReplicaAssignment(known.replicas):
                dropped[tp] = known
    if not dropped:
        return
    not_stored = await store_assignments(active, dropped)
    restored = [tp for tp in dropped if tp not in not_stored]
    if restored:
        active.log.warning(
            "Reassignments restored: a client of Kafka 2.3 or older has dropped them from topic "
            "nodes",
            partitions=len(restored),
            examples=examples(restored),
        )
