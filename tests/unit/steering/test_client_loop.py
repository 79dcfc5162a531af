"""Client mode over the in-memory ZooKeeper: what is known, what is written, what is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    ElectionType,
    ElectLeaders,
    Outcome,
    PartitionResult,
    Reason,
    ReassignTopic,
    Rejected,
)
from regent.cluster.reads import WATCHED
from regent.controller.view import PartitionHealth
from regent.model.errors import (
    BrokerNotControllerError,
    BrokerQuestionError,
    BrokerRefusedError,
    BrokerSilentError,
    BrokerTooOldError,
    UnexpectedZooKeeperError,
)
from regent.model.partition import TopicPartition
from regent.protocol.error_codes import INVALID_REPLICA_ASSIGNMENT
from regent.zk_data import paths
from regent.zk_data.operations import Create, Delete, SetData
from regent.zk_data.reassign_partitions import encode_reassign_partitions
from regent.zk_data.throttles import THROTTLED_BROKERS, THROTTLED_TOPICS
from tests.unit.steering.client_world import ClientWorld

T0 = TopicPartition("t", 0)
THROTTLED = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"


def only(outcomes: Sequence[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome


class TestView:
    async def test_it_shows_the_cluster_of_the_foreign_controller(self, world: ClientWorld) -> None:
        view = world.view
        assert view.is_client
        assert not view.is_active
        assert view.may_act
        assert (view.controller_id, view.controller_epoch, view.cluster_id) == (1, 7, "one")
        topic = view.topics["t"]
        assert [p.replicas for p in topic.partitions] == [(1, 2), (2, 1)]
        assert {p.state for p in topic.partitions} == {PartitionHealth.ONLINE}
        assert world.connections.channels.open.keys() == {1, 2, 3}
        assert not world.connections.channels.sent

    async def test_it_follows_what_others_change(self, world: ClientWorld) -> None:
        world.create_topic("u", (3,))
        await world.until(lambda: "u" in world.view.topics)
        world.admin.multi([Delete(paths.broker_id(3))])
        await world.until(lambda: 3 not in world.view.brokers)
        world.elect(2, epoch=8)
        await world.until(lambda: (world.view.controller_id, world.view.controller_epoch) == (2, 8))
        assert world.connections.channels.open.keys() == {1, 2}

    async def test_without_recursive_watches_it_reads_again_and_again(self) -> None:
        async with ClientWorld(has_watches=False) as world:
            await world.known()
            world.create_topic("u", (3,))
            await world.until(lambda: "u" in world.view.topics)

    async def test_a_deletion_waits_for_brokers_that_are_down(self, world: ClientWorld) -> None:
        world.admin.multi([Delete(paths.broker_id(2))])
        world.admin.multi([Create(paths.delete_topic("t"))])
        await world.until(lambda: world.view.topics["t"].deletion_waits_for == (2,))
        world.admin.multi([Delete(paths.delete_topic("t"))])  # deletion is disabled there
        await world.until(lambda: not world.view.topics["t"].is_being_deleted)
        assert world.view.topics["t"].deletion_waits_for == ()

    async def test_partitions_without_a_state_or_a_leader_are_not_online(
        self, world: ClientWorld
    ) -> None:
        world.create_topic("u", (9,))
        world.admin.multi([Delete(paths.partition_state(TopicPartition("t", 1)))])
        await world.until(lambda: "u" in world.view.topics)
        await world.until(lambda: world.view.topics["t"].partitions[1].leader == -1)
        assert world.view.topics["u"].partitions[0].state == PartitionHealth.OFFLINE
        assert world.view.topics["t"].partitions[1].state == PartitionHealth.NEW

    async def test_nothing_is_known_of_a_cluster_without_a_controller(self) -> None:
        async with ClientWorld(has_controller=False) as world:
            await world.until(lambda: world.loop.steering.refusal)
            assert "never had a controller" in str(world.loop.steering.refusal)
            assert not world.view.may_act
            outcome = only(await world.submit(DeleteTopic("t")))
            assert isinstance(outcome, Rejected)
            assert outcome.reason is Reason.NOT_CONTROLLER
            world.elect(2, epoch=1)
            await world.known()
            assert world.loop.steering.refusal is None

    async def test_a_migration_to_kraft_is_left_alone(self, world: ClientWorld) -> None:
        content = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'
        world.admin.multi([SetData(paths.CONTROLLER, content)])
        await world.until(lambda: not world.view.may_act)
        assert "KRaft" in str(world.loop.steering.refusal)
        assert not world.connections.channels.open

    async def test_what_zookeeper_refuses_is_shown_and_tried_again(
        self, world: ClientWorld
    ) -> None:
        def refuse() -> None:
            raise UnexpectedZooKeeperError("NOAUTH", paths.CONTROLLER)

        problems: list[str | None] = []
        world.loop.publisher.subscribe(lambda _: problems.append(world.loop.problem))
        world.connections.zookeeper.after_reading = (paths.CONTROLLER, refuse)
        world.elect(2, epoch=8)
        await world.until(lambda: world.view.is_complete and world.view.controller_epoch == 8)
        assert any("ZooKeeper answered NOAUTH for /controller;" in str(each) for each in problems)
        assert world.loop.problem is None

    async def test_a_topic_that_may_be_read_again_is_read(self) -> None:
        """No watch reports that a right was given."""
        async with ClientWorld(settle_interval_s=0.1) as world:
            await world.known()
            world.connections.zookeeper.closed = paths.topic("u")
            world.create_topic("u", (3,))
            await world.until(lambda: "u" in world.view.unreadable_topics)
            world.connections.zookeeper.closed = None
            await world.until(lambda: "u" in world.view.topics)
            assert not world.view.unreadable_topics

    async def test_a_change_that_no_watch_has_reported_is_found(self) -> None:
        """ZooKeeper reports nothing to who may not read a node at that moment."""
        async with ClientWorld(self_check_interval_s=0.1) as world:
            await world.known()
            client = world.connections.client
            client.remove_watches(WATCHED)
            world.create_topic("u", (3,))
            client.watch_below(WATCHED)
            await world.until(lambda: "u" in world.view.topics)
            assert not world.loop.problem

    async def test_a_lost_session_makes_everything_unknown_until_it_is_back(
        self, world: ClientWorld
    ) -> None:
        world.connections.client.disconnect()
        world.connections.is_session_fenced = True
        await world.until(lambda: not world.view.may_act)
        world.create_topic("u", (3,))
        world.connections.is_session_fenced = False
        world.connections.client.reconnect()
        await world.until(lambda: world.view.is_complete and "u" in world.view.topics)


class TestTopics:
    async def test_topics_are_created_grown_configured_and_deleted_by_znodes(
        self, world: ClientWorld
    ) -> None:
        created = CreateTopic("u", 2, 2, config={"retention.ms": "1000"})
        assert await world.submit(created) == (Accepted(),)
        await world.until(lambda: "u" in world.view.topics)
        assert world.config(paths.topic_config("u")) == {"retention.ms": "1000"}
        assert await world.submit(CreatePartitions("u", 3)) == (Accepted(),)
        await world.until(lambda: len(world.view.topics["u"].partitions) == 3)
        altered = AlterTopicConfig("u", {"retention.ms": "2000"})
        assert await world.submit(altered) == (Accepted(),)
        assert world.config(paths.topic_config("u")) == {"retention.ms": "2000"}
        assert len(world.server.children(paths.CONFIG_CHANGES)) == 1
        read = await world.submit(DescribeTopicConfigs(("u",)))
        assert read == (Accepted({"u": {"retention.ms": "2000"}}),)
        world.see_topic("u")
        assert await world.submit(DeleteTopic("u")) == (Accepted(),)
        await world.until(lambda: world.view.topics["u"].is_being_deleted)
        assert world.controller.asked == []

    async def test_a_topic_is_deleted_once_the_controller_has_seen_all_its_partitions(
        self, world: ClientWorld
    ) -> None:
        assert await world.submit(CreateTopic("u", 2, 2)) == (Accepted(),)
        await world.until(lambda: "u" in world.view.topics)
        outcomes = await world.submit(DeleteTopic("u"), DeleteTopic("t"))
        assert isinstance(outcomes[0], Rejected)
        assert outcomes[0].reason is Reason.BROKERS_UNAVAILABLE
        assert "never had a leader" in outcomes[0].message
        assert outcomes[1] == Accepted()
        assert world.server.children(paths.DELETE_TOPICS) == ("t",)
        world.see_topic("u")
        assert await world.submit(DeleteTopic("u")) == (Accepted(),)

    async def test_a_topic_that_a_tool_moves_does_not_grow(self, world: ClientWorld) -> None:
        """Before 2.4 the topic itself does not show that."""
        world.create_topic("u", (3,))
        await world.until(lambda: "u" in world.view.topics)
        content = encode_reassign_partitions({T0: (3, 2)})
        world.admin.multi([Create(paths.REASSIGN_PARTITIONS, content)])
        outcomes = await world.submit(CreatePartitions("t", 3), CreatePartitions("u", 2))
        assert isinstance(outcomes[0], Rejected)
        assert outcomes[0].reason is Reason.REASSIGNMENT_IN_PROGRESS
        assert outcomes[1] == Accepted()
        world.admin.multi([SetData(paths.REASSIGN_PARTITIONS, b"what is this")])
        assert await world.submit(CreatePartitions("t", 3)) == (Accepted(),)

    async def test_moves_that_may_not_be_read_keep_topics_from_growing_and_nothing_else(
        self, world: ClientWorld
    ) -> None:
        problems: list[str | None] = []
        world.loop.publisher.subscribe(lambda _: problems.append(world.loop.problem))

        def refuse() -> None:
            raise UnexpectedZooKeeperError("NOAUTH", paths.REASSIGN_PARTITIONS)

        world.connections.zookeeper.after_reading = (paths.REASSIGN_PARTITIONS, refuse)
        grown, created = await world.submit(CreatePartitions("t", 3), CreateTopic("u", 1, 1))
        assert isinstance(grown, Rejected)
        assert grown.reason is Reason.ZOOKEEPER_REFUSED
        assert "NOAUTH for /admin/reassign_partitions" in grown.message
        assert created == Accepted()
        assert not any(problems)

    async def test_what_was_decided_under_another_controller_is_not_written(
        self, world: ClientWorld
    ) -> None:
        world.connections.zookeeper.after_reading = (
            paths.topic_config("u"),
            lambda: world.elect(2, epoch=8),
        )
        outcome = only(await world.submit(CreateTopic("u", 1, 1)))
        assert isinstance(outcome, Rejected)
        assert outcome.reason is Reason.NOT_CONTROLLER
        assert world.server.get(paths.topic("u")) is None
        await world.until(lambda: world.view.controller_epoch == 8)
        assert await world.submit(CreateTopic("u", 1, 1)) == (Accepted(),)


class TestMoves:
    async def test_the_controller_is_asked_and_the_view_shows_the_move(
        self, world: ClientWorld
    ) -> None:
        outcome = only(await world.submit(AlterPartitionReassignments({T0: (3, 2)})))
        assert outcome == Accepted({T0: PartitionResult()})
        assert world.controller.asked == [(1, {T0: (3, 2)})]
        await world.until(lambda: world.view.topics["t"].partitions[0].adding_replicas == (3,))
        outcome = only(await world.submit(AlterPartitionReassignments({T0: None})))
        assert outcome == Accepted({T0: PartitionResult()})
        await world.until(lambda: not world.view.topics["t"].partitions[0].is_being_reassigned)

    async def test_what_the_controller_refuses_is_the_result(self, world: ClientWorld) -> None:
        world.register(99)
        await world.until(lambda: 99 in world.view.brokers)
        command = AlterPartitionReassignments({T0: (99, 2)}, throttle=1000)
        outcome = only(await world.submit(command))
        refusal = PartitionResult(INVALID_REPLICA_ASSIGNMENT, "no such broker")
        assert outcome == Accepted({T0: refusal})
        await world.until(lambda: THROTTLED not in world.config(paths.topic_config("t")))

    async def test_the_replicas_of_a_topic_change_through_the_controller(
        self, world: ClientWorld
    ) -> None:
        outcome = only(await world.submit(ReassignTopic("t", {0: (1, 2, 3), 1: (2, 1, 3)})))
        assert outcome == Accepted()
        await world.until(lambda: world.view.topics["t"].partitions[1].adding_replicas == (3,))
        outcome = only(await world.submit(ReassignTopic("t", {0: (1, 2)})))
        assert isinstance(outcome, Rejected)
        assert outcome.reason is Reason.REASSIGNMENT_IN_PROGRESS

    async def test_leaders_are_elected_by_the_controller(self, world: ClientWorld) -> None:
        outcome = only(await world.submit(ElectLeaders(ElectionType.PREFERRED, (T0,))))
        assert outcome == Accepted({T0: PartitionResult()})
        assert world.controller.asked == [(1, (0, (T0,)))]

    @pytest.mark.parametrize(
        ("failure", "reason", "text"),
        [
            (BrokerTooOldError("no API 45"), Reason.CONTROLLER_TOO_OLD, "Kafka 2.4"),
            (BrokerNotControllerError("41"), Reason.NOT_CONTROLLER, "not any more"),
            (BrokerRefusedError("no right"), Reason.CONTROLLER_REFUSED, "no right"),
            (BrokerQuestionError("no answer"), Reason.BROKERS_UNAVAILABLE, "no answer"),
            (BrokerSilentError("no route"), Reason.BROKERS_UNAVAILABLE, "no route"),
        ],
    )
    async def test_without_an_answer_the_reason_says_why(
        self, world: ClientWorld, failure: Exception, reason: Reason, text: str
    ) -> None:
        world.controller.failure = failure
        outcome = only(await world.submit(AlterPartitionReassignments({T0: (3, 2)})))
        assert isinstance(outcome, Rejected)
        assert outcome.reason is reason
        assert text in outcome.message

    async def test_a_controller_that_is_not_reached_is_tried_once_for_all_commands(
        self, world: ClientWorld
    ) -> None:
        """Each attempt takes seconds, for which nothing else is done or seen."""
        moves = [AlterPartitionReassignments({T0: (3, 2)}, throttle=1000) for _ in range(3)]
        world.controller.failure = BrokerSilentError("no route")
        *refused, created = await world.submit(*moves, ReassignTopic("t", {}), CreateTopic("u", 1))
        reasons = [each.reason for each in refused if isinstance(each, Rejected)]
        assert reasons == 4 * [Reason.BROKERS_UNAVAILABLE]
        assert created == Accepted()
        assert len(world.controller.asked) == 1
        world.controller.failure = None
        assert isinstance(only(await world.submit(moves[0])), Accepted)

    async def test_the_end_of_a_controller_ends_what_it_is_asked(self, world: ClientWorld) -> None:
        """One that is frozen would be waited for, though another one is elected meanwhile."""
        world.controller.is_silent = True
        asked = asyncio.create_task(world.submit(AlterPartitionReassignments({T0: (3, 2)})))
        await world.until(lambda: world.controller.asked)
        world.elect(2, epoch=8)
        outcome = only(await asked)
        assert isinstance(outcome, Rejected)
        assert outcome.reason is Reason.BROKERS_UNAVAILABLE
        world.controller.is_silent = False
        await world.until(lambda: world.view.controller_id == 2)
        await world.submit(AlterPartitionReassignments({T0: (3, 2)}))
        assert [broker_id for broker_id, _ in world.controller.asked] == [1, 2]

    async def test_nobody_is_asked_while_nobody_is_the_controller(self, world: ClientWorld) -> None:
        world.admin.multi([Delete(paths.CONTROLLER)])
        await world.until(lambda: world.view.controller_id == -1)
        outcome = only(await world.submit(AlterPartitionReassignments({T0: (3, 2)})))
        assert isinstance(outcome, Rejected)
        assert outcome.reason is Reason.BROKERS_UNAVAILABLE
        assert await world.submit(CreateTopic("u", 1, 1)) == (Accepted(),)


class TestThrottles:
    async def test_they_are_set_before_a_move_and_removed_after_it(
        self, world: ClientWorld
    ) -> None:
        world.loop.set_serving(True)
        await world.submit(AlterPartitionReassignments({T0: (3, 2)}, throttle=1000))
        assert world.config(paths.topic_config("t"))[THROTTLED] == "0:2,0:1"
        assert world.config(paths.broker_config(1))[RATE] == "1000"
        await world.until(lambda: world.view.topics["t"].partitions[0].throttle == 1000)
        world.arrive("t", 0)
        await world.until(lambda: THROTTLED not in world.config(paths.topic_config("t")))
        await world.until(lambda: RATE not in world.config(paths.broker_config(1)))
        await world.until(lambda: not world.server.children(THROTTLED_TOPICS))
        assert not world.server.children(THROTTLED_BROKERS)

    async def test_the_controller_is_not_asked_for_another_rate(self, world: ClientWorld) -> None:
        """It would give the partition a new leader epoch each time."""
        world.loop.set_serving(True)
        await world.submit(AlterPartitionReassignments({T0: (3, 2)}, throttle=1000))
        await world.until(lambda: world.view.topics["t"].partitions[0].is_being_reassigned)
        asked = len(world.controller.asked)
        outcome = only(await world.submit(AlterPartitionReassignments({T0: (3, 2)}, throttle=2000)))
        assert outcome == Accepted({T0: PartitionResult()})
        assert world.config(paths.broker_config(1))[RATE] == "2000"
        assert len(world.controller.asked) == asked
        await world.submit(AlterPartitionReassignments({T0: (2, 3)}, throttle=2000))
        assert len(world.controller.asked) == asked + 1, "the other order is another target"

    async def test_who_begins_to_serve_removes_what_another_left(self, world: ClientWorld) -> None:
        world.loop.set_serving(True)
        await world.submit(AlterPartitionReassignments({T0: (3, 2)}, throttle=1000))
        await world.until(lambda: world.view.topics["t"].partitions[0].is_being_reassigned)
        world.loop.set_serving(False)
        await world.submit(DescribeTopicConfigs(()))
        world.arrive("t", 0)
        await world.until(lambda: not world.view.topics["t"].partitions[0].is_being_reassigned)
        assert THROTTLED in world.config(paths.topic_config("t"))
        world.loop.set_serving(True)
        await world.until(lambda: THROTTLED not in world.config(paths.topic_config("t")))
