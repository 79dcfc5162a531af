"""The controller's life: elections, resignations, and that everybody is answered."""

from __future__ import annotations

import pytest

from regent.admin.commands import (
    Accepted,
    AlterTopicConfig,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    Reason,
    Rejected,
)
from regent.controller import effects
from regent.controller import events as e
from regent.controller.commands import Command
from regent.controller.kafka_controller import KafkaController
from regent.model.active_regent import ActiveRegent, ServedResources
from regent.model.errors import (
    RegentError,
    SessionExpiredError,
    ZooKeeperUnavailableError,
)
from regent.model.partition import TopicPartition
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.controller import encode_controller
from regent.zk_data.effects import Effect
from tests.unit.controller.driving import once, raising
from tests.unit.controller.processes import (
    TIMER,
    denying,
    epoch,
    led_cluster,
)
from tests.unit.controller.world import CONTROLLER_ID, World, active_of


@pytest.fixture
def world() -> World:
    return led_cluster()


class TestBecomingTheController:
    def test_a_process_that_may_not_only_watches(self, world: World) -> None:
        world.elect_rival(1)
        controller = world.controller()
        world.process(controller, e.Startup())
        assert controller.active is None
        assert controller.life.controller_id_seen == 1
        assert world.holder() == 1
        world.delete(paths.CONTROLLER)
        assert world.deliver(controller) == [e.ControllerChange()]
        assert controller.life.controller_id_seen == -1
        assert controller.active is None

    def test_another_regent_is_known_with_what_it_serves_until_it_ends(self, world: World) -> None:
        controller = world.controller()
        world.process(controller, e.Startup())
        served = ServedResources("kafka/regent", ("shop",))
        content = encode_controller(1, 0, election_path="/regent/election", resources=served)
        world.put(paths.CONTROLLER, content)
        world.deliver(controller)
        assert controller.regent_seen == ActiveRegent(1, served)
        world.process(controller, e.Expire())
        assert controller.regent_seen == ActiveRegent(1, served), "the last that is known"
        world.delete(paths.CONTROLLER)
        world.process(controller, e.SessionEstablished())
        assert controller.regent_seen is None

    def test_a_lost_race_is_run_again_after_a_wait(self, world: World) -> None:
        controller = world.controller()
        world.driver.before = once(zk_effects.Multi, lambda: world.elect_rival(2), skip=1)
        world.process(controller, e.Startup(), e.Eligible())
        lost = controller.active
        assert lost is None
        assert world.driver.timers[TIMER].after_ms == 1_000
        world.process(controller, world.driver.timers[TIMER].event)
        assert controller.active is not None
        assert TIMER not in world.driver.timers


class TestLosingIt:
    def test_a_vanished_node_leads_to_a_new_election_at_once(self, world: World) -> None:
        controller = world.active_controller()
        world.delete(paths.CONTROLLER)
        world.deliver(controller)
        assert epoch(controller) == 2
        assert world.driver.resignations == 1

    def test_the_end_of_the_session_makes_it_resign_without_writing(self, world: World) -> None:
        controller = world.active_controller()
        world.zookeeper.expire(world.driver.client.session_id)
        world.driver.performed.clear()
        world.process(controller, e.Expire())
        assert controller.active is None
        assert [type(x) for x in world.driver.performed] == [effects.Resigned]

    @pytest.mark.parametrize(
        "error", [SessionExpiredError("gone"), ZooKeeperUnavailableError("no server")]
    )
    def test_a_lost_zookeeper_makes_it_resign_and_try_again_later(
        self, world: World, error: RegentError
    ) -> None:
        controller = world.active_controller()
        world.driver.before = once(zk_effects.ReadChildren, raising(error))
        world.process(controller, e.TopicChange())
        assert controller.active is None
        assert world.driver.timers[TIMER].after_ms == 1_000
        world.driver.before = lambda _: None
        world.process(controller, e.Reelect())
        assert epoch(controller) == 2

    def test_it_resigns_when_another_session_leads_under_the_same_id(self, world: World) -> None:
        controller = world.active_controller()
        world.elect_rival(CONTROLLER_ID)
        assert e.ControllerChange() in world.deliver(controller)
        assert controller.active is None
        assert world.driver.resignations == 1
        assert world.driver.timers[TIMER].event == e.Reelect()


