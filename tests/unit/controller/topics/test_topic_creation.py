"""Creating topics by command: what is written, and what is refused before anything is."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from regent.admin import topic_creation
from regent.admin.commands import TRANSIENT_REASONS, Accepted, CreateTopic, Reason, Rejected
from regent.controller.active_controller import ActiveController
from regent.controller.topics.topic_changes import process_topic_change
from regent.model.partition import ReplicaAssignment
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.stray_replicas import strays_of
from tests.unit.controller.driving import once, raising
from tests.unit.controller.topics.commanding import LOST, config_of, rejected, submit
from tests.unit.controller.world import World


def cluster(**settings: Any) -> tuple[World, ActiveController]:
    """Three brokers and a topic named taken."""
    world = World(**settings)
    world.start_broker(1, 2, 3)
    world.create_topic("taken", {0: (1, 2)})
    active = world.fail_over()
    world.driver.performed.clear()
    return world, active


class TestCreation:
    def test_replicas_are_placed_and_the_configuration_is_kept(self) -> None:
        world, active = cluster()
        world.draws = [1, 1]
        command = CreateTopic("t", 2, 2, config={"retention.ms": "5"})
        assert submit(world, active, command) == (Accepted(),)
        assert world.topic("t").assignments == {
            0: ReplicaAssignment((2, 1)),
            1: ReplicaAssignment((3, 2)),
        }
        assert config_of(world, "t") == {"retention.ms": "5"}

    def test_an_index_has_room_for_the_segments_of_a_former_topic_that_a_broker_may_have(
        self,
    ) -> None:
        """One that was down loads them at its start, by the configuration of the present topic."""
        world, active = cluster()
        small = {"segment.bytes": "100000", "segment.index.bytes": "1000"}
        command = CreateTopic("t", 1, 1, config=small)
        world.put(strays_of(9, "t"), b'{"version":1,"partitions":[0]}')
        refused = rejected(world, active, command)
        assert refused.reason in TRANSIENT_REASONS
        assert "brokers [9]" in refused.message
        assert submit(world, active, CreateTopic("u", 1, 1, config=small)) == (Accepted(),)
        world.delete(strays_of(9, "t"))
        assert submit(world, active, command) == (Accepted(),)

    def test_a_configuration_left_by_a_namesake_is_replaced(self) -> None:
        world, active = cluster()
        world.put(paths.topic_config("t"), b'{"version":1,"config":{"retention.ms":"1"}}')
        assert submit(world, active, CreateTopic("t", 1, 1)) == (Accepted(),)
        assert config_of(world, "t") == {}

    def test_without_a_replication_factor_that_of_the_cluster_holds(self) -> None:
        world, active = cluster(default_replication_factor=3)
        submit(world, active, CreateTopic("t", 1))
        assert len(world.topic("t").assignments[0].replicas) == 3

    def test_an_assignment_is_taken_as_it_is_given(self) -> None:
        world, active = cluster()
        command = CreateTopic("t", 2, assignment={1: (3, 1), 0: (2, 3)})
        assert submit(world, active, command) == (Accepted(),)
        assert world.topic("t").assignments == {
            0: ReplicaAssignment((2, 3)),
            1: ReplicaAssignment((3, 1)),
        }

    def test_a_broker_that_is_shutting_down_gets_no_new_replica(self) -> None:
        world, active = cluster()
        active.context.mark_shutting_down(2)
        submit(world, active, CreateTopic("t", 9, 2))
        replicas = world.topic("t").assignments.values()
        assert {r for a in replicas for r in a.replicas} == {1, 3}


REFUSED = [
    (CreateTopic("a b", 1, 1), Reason.INVALID_TOPIC_NAME, "topic"),
    (CreateTopic("__cluster_metadata", 1, 1), Reason.INVALID_TOPIC_NAME, "topic"),
    (CreateTopic("taken", 1, 1), Reason.TOPIC_ALREADY_EXISTS, "topic"),
    (CreateTopic("t", 0, 1), Reason.INVALID_PARTITIONS, "partitions"),
    (CreateTopic("t", 10_001, 1), Reason.INVALID_PARTITIONS, "partitions"),
    (CreateTopic("t", 1, 0), Reason.INVALID_REPLICATION_FACTOR, "replication_factor"),
    (CreateTopic("t", 2, assignment={0: (1,)}), Reason.INVALID_REPLICA_ASSIGNMENT, "assignment"),
    (CreateTopic("t", 1, assignment={1: (1,)}), Reason.INVALID_REPLICA_ASSIGNMENT, "assignment"),
    (CreateTopic("t", 1, assignment={0: ()}), Reason.INVALID_REPLICA_ASSIGNMENT, "assignment"),
    (CreateTopic("t", 1, assignment={0: (1, 1)}), Reason.INVALID_REPLICA_ASSIGNMENT, "assignment"),
    (
        CreateTopic("t", 2, assignment={0: (1,), 1: (1, 2)}),
        Reason.INVALID_REPLICA_ASSIGNMENT,
        "assignment",
    ),
]


class TestChosenIds:
    ID = uuid.UUID(int=99)

    @pytest.mark.parametrize(("protocol", "expected"), [((2, 7), None), ((2, 8), ID)])
    def test_an_id_chosen_before_is_used_where_topics_have_ids(
        self, protocol: tuple[int, int], expected: uuid.UUID | None
    ) -> None:
        world, active = cluster()
        active.context.cluster.inter_broker_protocol = protocol
        assert submit(world, active, CreateTopic("t", 1, 1, topic_id=self.ID)) == (Accepted(),)
        assert world.topic("t").topic_id == expected

    def test_a_creation_whose_answer_was_lost_is_accepted_when_it_is_sent_again(self) -> None:
        world, active = cluster()
        active.context.cluster.inter_broker_protocol = (2, 8)
        submit(world, active, CreateTopic("t", 1, 1, topic_id=self.ID))
        world.run(process_topic_change(active))
        assert submit(world, active, CreateTopic("t", 1, 1, topic_id=self.ID)) == (Accepted(),)
        assert (
            rejected(world, active, CreateTopic("t", 1, 1, topic_id=uuid.UUID(int=98))).reason
            is Reason.TOPIC_ALREADY_EXISTS
        )


class TestRefusals:
    @pytest.mark.parametrize(("command", "reason", "field"), REFUSED)
    def test_nothing_is_written_when_the_command_is_wrong(
        self, command: CreateTopic, reason: Reason, field: str
    ) -> None:
        world, active = cluster()
        tree = world.zookeeper.dump()
        outcome = rejected(world, active, command)
        assert (outcome.reason, outcome.field) == (reason, field)
        assert outcome.message
        assert world.zookeeper.dump() == tree
        assert world.driver.transactions() == 0
        assert reason not in TRANSIENT_REASONS

    def test_a_topic_that_is_being_deleted_can_be_created_once_that_is_done(self) -> None:
        world, active = cluster()
        active.context.queue_topic_for_deletion("taken")
        refused = rejected(world, active, CreateTopic("taken", 1, 1))
        assert refused.reason is Reason.TOPIC_MARKED_FOR_DELETION
        assert refused.reason in TRANSIENT_REASONS

    def test_brokers_of_which_only_some_have_a_rack(self) -> None:
        world, active = cluster()
        world.start_broker(4, rack="a")
        active = world.fail_over()
        outcome = rejected(world, active, CreateTopic("t", 1, 1))
        assert outcome.reason is Reason.INVALID_REPLICA_ASSIGNMENT
        assert "have no rack" in outcome.message


class TestTogether:
    def test_large_topics_do_not_share_a_transaction_that_zookeeper_would_refuse(self) -> None:
        world, active = cluster()
        commands = [CreateTopic(f"t{i}", 9_000, 3) for i in range(8)]
        assert submit(world, active, *commands) == (Accepted(),) * 8
        multis = [e for e in world.driver.performed if isinstance(e, zk_effects.Multi)]
        sizes = [sum(len(getattr(op, "data", b"")) for op in m.operations) for m in multis]
        assert len(multis) == 2
        assert max(sizes) < 1024 * 1024

    def test_refused_ones_do_not_stand_in_the_way_of_the_others(self) -> None:
        world, active = cluster()
        outcomes = submit(
            world,
            active,
            CreateTopic("t", 1, 1),
            CreateTopic("t", 1, 1),
            CreateTopic("taken", 1, 1),
            CreateTopic("a.b", 1, 1),
            CreateTopic("a_b", 1, 1),
            CreateTopic("u", 0, 1),
            CreateTopic("v", 1, 1),
        )
        reasons = [o.reason.name if isinstance(o, Rejected) else "" for o in outcomes]
        assert reasons == [
            "",
            "TOPIC_ALREADY_EXISTS",
            "TOPIC_ALREADY_EXISTS",
            "",
            "TOPIC_NAME_COLLISION",
            "INVALID_PARTITIONS",
            "",
        ]
        assert world.exists(paths.topic("v"))

    def test_a_topic_that_somebody_else_creates_meanwhile_is_theirs(self) -> None:
        world, active = cluster()
        world.driver.before = once(
            zk_effects.Multi, lambda: world.create_topic("t", {0: (3,)}, topic_id=uuid.UUID(int=9))
        )
        outcomes = submit(world, active, CreateTopic("s", 1, 1), CreateTopic("t", 1, 1))
        assert outcomes[0] == Accepted()
        assert isinstance(outcomes[1], Rejected)
        assert outcomes[1].reason is Reason.TOPIC_ALREADY_EXISTS
        assert world.topic("t").topic_id == uuid.UUID(int=9)
        assert not world.exists(paths.topic_config("t"))

    def test_a_configuration_that_appears_meanwhile_is_a_concurrent_change(self) -> None:
        world, active = cluster()
        world.driver.before = once(
            zk_effects.Multi, lambda: world.put(paths.topic_config("t"), b'{"version":1}')
        )
        assert rejected(world, active, CreateTopic("t", 1, 1)).reason is Reason.CONCURRENT_CHANGE
        assert not world.exists(paths.topic("t"))


class TestLostAnswers:
    def test_topics_that_were_created_are_accepted(self) -> None:
        world, active = cluster()
        world.driver.after = once(zk_effects.Multi, raising(LOST))
        assert submit(world, active, CreateTopic("s", 1, 1), CreateTopic("t", 1, 1)) == (
            Accepted(),
            Accepted(),
        )

    def test_topics_that_were_not_are_to_be_tried_again(self) -> None:
        world, active = cluster()
        world.driver.before = once(zk_effects.Multi, raising(LOST))
        refused = rejected(world, active, CreateTopic("t", 1, 1))
        assert refused.reason is Reason.ZOOKEEPER_UNAVAILABLE
        assert refused.reason in TRANSIENT_REASONS
        assert not world.exists(paths.topic("t"))

    def test_each_topic_has_its_own_fate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(topic_creation, "TOPICS_PER_TRANSACTION", 1)
        world, active = cluster()
        world.driver.before = once(zk_effects.Multi, raising(LOST), skip=1)
        first, second, third = submit(world, active, *(CreateTopic(t, 1, 1) for t in "abc"))
        assert first == third == Accepted()
        assert isinstance(second, Rejected)
        assert world.zookeeper.children(paths.BROKER_TOPICS) == ("a", "c", "taken")
