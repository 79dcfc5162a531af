"""ReassignTopic: what custom resources ask for."""

from __future__ import annotations

import uuid

import pytest

from regent.admin.commands import Accepted, Outcome, Reason, ReassignTopic, Rejected
from regent.controller.topics.topic_commands import process_commands
from regent.model.partition import ReplicaAssignment
from tests.unit.controller.reassignment.moving import Cluster, writes
from tests.unit.controller.world import T0


def reassign(cluster: Cluster, command: ReassignTopic) -> Outcome:
    (outcome,) = cluster.world.run(process_commands(cluster.active, [command]))
    return outcome


def rejected(cluster: Cluster, command: ReassignTopic) -> Rejected:
    """The refusal; nothing was written."""
    outcome = reassign(cluster, command)
    assert isinstance(outcome, Rejected), outcome
    assert writes(cluster) == []
    return outcome


def test_partitions_go_to_their_new_replicas() -> None:
    cluster = Cluster((1,), (2,)).start()
    assert reassign(cluster, ReassignTopic("t", {0: (1, 3)})) == Accepted()
    assert cluster.stored() == ReplicaAssignment((1, 3), adding_replicas=(3,))
    assert cluster.stored(1) == ReplicaAssignment((2,))
    cluster.sync(1, 3)
    assert cluster.stored() == ReplicaAssignment((1, 3))


def test_a_reassignment_of_somebody_else_goes_first() -> None:
    cluster = Cluster((1,), (2,)).start()
    cluster.move(4)
    cluster.forget()
    outcome = rejected(cluster, ReassignTopic("t", {0: (1, 3), 1: (2, 3)}))
    assert outcome.reason is Reason.REASSIGNMENT_IN_PROGRESS
    assert outcome.message == "partition t-0 is on its way to replicas [4]"
    assert cluster.stored(1) == ReplicaAssignment((2,))


@pytest.mark.parametrize(
    ("command", "reason", "message"),
    [
        (ReassignTopic("u", {0: (1,)}), Reason.UNKNOWN_TOPIC, "topic 'u' does not exist"),
        (
            ReassignTopic("t", {7: (1,)}),
            Reason.CONCURRENT_CHANGE,
            "partition t-7 does not exist",
        ),
        (
            ReassignTopic("t", {0: (1, 1)}),
            Reason.INVALID_REPLICA_ASSIGNMENT,
            "partition t-0: a broker is twice in the replica list [1, 1]",
        ),
        (
            ReassignTopic("t", {0: (1, 8, 9)}),
            Reason.BROKERS_UNAVAILABLE,
            "partition t-0 cannot get replicas on brokers [8, 9], which are not live; live are "
            "[1, 2, 3, 4, 5]",
        ),
    ],
)
def test_what_is_impossible_is_refused(
    command: ReassignTopic, reason: Reason, message: str
) -> None:
    outcome = rejected(Cluster((1,)).start(), command)
    assert (outcome.reason, outcome.message) == (reason, message)


def test_a_topic_that_was_created_again_is_not_meant() -> None:
    cluster = Cluster()
    cluster.world.create_topic("t", {0: (1,)}, topic_id=uuid.UUID(int=2))
    cluster.world.set_state(T0, 1, (1,))
    cluster.start()
    outcome = rejected(cluster, ReassignTopic("t", {0: (1, 3)}, uuid.UUID(int=1)))
    assert outcome.reason is Reason.UNKNOWN_TOPIC
    assert reassign(cluster, ReassignTopic("t", {0: (1, 3)}, uuid.UUID(int=2))) == Accepted()


def test_a_topic_that_is_being_deleted_is_left_alone() -> None:
    cluster = Cluster((1,)).start()
    cluster.active.context.topics_to_be_deleted["t"] = None
    outcome = rejected(cluster, ReassignTopic("t", {0: (1, 3)}))
    assert outcome.reason is Reason.TOPIC_MARKED_FOR_DELETION


def test_no_committed_record_is_given_up() -> None:
    """None of the replicas that would stay is in sync."""
    cluster = Cluster((1, 2), isr=(2,)).start()
    outcome = reassign(cluster, ReassignTopic("t", {0: (1,)}))
    assert outcome == Accepted(), "it waits until the replica is in sync"
    assert cluster.stored().target_replicas == (1,)
    assert cluster.leadership()[1] == (2,)
