"""Defects in what concerns partitions that move."""

from __future__ import annotations

from typing import Any

import pytest

from regent.controller.active_controller import ActiveController
from regent.controller.brokers import broker_changes
from regent.controller.partitions import isr_changes
from regent.controller.reassignment import reassignments, request_node, throttle_znodes, throttles
from regent.controller.state.states import ReplicaState
from regent.controller.term import failover
from regent.controller.topics import topic_changes
from regent.controller.transitions.partition_state_znodes import epoch_guard
from regent.zk_data import paths
from regent.zk_data.effects import Write
from regent.zk_data.operations import SetData
from regent.zk_data.throttles import THROTTLES
from regent.zk_data.topics import TopicZNode, encode_topic
from tests.simulation.mutants.registry import defect, exists_unwatched, nothing


@defect(caught_by="on its way for ever|still to go to")
def reassignments_not_resumed(patch: pytest.MonkeyPatch) -> None:
    """What a predecessor has begun stays where it is."""
    patch.setattr(failover, "resume_reassignments", lambda *_: nothing())


@defect(caught_by="on its way for ever|ISR of")
def started_targets_not_told(patch: pytest.MonkeyPatch) -> None:
    """A target that was down returns, and nobody creates its replica."""
    patch.setattr(broker_changes, "resume_for_targets", lambda *_: nothing())


@defect(caught_by="on its way for ever")
def reassignments_not_completed(patch: pytest.MonkeyPatch) -> None:
    """The target is in sync, and nobody looks."""
    patch.setattr(isr_changes, "complete_where_in_sync", lambda *_: nothing())
    patch.setattr(reassignments, "check_completion", lambda *_: nothing())


@defect(caught_by="which it does not host")
def leaving_replicas_not_deleted(patch: pytest.MonkeyPatch) -> None:
    """Replicas that leave are forgotten where they are."""

    async def forget(active: ActiveController, replicas: Any) -> dict[Any, str]:
        for tp, broker_ids in replicas.items():
            for broker_id in broker_ids:
                await active.replicas.handle_state_changes({broker_id: [tp]}, ReplicaState.OFFLINE)
                active.context.set_replica_state(broker_id, tp, ReplicaState.NON_EXISTENT)
        return {}

    patch.setattr(reassignments, "_delete_replicas", forget)


@defect(caught_by="loses|that are in sync|which is no reassignment")
def topic_nodes_overwritten(patch: pytest.MonkeyPatch) -> None:
    """A topic node is replaced with what the controller remembers, whatever it is now."""

    async def store(active: ActiveController, assignments: Any) -> dict[Any, str]:
        cluster = active.context.cluster
        for topic in dict.fromkeys(tp.topic for tp in assignments):
            known = {**cluster.partitions_of(topic), **assignments}
            content = TopicZNode(
                cluster.topic_ids.get(topic),
                {tp.partition: a for tp, a in known.items() if tp.topic == topic},
            )
            await Write(
                [SetData(paths.topic(topic), encode_topic(content))],
                guard=epoch_guard(active.context),
            )
        return {}

    patch.setattr(reassignments, "store_assignments", store)


@defect(caught_by="that are in sync|in sync without|to be online under")
def replicas_in_sync_deleted(patch: pytest.MonkeyPatch) -> None:
    """What is not wanted any more is deleted, be it the only copy."""
    patch.setattr(reassignments, "raise_epochs", lambda *_: _no_failures())

    async def delete(active: ActiveController, replicas: Any) -> dict[Any, str]:
        await original(active, replicas)
        return {}

    original = reassignments._delete_replicas
    patch.setattr(reassignments, "_delete_replicas", delete)


async def _no_failures() -> dict[Any, str]:
    return {}


@defect(caught_by="still to go to")
def done_requests_stay(patch: pytest.MonkeyPatch) -> None:
    """The request node keeps what has arrived."""
    patch.setattr(reassignments, "drop_requests", lambda *_: nothing())


@defect(caught_by="still to go to")
def requests_not_watched(patch: pytest.MonkeyPatch) -> None:
    """After the first look nobody hears of requests."""
    patch.setattr(request_node, "exists_permitted", exists_unwatched)


@defect(caught_by="is not deleted|still have it|assignments are|still to go to|Illegal")
def a_deletion_waits_for_its_reassignment(patch: pytest.MonkeyPatch) -> None:
    """A topic that is to be deleted is moved on."""
    for module in (topic_changes, failover):
        patch.setattr(module, "abandon_reassignments", lambda *_: nothing())


@defect(caught_by="is throttled and does not move", story="throttled reassignment")
def throttles_not_released(patch: pytest.MonkeyPatch) -> None:
    """Partitions have arrived, and their copies stay throttled."""
    patch.setattr(throttles, "release", lambda *_: nothing())


@defect(caught_by="is throttled and does not move", story="throttled reassignment")
def throttles_of_predecessors_not_known(patch: pytest.MonkeyPatch) -> None:
    """A failover does not read what is noted."""
    patch.setattr(throttles, "load", lambda *_: nothing())


@defect(caught_by="without a note", story="throttled reassignment")
def throttles_noted_afterwards(patch: pytest.MonkeyPatch) -> None:
    """A configuration is written first, and the note in a transaction of its own."""
    write = throttle_znodes.write

    async def write_apart(active: ActiveController, operations: Any) -> str | None:
        notes = [each for each in operations if each.path.startswith(THROTTLES)]
        others = [each for each in operations if each not in notes]
        return await write(active, others) or await write(active, notes)

    patch.setattr(throttle_znodes, "write", write_apart)
