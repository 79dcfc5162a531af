"""Brokers that registered anew while nobody led: the failover treats them as bounced.

A controller that sees a broker bounce takes it out of the ISRs, or gives what it alone leads a new
leader epoch. Either writes the partition's state, after the registration. So where a member of an
ISR has registered after the state was written, nobody has seen it. (Below
inter.broker.protocol.version 2.7 a leader may have written the state meanwhile, with a follower
that has restarted in its ISR. It takes that follower out by itself: a broker that has restarted
does not fetch until it is asked to. And old brokers, such as those of 1.1.1, do not look for dead
followers when their controller is elected: one that is back soon stays in the ISR, under the old
state. It leaves the ISR here for a moment, which costs no leader and no record.)

Nobody knows what a restarted broker has lost. As leader under the leader epoch that followers know
it would have them cut off what it does not have, and those that know it by a former address would
fetch from there for ever. So this comes before anybody is sent a leader.

Where all that is live of an ISR has restarted, nothing is known that would be better: they stay.

Kafka's own controller does not look for this: it knows bounces by the epochs of brokers that it had
seen before (KAFKA-7235).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, islice, repeat
from operator import and_, attrgetter, gt
from typing import Final

from regent.controller.active_controller import ActiveController
from regent.controller.giving_way import PART, give_way_after, in_parts
from regent.controller.reassignment.new_epochs import leadership_without
from regent.controller.state.causes import CauseKind, ChangeKind
from regent.controller.state.context import ControllerContext
from regent.controller.transitions.leadership_changes import (
    Decision,
    LeaderAndMembers,
    change_leadership,
)
from regent.model.log import examples
from regent.model.partition import NO_EPOCH, NO_LEADER, LeaderAndIsr, TopicPartition

_isr_of: Final = attrgetter("isr")
_NOT_KNOWN: Final = LeaderAndIsr(NO_LEADER, NO_EPOCH, (), NO_EPOCH, NO_EPOCH)


async def treat_as_bounced(
    active: ActiveController, state_mzxids: Mapping[TopicPartition, int]
) -> None:
    """To be called in the failover, before the replicas are announced.

    Args:
        state_mzxids: Transaction that wrote the state of each partition as it was loaded. What has
            been forgotten since does not matter.
    """
    context = active.context
    restarted = await _restarted_members(context, state_mzxids)
    if not restarted:
        return
    brokers = sorted({member for members in restarted.values() for member in members})

    def decide(tp: TopicPartition, state: LeaderAndIsr) -> Decision:
        return _without_restarted(context, tp, state, restarted[tp])

    cause = CauseKind.BROKER_BOUNCED
    with context.trail.because(cause, brokers=[context.cluster.brokers[b] for b in brokers]):
        written, failures = await change_leadership(context, list(restarted), decide, active.log)
    if written:
        active.log.warning(
            "Brokers had registered anew while nobody led: others lead, or new leader epochs begin",
            brokers=brokers,
            partitions=len(written),
            examples=examples(written),
        )
    if failures:
        active.log.error(
            "Brokers had registered anew while nobody led, and nothing could be changed",
            brokers=brokers,
            partitions=len(failures),
            examples=examples(f"{tp}: {why}" for tp, why in failures.items()),
        )


async def _restarted_members(
    context: ControllerContext, state_mzxids: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Live members of ISRs that are younger than the state, by partition: of those where something
    is to be changed."""
    cluster = context.cluster
    registered = {broker_id: broker.epoch for broker_id, broker in cluster.brokers.items()}
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for part in in_parts(await _older_than_a_member(cluster.leadership, state_mzxids, registered)):
        for tp in part:
            mzxid = state_mzxids[tp]
            others = [r for r in cluster.replicas(tp) if registered.get(r, mzxid) < mzxid]
            if not others or context.is_topic_queued_for_deletion(tp.topic):
                continue
            if context.live_replicas(tp, others):
                isr = cluster.leadership[tp].isr
                found[tp] = tuple([m for m in isr if registered.get(m, 0) > mzxid])
        await give_way_after(part)
    return found


async def _older_than_a_member(
    leadership: Mapping[TopicPartition, LeaderAndIsr],
    state_mzxids: Mapping[TopicPartition, int],
    registered: Mapping[int, int],
) -> list[TopicPartition]:
    """Partitions with a state that was written before a member of the ISR registered, and after
    some other broker had.

    Brokers wait meanwhile, and there is hardly ever one: 100,000 are looked at in some 20 to 40 ms.
    """
    last_of = _LastRegistration(registered).__getitem__
    isrs = map(_isr_of, map(leadership.get, state_mzxids, repeat(_NOT_KNOWN)))
    mzxids = state_mzxids.values()
    # After a start of the whole cluster states are older than all registrations: nobody is younger
    # than another one then.
    first = min(registered.values(), default=0)
    are_older = map(and_, map(gt, map(last_of, isrs), mzxids), map(first.__lt__, mzxids))
    partitions = iter(state_mzxids)
    found: list[TopicPartition] = []
    while part := list(islice(are_older, PART)):
        found += compress(islice(partitions, len(part)), part)
        await give_way_after(part)
    return found


class _LastRegistration(dict[tuple[int, ...], int]):
    """ISR -> transaction that registered the last of its live members. There are few ISRs."""

    def __init__(self, registered: Mapping[int, int]) -> None:
        self._registered = registered

    def __missing__(self, isr: tuple[int, ...]) -> int:
        last = self[isr] = max((self._registered.get(m, 0) for m in isr), default=0)
        return last


def _without_restarted(
    context: ControllerContext,
    tp: TopicPartition,
    state: LeaderAndIsr,
    restarted: Sequence[int],
) -> Decision:
    """The ISR without those that have restarted, if one of the others is live. Else the same
    leader once more: replicas outside the ISR look for it anew."""
    replicas = context.cluster.replicas(tp)
    others = [m for m in state.isr if m in replicas and m not in restarted]
    if context.live_replicas(tp, others):
        changed = leadership_without(context, tp, state, tuple(restarted))
        if not isinstance(changed, LeaderAndMembers):
            return changed
        is_same = changed.leader == state.leader
        kind = ChangeKind.REPLICA_OFFLINE if is_same else ChangeKind.ELECTED_OFFLINE
        return changed._replace(kind=kind)
    if context.live_replicas(tp, [state.leader]):
        return LeaderAndMembers(state.leader, state.isr)
    return None
