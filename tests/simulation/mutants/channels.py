"""Defects in what concerns what waits for a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from regent.model.partition import TopicPartition
from regent.protocol import metadata_updates, pending_requests
from regent.protocol.collected_entries import CollectedEntries
from regent.protocol.control_requests import (
    ControlHeader,
    ControlRequest,
    ControlRequests,
    LeaderAndIsrRequest,
    PartitionUpdates,
)
from regent.protocol.metadata_updates import Updates
from regent.protocol.pending_requests import (
    PendingRequests,
    PendingUpdateMetadata,
    _PendingLeaderAndIsr,
)
from tests.simulation.mutants.registry import defect


@defect(caught_by="has the logs|hosts")
def recreation_drops_deletion(patch: pytest.MonkeyPatch) -> None:
    """LeaderAndIsr of a re-created partition takes the place of the deletion that waits."""

    def overtake(self: PendingRequests, replicas: Iterable[TopicPartition]) -> None:
        for tp in replicas:
            self._stops.pop(tp, None)

    patch.setattr(PendingRequests, "_leadership_overtakes_stops", overtake)


@defect(caught_by="has the logs|hosts")
def deletion_is_forgotten_by_the_next_one(patch: pytest.MonkeyPatch) -> None:
    """A stop takes the place of a deletion that waits, with the epoch of another replica."""
    patch.setattr(pending_requests, "_merge_stops", lambda _, stop: stop)


@defect(caught_by="hosts|has the logs")
def stop_outlives_leadership(patch: pytest.MonkeyPatch) -> None:
    """A replica that is to go on is stopped, because that waited."""
    patch.setattr(PendingRequests, "_leadership_overtakes_stops", lambda *_: None)


@defect(caught_by="are created to be deleted")
def leadership_outlives_deletion(patch: pytest.MonkeyPatch) -> None:
    """A replica that is to be deleted is created before."""
    patch.setattr(_PendingLeaderAndIsr, "discard", lambda *_: None)


@defect(caught_by="hosts")
def leadership_overtakes_the_list_of_brokers(patch: pytest.MonkeyPatch) -> None:
    """A follower is sent a leader before it knows that broker."""
    patch.setattr(PendingUpdateMetadata, "must_list_brokers_first", False)


@defect(caught_by="delays|has the logs|hosts")
def deletion_delays_leadership(patch: pytest.MonkeyPatch) -> None:
    """What is to be stopped goes first."""

    def take(self: PendingRequests) -> ControlRequest:
        return self._take_stops(self._stops) if self._stops else original(self)

    original = PendingRequests.take
    patch.setattr(PendingRequests, "take", take)


@defect(caught_by="has the logs|hosts")
def is_new_does_not_stick(patch: pytest.MonkeyPatch) -> None:
    """A new replica that was elected about before the broker heard of it is not new."""

    def add(
        self: Any,
        replicas: Mapping[TopicPartition, bool],
        requests: ControlRequests,
        entries: CollectedEntries,
    ) -> None:
        original(self, replicas, requests, entries)
        self._partitions = {**self._partitions, **replicas}
        self._is_own = False

    original = _PendingLeaderAndIsr.add
    patch.setattr(_PendingLeaderAndIsr, "add", add)


@defect(caught_by="missing from the first")
def first_leader_and_isr_is_split(patch: pytest.MonkeyPatch) -> None:
    """A broker begins to write checkpoints before it was sent all replicas."""

    def take(self: Any, header: ControlHeader) -> LeaderAndIsrRequest:
        self.is_first = False
        return original(self, header)

    original = _PendingLeaderAndIsr.take
    patch.setattr(_PendingLeaderAndIsr, "take", take)


@defect(caught_by="committed offsets|announces")
def recreation_is_announced_without_deletion(patch: pytest.MonkeyPatch) -> None:
    """Group coordinators are not sent the deletion of a topic that is there again."""

    def merge(updates: Sequence[PartitionUpdates], *, max_partitions: int) -> Updates:
        merged = original(updates, max_partitions=max_partitions)
        there = [u for u in merged if any(tp not in u.deleted for tp in u.partitions)]
        return tuple(there) or merged

    original = metadata_updates.merge_updates
    patch.setattr(metadata_updates, "merge_updates", merge)


@defect(caught_by="things wait")
def nothing_is_merged(patch: pytest.MonkeyPatch) -> None:
    """Updates wait for ever behind each other."""
    patch.setattr(PendingUpdateMetadata, "_compact", lambda *_: None)