class TestCommands:
    COMMANDS = (CreateTopic("new", 1, 1), DescribeTopicConfigs(("t",)))

    def ask(self, world: World, controller: KafkaController) -> list[object]:
        world.process(controller, e.CommandsReceived(self.COMMANDS, "token"))
        (answer,) = world.driver.answers
        assert answer.reply_to == "token"
        return list(answer.answer)

    def refusals(self, outcomes: list[object]) -> list[Reason]:
        return [o.reason for o in outcomes if isinstance(o, Rejected)]

    @pytest.mark.parametrize("kind", [zk_effects.ReadData, zk_effects.Multi])
    def test_a_znode_that_may_not_be_touched_is_the_answer_to_that_command_alone(
        self, world: World, kind: type[Effect[object]]
    ) -> None:
        """For creating many topics together as for everything else."""
        controller = world.active_controller()
        world.driver.before = denying(paths.topic_config("denied"), kind)
        world.create_topic("denied", {0: (1,)})
        world.deliver(controller)
        commands = (
            CreateTopic("a", 1, 1),
            CreateTopic("denied-too", 1, 1),
            CreateTopic("b", 1, 1),
            AlterTopicConfig("t", set={"retention.ms": "1"}),
            AlterTopicConfig("denied", set={"retention.ms": "1"}),
            DeleteTopic("t"),
        )
        world.process(controller, e.CommandsReceived(commands, "token"))
        assert controller.active is not None
        (answer,) = world.driver.answers
        denied = [i for i, o in enumerate(answer.answer) if isinstance(o, Rejected)]
        assert denied == [1, 4]
        for index in denied:
            assert answer.answer[index].reason is Reason.ZOOKEEPER_REFUSED
            assert "NOAUTH for /config/topics/denied" in answer.answer[index].message
        assert world.topic("a").assignments
        assert world.topic("b").assignments
        assert not world.exists(paths.topic("denied-too"))
        assert world.exists(paths.delete_topic("t"))

    @pytest.mark.parametrize(
        ("parent", "command"),
        [
            (paths.DELETE_TOPICS, DeleteTopic("t")),
            (paths.TOPIC_CONFIGS, CreateTopic("new", 1, 1)),
            (paths.CONFIG_CHANGES, AlterTopicConfig("t", set={"retention.ms": "1"})),
        ],
    )
    def test_a_missing_parent_is_named_and_not_taken_for_the_change_of_somebody_else(
        self, world: World, parent: str, command: Command
    ) -> None:
        controller = world.active_controller()
        world.delete(parent)
        world.process(controller, e.CommandsReceived((command,), "token"))
        (answer,) = world.driver.answers
        assert self.refusals(list(answer.answer)) == [Reason.ZOOKEEPER_REFUSED]
        assert f"NONODE for {parent}/" in answer.answer[0].message
        assert controller.active is not None

    def test_a_defect_at_one_of_several_topics_leaves_all_else_alone(self, world: World) -> None:
        controller = world.active_controller()
        commands = (CreateTopic("a", 1, 1), CreateTopic("b", "many", 1))  # type: ignore[arg-type]
        world.process(controller, e.CommandsReceived(commands, "token"))
        (answer,) = world.driver.answers
        assert answer.answer[0] == Accepted()
        assert self.refusals(list(answer.answer)) == [Reason.INTERNAL_ERROR]
        assert controller.active is not None
        assert len(world.log.errors("Command failed")) == 1


def test_events_that_only_concern_a_controller_are_dropped_by_others(world: World) -> None:
    controller = world.controller()
    world.process(controller, e.Startup())
    world.driver.performed.clear()
    world.process(controller, e.BrokerChange(), e.TopicChange(), e.ConfigChange())
    assert world.driver.performed == []


def test_every_event_finds_its_process(world: World) -> None:
    """Through the watches of a real change each."""
    controller = world.active_controller()
    world.start_broker(1, port=9999)
    world.start_broker(3)
    world.create_topic("t", {0: (1, 2), 1: (3, 1)})
    world.create_topic("u", {0: (3,)})
    world.put(paths.isr_change_notification("isr_change_0000000001"), b"{}")
    world.put(paths.log_dir_event_notification("log_dir_event_0000000001"), b"{}")
    world.notify_config_change("topics/t")
    assert [type(event) for event in world.deliver(controller)][:7] == [
        e.BrokerModifications,
        e.BrokerChange,
        e.PartitionModifications,
        e.TopicChange,
        e.IsrChangeNotification,
        e.LogDirEventNotification,
        e.ConfigChange,
    ]
    world.mark_for_deletion("u")
    assert {type(event) for event in world.deliver(controller)} == {e.TopicDeletion}
    world.process(controller, e.InterBrokerProtocolChanged(epoch(controller), (3, 8)))
    context = active_of(controller).context
    assert context.cluster.leadership[TopicPartition("t", 1)].leader == 3
    assert context.cluster.brokers[1].endpoints[0].port == 9999
    assert list(context.topics_with_deletion_started) == ["u"]
    assert context.cluster.inter_broker_protocol == (3, 8)
