"""Whether topics may be deleted: the setting, what brokers have said, and what they have not."""

from __future__ import annotations

import pytest

from regent.admin.commands import (
    TRANSIENT_REASONS,
    Accepted,
    DeleteTopic,
    Outcome,
    Reason,
    Rejected,
)
from regent.controller import effects
from regent.controller.active_controller import ActiveController
from regent.controller.events import BrokerFactsLearned
from regent.controller.topics.topic_changes import process_topic_deletion
from regent.controller.topics.topic_commands import process_commands
from regent.model.topic_config import BrokerFacts
from regent.zk_data import paths
from tests.unit.controller.driving import once
from tests.unit.controller.world import T0, World, active_of, stop_replica

FORBIDDING = {"delete.topic.enable": "false"}


def cluster(*broker_ids: int, **settings: object) -> World:
    """Brokers, and topic t with replicas on 1 and 2."""
    world = World(**settings)
    world.start_broker(*broker_ids)
    world.create_led_topic("t", {0: (1, 2)}, leader_epoch=7)
    return world


def say(active: ActiveController, broker_id: int, settings: dict[str, str] | None) -> None:
    """A broker says something else than before, or does not tell its settings (None)."""
    facts = BrokerFacts(broker_id=broker_id, settings=settings, has_answered=True)
    active.context.broker_facts.learn(active.context.cluster.brokers[broker_id].epoch, facts)


def delete(world: World, active: ActiveController) -> Outcome:
    (outcome,) = world.run(process_commands(active, [DeleteTopic("t")]))
    return outcome


def refusal(world: World, active: ActiveController) -> Rejected:
    """The refusal to delete the topic, which must not have written anything."""
    tree = world.zookeeper.dump()
    outcome = delete(world, active)
    assert isinstance(outcome, Rejected)
    assert world.zookeeper.dump() == tree
    return outcome


def deleted_replicas(world: World) -> list[tuple[int, str]]:
    return [(s[0], str(s[1])) for s in stop_replica(world.driver.sent) if s[3]]


class TestAtAFailover:
    def test_disabled_deletion_removes_the_markers_and_no_topic(self) -> None:
        world = cluster(1, 2, delete_topic_enable=False)
        world.mark_for_deletion("t", "nobody")
        context = world.fail_over().context
        assert world.zookeeper.children(paths.DELETE_TOPICS) == ()
        assert not context.is_topic_queued_for_deletion("t")

    def test_a_broker_that_forbids_deletion_has_the_markers_removed_and_no_topic(self) -> None:
        """Its answer has come by the end of the wait for brokers, and the event of it has not."""
        world = cluster(1, 2)
        world.set_state(T0, -1, (2,), leader_epoch=8)  # as a deletion that has begun leaves it
        world.mark_for_deletion("t", "nobody")
        world.driver.broker_settings = {1: None, 2: None}
        world.driver.before = once(
            effects.InterBrokerProtocol,
            lambda: world.driver.broker_settings.update({2: FORBIDDING}),
        )
        context = world.fail_over().context
        assert world.zookeeper.children(paths.DELETE_TOPICS) == ()
        assert not context.is_topic_queued_for_deletion("t")
        assert deleted_replicas(world) == []
        assert world.state_of(T0).leader == 2

    @pytest.mark.parametrize("live", [(1, 2), ()], ids=["silent brokers", "no broker"])
    def test_no_deletion_begins_before_a_broker_has_said_whether_it_may(
        self, live: tuple[int, ...]
    ) -> None:
        world = cluster(*live)
        world.mark_for_deletion("t", "nobody")
        world.driver.broker_settings = {1: None, 2: None}
        context = world.fail_over().context
        assert world.zookeeper.children(paths.DELETE_TOPICS) == ("t",)
        assert not context.is_topic_queued_for_deletion("t")
        assert deleted_replicas(world) == []
        assert world.log.warnings("Deletion of topics waits")

    @pytest.mark.parametrize(
        ("settings", "left"),
        [(FORBIDDING, ()), ({}, ("t",))],
        ids=["forbidden", "allowed"],
    )
    def test_the_first_answer_decides_about_the_markers_that_wait(
        self, settings: dict[str, str], left: tuple[str, ...]
    ) -> None:
        world = cluster(1, 2)
        world.mark_for_deletion("t")
        world.driver.broker_settings = {1: None, 2: None}
        controller = world.active_controller()
        active = active_of(controller)
        facts = BrokerFacts(broker_id=1, settings=settings, has_answered=True)
        epoch = active.context.cluster.brokers[1].epoch
        world.process(controller, BrokerFactsLearned(epoch, facts))
        assert world.zookeeper.children(paths.DELETE_TOPICS) == left
        assert tuple(active.context.topics_with_deletion_started) == left
        assert bool(deleted_replicas(world)) == bool(left)


