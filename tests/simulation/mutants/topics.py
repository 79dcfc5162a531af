"""Defects in what concerns topics that come and go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import answers
from regent.controller.reassignment import reassignments
from regent.controller.state.context import ControllerContext
from regent.controller.state.deletion_progress import TopicDeletionProgress
from regent.controller.topics import (
    stray_replica_notes,
    stray_replicas,
    topic_changes,
    topic_deletion_manager,
    topic_id_notes,
    topic_ids,
    topic_node_removal,
)
from regent.controller.topics.topic_deletion_manager import TopicDeletionManager
from regent.controller.transitions.broker_request_batch import ControllerBrokerRequestBatch
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.model.partition import TopicPartition
from regent.protocol.control_requests import StopReplicaResponse
from regent.zk_data import paths
from regent.zk_data.effects import ReadChildren, Write
from regent.zk_data.operations import Delete
from tests.simulation.mutants.registry import defect, nothing


@defect(caught_by="assignments are|never born|topic ids are")
def topics_not_watched(patch: pytest.MonkeyPatch) -> None:
    """After the first change of the topics nobody looks any more."""
    patch.setattr(topic_changes, "ReadChildren", lambda p, watch=False: ReadChildren(p))


@defect(caught_by="still have it")
def deletion_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    """The znodes go as soon as the brokers have been asked, and nothing notes what they have."""

    def done(self: Any) -> bool:
        return bool(self.started > 0 or self.deleted == self.replicas)

    patch.setattr(TopicDeletionProgress, "is_complete", property(done))
    patch.setattr(topic_deletion_manager.TopicDeletionManager, "_undeleted", lambda *_: {})


@defect(caught_by="is not deleted|leadership are")
def deletion_not_resumed(patch: pytest.MonkeyPatch) -> None:
    """A broker returns, and the deletion that waited for it waits on."""
    patch.setattr(TopicDeletionManager, "resume_for", lambda *_: nothing())


@defect(caught_by="removes the mark of|which is no reassignment")
def unknown_topics_are_not_deleted(patch: pytest.MonkeyPatch) -> None:
    """A marker whose topic is not known (yet) is removed."""

    async def process(active: ActiveController) -> None:
        (children,) = await ReadChildren([paths.DELETE_TOPICS], watch=True)
        marked = list(children or ())
        unknown = [topic for topic in marked if not active.context.cluster.has_topic(topic)]
        await Write(
            [Delete(paths.delete_topic(topic), missing_ok=True) for topic in unknown],
            guard=epoch_guard(active.context),
        )
        known = [topic for topic in marked if topic not in unknown]
        await reassignments.abandon(active, known)
        await active.deletions.enqueue(known)

    patch.setattr(topic_changes, "process_topic_deletion", process)


@defect(caught_by="still announces")
def deletion_of_the_unreadable_not_announced(patch: pytest.MonkeyPatch) -> None:
    """Partitions without leadership are never announced, not even as deleted."""

    async def states(self: Any) -> Any:
        leadership = self._context.cluster.leadership
        return {tp: state for tp, state in (await original(self)).items() if tp in leadership}

    original = ControllerBrokerRequestBatch._states
    patch.setattr(ControllerBrokerRequestBatch, "_states", states)


@defect(caught_by="not in one transaction with its marker")
def last_nodes_one_by_one(patch: pytest.MonkeyPatch) -> None:
    """The last nodes of a topic are deleted one after the other."""

    async def remove(context: ControllerContext, topics: Sequence[str], _: Any) -> Sequence[str]:
        for path in (paths.topic, paths.topic_config, paths.delete_topic):
            await Write(
                [Delete(path(topic), missing_ok=True) for topic in topics],
                guard=epoch_guard(context),
            )
        return topics

    patch.setattr(topic_node_removal, "_remove_last_nodes", remove)


@defect(caught_by="still has strays|has .* under the id")
def strays_left_on_disk(patch: pytest.MonkeyPatch) -> None:
    """What a broker could not delete while it was away stays there for good."""
    patch.setattr(stray_replicas, "delete_on_started", lambda *_: nothing())
    patch.setattr(stray_replicas, "delete_at_failover", lambda *_: nothing())


@defect(
    caught_by="deleted records are committed again", story="a topic again after a broker was away"
)
def strays_taken_for_the_new_topic(patch: pytest.MonkeyPatch) -> None:
    """What a broker kept of a deleted topic while it was away is left where it is."""
    patch.setattr(ControllerBrokerRequestBatch, "add_stray_deletion", lambda *_: None)
    patch.setattr(stray_replicas, "take_answer", lambda *_: nothing())


@defect(caught_by="while brokers .* still have it", story="deletion, and an answer comes late")
def refused_deletions_taken_for_done(patch: pytest.MonkeyPatch) -> None:
    """Whatever a broker answers, its replicas are deleted."""

    async def process(active: ActiveController, responses: Sequence[StopReplicaResponse]) -> None:
        good = [msgspec.structs.replace(r, error_code=0, partition_errors={}) for r in responses]
        await original(active, good)

    original = answers.process_stop_replica_responses
    patch.setattr(answers, "process_stop_replica_responses", process)


@defect(caught_by="Illegal replica transition")
def answers_count_twice(patch: pytest.MonkeyPatch) -> None:
    """An answer that arrives again completes the deletion of a replica again."""

    def named(_: ActiveController, response: StopReplicaResponse) -> list[TopicPartition]:
        return [tp for tp, asked in response.partitions.items() if asked.delete]

    patch.setattr(answers, "_deletions_started", named)


@defect(caught_by="which it does not host", story="deletion behind a failed disk")
def disks_not_asked_about(patch: pytest.MonkeyPatch) -> None:
    """A broker that confirms a deletion is taken to see all of its disks."""

    async def forget(active: ActiveController, broker_id: int, topics: Sequence[str]) -> None:
        notes = [(broker_id, topic) for topic in topics]
        await stray_replica_notes.forget(active.context, notes)

    patch.setattr(stray_replicas, "_ask_for_log_dirs", forget)


@defect(caught_by="still have it", story="a disk returns during a deletion")
def deletions_after_a_start_not_noted(patch: pytest.MonkeyPatch) -> None:
    """What a broker confirms to have deleted is taken for deleted, whatever disks it sees."""
    patch.setattr(stray_replicas, "write", lambda *_: nothing())


@defect(
    caught_by="has .* under the id|has .* at|refusals are", story="topics lose their ids unseen"
)
def topic_ids_not_noted(patch: pytest.MonkeyPatch) -> None:
    """A topic that loses its id while nobody leads gets a new one."""
    patch.setattr(topic_id_notes, "remember", lambda *_: nothing())


@defect(
    caught_by="topic ids are|topics without an id", story="topics are rewritten without their ids"
)
def lost_topic_ids_not_restored(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the ids of topic nodes that change."""
    patch.setattr(topic_ids, "take_nodes", lambda *_: nothing())
