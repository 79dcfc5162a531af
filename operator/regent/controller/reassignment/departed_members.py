"""Members of an ISR that are no replicas of the partition leave it at a failover.

A broker's controller whose state machines are broken goes on to store the assignments of
reassignments, and nothing else: it was deposed in the middle of something, and elected again
(docs/operating.md). Who has left then stays in the ISR. Its leader waits for that broker with every
record that is written with acks=all. Nor does it get another replica in: the ISR that it asks for
has the member that has left, so it is refused, with a new leader epoch, and asked for again, for
ever.

Every member of an ISR has what was committed, so the others go on without it. Where none of them is
a replica, nothing is changed: somebody has to decide what is to become of the records.
"""

from __future__ import annotations

from regent.controller.active_controller import ActiveController
from regent.controller.effects import GiveWay
from regent.controller.giving_way import LookedAt
from regent.controller.reassignment.new_epochs import raise_epochs
from regent.model.log import examples
from regent.model.partition import TopicPartition


async def take_out(active: ActiveController) -> None:
    """To be called in the failover, before reassignments go on."""
    departed = await _departed(active)
    if not departed:
        return
    failures = await raise_epochs(active, departed)
    left = {tp: members for tp, members in departed.items() if tp not in failures}
    if left:
        active.log.warning(
            "In-sync replicas that were not assigned have left the ISR",
            partitions=len(left),
            examples=examples(f"{tp}: {list(members)}" for tp, members in left.items()),
        )
    if failures:
        active.log.error(
            "In-sync replicas that are not assigned stay in the ISR",
            partitions=len(failures),
            examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
        )


async def _departed(active: ActiveController) -> dict[TopicPartition, tuple[int, ...]]:
    """Members that are no replicas, by partition. Brokers wait meanwhile: mostly an ISR is the list
    of replicas, and nothing else is looked at."""
    context = active.context
    cluster, looked_at = context.cluster, LookedAt()
    leadership = cluster.leadership
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in cluster.topics:
        partitions = cluster.partitions_of(topic)
        for tp, assignment in partitions.items():
            state = leadership.get(tp)
            if state is None or state.isr == assignment.replicas:
                continue
            members = tuple([m for m in state.isr if m not in assignment.replicas])
            if members and not context.is_topic_queued_for_deletion(topic):
                found[tp] = members
        if looked_at.is_a_part_with(len(partitions)):
            await GiveWay()
    return found