class TestWithinATerm:
    def test_a_broker_that_forbids_deletions_ends_none_that_has_begun(self) -> None:
        world = cluster(1, 2)
        world.create_topic("begun", {0: (1, 2)})
        active = world.fail_over()
        world.mark_for_deletion("begun", seen_by=active)
        say(active, 1, FORBIDDING)
        world.mark_for_deletion("t", "nobody", seen_by=active)
        assert world.zookeeper.children(paths.DELETE_TOPICS) == ("begun",)
        assert list(active.context.topics_to_be_deleted) == ["begun"]

    def test_a_restart_of_the_only_broker_leaves_no_moment_in_which_it_forbids_nothing(
        self,
    ) -> None:
        world = cluster(1)
        world.driver.broker_settings = {1: FORBIDDING}
        active = world.fail_over()
        world.mark_for_deletion("t")
        world.stop_broker(1, seen_by=active)
        world.run(process_topic_deletion(active))
        world.driver.broker_settings = {1: None}
        world.start_broker(1, seen_by=active)
        world.run(process_topic_deletion(active))
        assert world.zookeeper.children(paths.DELETE_TOPICS) == ("t",)
        assert not active.context.is_topic_queued_for_deletion("t")
        world.driver.broker_settings = {1: FORBIDDING}
        world.run(process_topic_deletion(active))
        assert world.zookeeper.children(paths.DELETE_TOPICS) == ()
        assert world.exists(paths.topic("t"))


class TestCommands:
    def test_disabled_deletion(self) -> None:
        world = cluster(1, 2, delete_topic_enable=False)
        refused = refusal(world, world.fail_over())
        assert refused.reason is Reason.TOPIC_DELETION_DISABLED
        assert "delete.topic.enable" in refused.message

    def test_one_broker_that_forbids_deletions_is_enough_while_it_is_live(self) -> None:
        world = cluster(1, 2)
        active = world.fail_over()
        say(active, 2, FORBIDDING)
        refused = refusal(world, active)
        assert refused.reason is Reason.TOPIC_DELETION_DISABLED
        assert "brokers [2] run with delete.topic.enable=false" in refused.message
        say(active, 2, {"delete.topic.enable": "true"})
        assert delete(world, active) == Accepted()

    def test_it_is_tried_again_while_no_broker_has_said_whether_it_allows_deletions(self) -> None:
        world = cluster(1, 2)
        world.driver.broker_settings = {1: None, 2: None}
        active = world.fail_over()
        refused = refusal(world, active)
        assert refused.reason is Reason.BROKER_SETTINGS_UNKNOWN
        assert refused.reason in TRANSIENT_REASONS
        world.driver.broker_settings = {1: {}, 2: None}
        assert delete(world, active) == Accepted()

    def test_brokers_that_refuse_to_tell_their_settings_allow_nothing(self) -> None:
        """As to a user without DescribeConfigs: they may well forbid it."""
        world = cluster(1, 2)
        active = world.fail_over()
        say(active, 1, None)
        say(active, 2, None)
        refused = refusal(world, active)
        assert refused.reason is Reason.BROKER_SETTINGS_UNKNOWN
        assert "brokers [1, 2] refuse to say" in refused.message
        assert "DescribeConfigs" in refused.message
        say(active, 2, {"delete.topic.enable": "true"})
        assert delete(world, active) == Accepted()
