"""Defects in what concerns a take-over from the standby's cache."""

from __future__ import annotations

import pytest

from regent.cluster.reads import DirtyNodes
from regent.controller.state.announced_states import AnnouncedStates
from regent.controller.state.leadership_entries import LeadershipEntries
from regent.controller.state.standby_copy import StandbyCopy
from regent.controller.topics import unwatched_topics
from regent.model.partition import TopicPartition
from regent.protocol.partition_state import PartitionState
from regent.runtime.standby_reader import StandbyReader
from tests.simulation.mutants.registry import defect, nothing


@defect(caught_by="the standby has")
def what_is_dirty_not_read(patch: pytest.MonkeyPatch) -> None:
    """A take-over is given the cache as it is."""

    async def read(self: StandbyReader) -> StandbyCopy | None:
        return self.cache.copy() if self.is_current() else None

    patch.setattr(StandbyReader, "read", read)


@defect(caught_by="the standby has", story="a take-over after a lost connection")
def lost_connections_ignored(patch: pytest.MonkeyPatch) -> None:
    """The cache is held to be current whatever was lost."""

    def ignore(_self: StandbyReader, *, is_new: bool) -> None:
        pass

    patch.setattr(StandbyReader, "session_changed", ignore)


@defect(caught_by="assignments are|partitions|never born", story="growth after a take-over")
def topics_of_the_copy_not_watched(patch: pytest.MonkeyPatch) -> None:
    """Nobody sets the watches that a reading would have left."""
    patch.setattr(unwatched_topics, "ArmTimer", lambda *_: nothing())


@defect(caught_by="assignments are|partitions|never born")
def changes_since_the_copy_ignored(patch: pytest.MonkeyPatch) -> None:
    """Watches on topics are set, and what has changed before that is left."""

    async def ignore(_active: object, _topics: object) -> None:
        pass

    patch.setattr(unwatched_topics, "process_partition_modifications", ignore)


@defect(caught_by="the standby has prepared")
def prepared_states_kept(patch: pytest.MonkeyPatch) -> None:
    """What was made for brokers stays though its partition has changed."""
    patch.setattr(AnnouncedStates, "drop", lambda _self, _partitions: None)


@defect(caught_by="the standby has collected")
def collected_entries_not_replaced(patch: pytest.MonkeyPatch) -> None:
    """A value that was made is held to be in the entries of its topic."""

    def replace(self: LeadershipEntries, tp: TopicPartition, state: PartitionState) -> None:
        if tp.topic in self._hosts:
            self._outdated.pop(tp.topic, None)
        else:
            original(self, tp, state)

    original = LeadershipEntries.replace
    patch.setattr(LeadershipEntries, "replace", replace)


@defect(caught_by="the standby has")
def events_of_states_lost(patch: pytest.MonkeyPatch) -> None:
    """What has happened to a partition's state is forgotten at once."""
    original = DirtyNodes.add

    def add(self: DirtyNodes, touched: object) -> None:
        before = dict(self.states)
        original(self, touched)  # type: ignore[arg-type]
        self.states = before

    patch.setattr(DirtyNodes, "add", add)
