"""Growing, configuring, describing and deleting topics by command."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from regent.admin.commands import (
    TRANSIENT_REASONS,
    Accepted,
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    Reason,
    Rejected,
)
from regent.controller.active_controller import ActiveController
from regent.controller.commands import Command
from regent.model.errors import ControllerMovedError
from regent.model.partition import ReplicaAssignment
from regent.model.topic_config import BrokerFacts, KafkaVersion
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.config import (
    ConfigEntity,
    decode_config_change,
    encode_entity_config,
)
from regent.zk_data.deletion_marker import decode_deletion_marker
from tests.unit.controller.driving import once, raising
from tests.unit.controller.processes import denying
from tests.unit.controller.topics.commanding import LOST, config_of, refusal, rejected, submit
from tests.unit.controller.world import World

TOPIC_ID = uuid.UUID(int=99)


def cluster(**settings: Any) -> tuple[World, ActiveController]:
    """Three brokers and topic t with two partitions, led by brokers 1 and 2."""
    world = World(**settings)
    world.start_broker(1, 2, 3)
    world.create_topic("t", {0: (1, 2), 1: (2, 3)}, topic_id=TOPIC_ID)
    return world, world.lead()


def learn(
    active: ActiveController,
    version: KafkaVersion,
    others: Mapping[int, KafkaVersion] | None = None,
    *,
    epoch: int | None = None,
) -> None:
    """All brokers say which version they run."""
    for broker_id, broker in active.context.cluster.brokers.items():
        own = (others or {}).get(broker_id, version)
        facts = BrokerFacts(
            broker_id=broker_id,
            versions=(own,),
            protocol_version=own,
            settings={},
            has_answered=True,
        )
        active.context.broker_facts.learn(broker.epoch if epoch is None else epoch, facts)


class TestGrowth:
    def test_new_partitions_continue_the_pattern_and_all_else_stays(self) -> None:
        world, active = cluster()
        assert submit(world, active, CreatePartitions("t", 4)) == (Accepted(),)
        assert world.topic("t").assignments == {
            0: ReplicaAssignment((1, 2)),
            1: ReplicaAssignment((2, 3)),
            2: ReplicaAssignment((3, 1)),
            3: ReplicaAssignment((1, 3)),
        }
        assert world.topic("t").topic_id == TOPIC_ID

    def test_nothing_is_written_to_validate(self) -> None:
        world, active = cluster()
        tree = world.zookeeper.dump()
        assert submit(world, active, CreatePartitions("t", 4, validate_only=True)) == (Accepted(),)
        assert world.zookeeper.dump() == tree

    def test_an_assignment_is_taken_as_it_is_given(self) -> None:
        world, active = cluster()
        command = CreatePartitions("t", 3, assignment={2: (2, 1)})
        assert submit(world, active, command) == (Accepted(),)
        assert world.topic("t").assignments[2] == ReplicaAssignment((2, 1))

    @pytest.mark.parametrize("total", [0, 1, 2, 10_001])
    def test_a_number_that_is_no_growth(self, total: int) -> None:
        world, active = cluster()
        refused = refusal(world, active, CreatePartitions("t", total))
        assert (refused.reason, refused.field) == (Reason.INVALID_PARTITIONS, "total")
        assert "has 2 partitions" in refused.message

    def test_partitions_beyond_the_highest_number_are_refused(self) -> None:
        world, active = cluster()
        world.create_topic("far", {0: (1, 2), 2**31 - 2: (1, 2)}, seen_by=active)
        refused = refusal(world, active, CreatePartitions("far", 4))
        assert (refused.reason, refused.field) == (Reason.INVALID_PARTITIONS, "total")
        assert "has a partition 2147483646" in refused.message
        assert submit(world, active, CreatePartitions("far", 3)) == (Accepted(),)

    @pytest.mark.parametrize("assignment", [{0: (1,)}, {3: (1,)}, {2: (1,), 3: (1,)}])
    def test_an_assignment_that_does_not_fit(self, assignment: dict[int, tuple[int, ...]]) -> None:
        world, active = cluster()
        refused = refusal(world, active, CreatePartitions("t", 3, assignment=assignment))
        assert refused.reason is Reason.INVALID_REPLICA_ASSIGNMENT

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"{", "cannot be read"),
            (b'{"version":2,"partitions":{"0":[1],"1":["x"]}}', "malformed partitions ['1']"),
            (b'{"version":2,"partitions":{}}', "no partition at all"),
        ],
    )
    def test_a_node_that_must_not_be_written_back(self, content: bytes, said: str) -> None:
        world, active = cluster()
        world.put(paths.topic("t"), content)
        refused = refusal(world, active, CreatePartitions("t", 3))
        assert refused.reason is Reason.INTERNAL_ERROR
        assert said in refused.message

    def test_a_concurrent_growth_wins(self) -> None:
        world, active = cluster()
        theirs = {0: (1, 2), 1: (2, 3), 2: (3, 2)}
        world.driver.before = once(zk_effects.Write, lambda: world.create_topic("t", theirs))
        assert rejected(world, active, CreatePartitions("t", 3)).reason is Reason.CONCURRENT_CHANGE
        assert world.topic("t").assignments[2] == ReplicaAssignment((3, 2))


class TestConfiguration:
    def test_keys_are_set_and_removed_and_all_others_stay(self) -> None:
        world, active = cluster()
        before = {"retention.ms": "1", "segment.ms": "2", "flush.ms": "3", "somebody.elses": "x"}
        world.put(paths.topic_config("t"), encode_entity_config(before))
        command = AlterTopicConfig("t", {"retention.ms": "9"}, ("segment.ms", "never.set"))
        assert submit(world, active, command) == (Accepted(),)
        assert config_of(world) == {
            "retention.ms": "9",
            "flush.ms": "3",
            "somebody.elses": "x",
        }

    def test_the_brokers_are_notified_in_the_same_transaction(self) -> None:
        world, active = cluster()
        submit(world, active, AlterTopicConfig("t", {"retention.ms": "9"}))
        (child,) = world.zookeeper.children(paths.CONFIG_CHANGES)
        node = world.node(paths.config_change(child))
        assert decode_config_change(child, node.data) == ConfigEntity("topics", "t")
        assert world.driver.transactions() == 1

    @pytest.mark.parametrize(
        "command", [AlterTopicConfig("t"), AlterTopicConfig("t", remove=("flush.ms",))]
    )
    def test_a_change_that_is_none_writes_nothing(self, command: AlterTopicConfig) -> None:
        world, active = cluster()
        assert submit(world, active, command) == (Accepted(),)
        assert world.driver.transactions() == 0
        assert config_of(world) is None

    @pytest.mark.parametrize(
        ("config", "key"),
        [
            ({"retention": "1"}, "retention"),
            ({"retention.ms": "soon"}, "retention.ms"),
            ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"}, "min.compaction.lag.ms"),
        ],
    )
    def test_an_illegal_configuration(self, config: dict[str, str], key: str) -> None:
        world, active = cluster()
        learn(active, (3, 9))
        for command in (AlterTopicConfig("t", config), CreateTopic("new", 1, 1, config=config)):
            refused = refusal(world, active, command)
            assert (refused.reason, refused.field) == (Reason.INVALID_CONFIG, f'config["{key}"]')

    def test_what_one_broker_cannot_load(self) -> None:
        world, active = cluster()
        learn(active, (3, 9), {2: (1, 1)})
        config = {"compression.type": "zstd"}
        for command in (AlterTopicConfig("t", config), CreateTopic("new", 1, 1, config=config)):
            refused = refusal(world, active, command)
            assert refused.reason is Reason.INVALID_CONFIG
            assert "broker 2 runs Kafka 1.1" in refused.message

    def test_what_cannot_be_judged_waits_until_the_broker_has_answered(self) -> None:
        world, active = cluster()
        command = AlterTopicConfig("t", {"compression.type": "zstd"})
        refused = refusal(world, active, command)
        assert refused.reason is Reason.BROKER_VERSION_UNKNOWN
        assert refused.reason in TRANSIENT_REASONS
        assert submit(world, active, AlterTopicConfig("t", {"flush.ms": "1"})) == (Accepted(),)
        learn(active, (3, 9))
        assert submit(world, active, command) == (Accepted(),)

    def test_what_a_broker_that_is_down_could_not_load_when_it_starts(self) -> None:
        """It would read the configuration then, and give up."""
        world, active = cluster()
        learn(active, (3, 9), {2: (1, 1)})
        world.stop_broker(2, seen_by=active)
        command = AlterTopicConfig("t", {"compression.type": "zstd"})
        refused = refusal(world, active, command)
        assert refused.reason is Reason.INVALID_CONFIG
        assert "broker 2 runs Kafka 1.1" in refused.message

    def test_what_a_former_life_of_a_broker_has_said_does_not_count(self) -> None:
        world, active = cluster()
        learn(active, (3, 9), epoch=1)
        command = AlterTopicConfig("t", {"compression.type": "zstd"})
        assert refusal(world, active, command).reason is Reason.BROKER_VERSION_UNKNOWN

    def test_what_zookeeper_would_end_the_session_over(self) -> None:
        world, active = cluster()
        replicas = ",".join(f"{partition}:1" for partition in range(150_000))
        config = {"leader.replication.throttled.replicas": replicas}
        for command in (AlterTopicConfig("t", config), CreateTopic("new", 1, 1, config=config)):
            refused = refusal(world, active, command)
            assert refused.reason is Reason.TOO_LARGE
            assert "takes 1,239," in refused.message
            assert "1,048,575" in refused.message

    def test_an_unreadable_configuration_is_not_overwritten(self) -> None:
        world, active = cluster()
        world.put(paths.topic_config("t"), b"{")
        refused = refusal(world, active, AlterTopicConfig("t", {"retention.ms": "9"}))
        assert refused.reason is Reason.INTERNAL_ERROR

    @pytest.mark.parametrize("exists", [True, False])
    def test_a_concurrent_change_wins(self, exists: bool) -> None:
        world, active = cluster()
        if exists:
            world.put(paths.topic_config("t"), encode_entity_config({"flush.ms": "1"}))
        theirs = {"flush.ms": "2"}
        world.driver.before = once(
            zk_effects.Multi,
            lambda: world.put(paths.topic_config("t"), encode_entity_config(theirs)),
        )
        assert (
            rejected(world, active, AlterTopicConfig("t", {"retention.ms": "9"})).reason
            is Reason.CONCURRENT_CHANGE
        )
        assert config_of(world) == theirs
        assert world.zookeeper.children(paths.CONFIG_CHANGES) == ()

    def test_a_lost_answer_is_looked_up(self) -> None:
        world, active = cluster()
        world.driver.after = once(zk_effects.Multi, raising(LOST))
        command = AlterTopicConfig("t", {"retention.ms": "9"})
        assert submit(world, active, command) == (Accepted(),)

    def test_a_transaction_that_did_not_take_place_is_to_be_tried_again(self) -> None:
        world, active = cluster()
        world.driver.before = once(zk_effects.Multi, raising(LOST))
        refused = refusal(world, active, AlterTopicConfig("t", {"retention.ms": "9"}))
        assert refused.reason is Reason.ZOOKEEPER_UNAVAILABLE

    def test_configurations_are_described_as_they_are(self) -> None:
        world, active = cluster()
        world.create_topic("u", {0: (1,)}, config={"flush.ms": "1"})
        world.create_topic("v", {0: (1,)})
        world.put(paths.topic_config("v"), b"{")
        active = world.fail_over()
        command = DescribeTopicConfigs(("t", "u", "v", "unknown"))
        assert submit(world, active, command) == (Accepted({"t": {}, "u": {"flush.ms": "1"}}),)
        assert len(world.log.errors("Malformed topic config")) == 1

    def test_a_configuration_that_may_not_be_read_hides_no_other(self) -> None:
        world, active = cluster()
        world.create_topic("u", {0: (1,)}, config={"flush.ms": "1"})
        active = world.fail_over()
        world.driver.before = denying(paths.topic_config("u"), zk_effects.ReadData)
        described, refused = submit(
            world, active, DescribeTopicConfigs(("t", "u")), DescribeTopicConfigs(("u",))
        )
        assert described == Accepted({"t": {}})
        assert isinstance(refused, Rejected)
        assert refused.reason is Reason.ZOOKEEPER_REFUSED
        assert "NOAUTH for /config/topics/u" in refused.message


class TestDeletion:
    def test_a_marker_says_which_topic_is_meant(self) -> None:
        world, active = cluster()
        assert submit(world, active, DeleteTopic("t")) == (Accepted(),)
        marker = world.node(paths.delete_topic("t")).data
        assert decode_deletion_marker(marker) == world.node(paths.topic("t")).czxid

    def test_marking_a_marked_topic_is_fine(self) -> None:
        world, active = cluster()
        world.mark_for_deletion("t")
        active.context.queue_topic_for_deletion("t")
        assert submit(world, active, DeleteTopic("t"), DeleteTopic("t")) == (Accepted(),) * 2

    def test_a_topic_that_was_created_again_meanwhile_is_not_deleted(self) -> None:
        world, active = cluster()
        refused = refusal(world, active, DeleteTopic("t", uuid.UUID(int=1)))
        assert refused.reason is Reason.UNKNOWN_TOPIC
        assert "another one by now" in refused.message
        assert world.zookeeper.children(paths.DELETE_TOPICS) == ()
        assert submit(world, active, DeleteTopic("t", TOPIC_ID)) == (Accepted(),)


@pytest.mark.parametrize(
    "command", [CreatePartitions("t", 3), AlterTopicConfig("t", {"flush.ms": "1"})]
)
def test_a_topic_that_is_unknown_or_being_deleted_is_not_touched(command: Command) -> None:
    world, active = cluster()
    active.context.queue_topic_for_deletion("t")
    assert refusal(world, active, command).reason is Reason.TOPIC_MARKED_FOR_DELETION
    active.context.remove_topic("t")
    assert refusal(world, active, command).reason is Reason.UNKNOWN_TOPIC


@pytest.mark.parametrize(
    "command",
    [
        CreateTopic("new", 1, 1),
        CreatePartitions("t", 3),
        AlterTopicConfig("t", {"flush.ms": "1"}),
        DeleteTopic("t"),
    ],
)
def test_a_controller_that_has_moved_changes_nothing(command: Command) -> None:
    world, active = cluster()
    world.elect_rival()
    tree = world.zookeeper.dump()
    with pytest.raises(ControllerMovedError):
        submit(world, active, command)
    assert world.zookeeper.dump() == tree


def test_commands_of_all_kinds_are_answered_in_their_order() -> None:
    world, active = cluster()
    outcomes = submit(
        world,
        active,
        CreateTopic("new", 1, 1),
        DescribeTopicConfigs(("t",)),
        CreateTopic("t", 1, 1),
        CreatePartitions("t", 3),
        AlterTopicConfig("t", {"flush.ms": "1"}),
        DescribeTopicConfigs(("t",)),
        DeleteTopic("new"),
        DeleteTopic("t"),
    )
    told = [o.reason.name if isinstance(o, Rejected) else json.dumps(o.result) for o in outcomes]
    assert told == [
        "null",
        '{"t": {}}',
        "TOPIC_ALREADY_EXISTS",
        "null",
        "null",
        '{"t": {"flush.ms": "1"}}',
        "UNKNOWN_TOPIC",
        "null",
    ]


# Deletions of topics that are other ones by now than those that were meant.


def test_the_transaction_that_created_its_node_tells_topics_without_ids_apart() -> None:
    world, active = cluster()
    node = world.node(paths.topic("t"))
    refused = rejected(world, active, DeleteTopic("t", czxid=node.czxid + 1))
    assert refused.reason is Reason.UNKNOWN_TOPIC
    assert "another one by now" in refused.message
    assert world.zookeeper.children(paths.DELETE_TOPICS) == ()
    assert submit(world, active, DeleteTopic("t", czxid=node.czxid)) == (Accepted(),)


def test_a_node_that_may_not_be_read_does_not_say_that_it_is_another_one() -> None:
    world, active = cluster()
    world.driver.before = denying(paths.topic("t"), zk_effects.ReadData)
    assert submit(world, active, DeleteTopic("t", czxid=77)) == (Accepted(),)
