"""What the entries of LeaderAndIsr requests are to be, made the slow way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from regent.model.partition import TopicPartition
from regent.protocol.collected_entries import CollectedEntries, TopicEntries
from regent.protocol.leader_and_isr import usual_suffix
from regent.protocol.partition_state import PartitionState, prefixes_of


def is_usual(state: PartitionState) -> bool:
    """Whether a partition is not being reassigned, and its leader does not recover."""
    assignment = state.assignment
    return not (
        assignment.adding_replicas
        or assignment.removing_replicas
        or state.leader_and_isr.leader_recovery_state
    )


def entries_of(
    partitions: Iterable[TopicPartition],
    states: Mapping[TopicPartition, PartitionState],
    *,
    suffix: bytes = usual_suffix((2, 6)),
) -> CollectedEntries:
    """Of these partitions, in the order of their numbers."""
    prefixes: dict[str, list[bytes]] = {}
    for tp in sorted(partitions):
        state = states[tp]
        fresh = PartitionState(state.partition, state.leader_and_isr, state.assignment)
        prefixes.setdefault(tp.topic, []).extend(prefixes_of([fresh], flexible=True))
    entries = {
        topic: TopicEntries(len(some), b"".join(prefix + suffix for prefix in some))
        for topic, some in prefixes.items()
    }
    return CollectedEntries(suffix, entries)
