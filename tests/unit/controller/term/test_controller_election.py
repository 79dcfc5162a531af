"""Winning, taking over, losing and giving up the controller."""

from __future__ import annotations

import pytest

from regent.controller import events as e
from regent.controller.state.context import ControllerContext
from regent.controller.term.controller_election import (
    NO_CONTROLLER,
    UNKNOWN_CONTROLLER,
    Holder,
    elect,
    watch_controller,
)
from regent.model.active_regent import ActiveRegent, ServedResources
from regent.model.errors import (
    MalformedZNodeError,
    OtherControllerError,
    UnsupportedClusterError,
    ZooKeeperUnavailableError,
)
from regent.simulation.zookeeper import InMemoryClient
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.controller import encode_controller
from regent.zk_data.operations import Create
from tests.unit.controller.driving import once, raising
from tests.unit.controller.world import CONTROLLER_ID, World

LOST = ZooKeeperUnavailableError("the connection broke")


def stand(world: World) -> ControllerContext | None:
    return world.run(elect(world.config, world.log))


def epoch(world: World) -> tuple[bytes, int]:
    node = world.node(paths.CONTROLLER_EPOCH)
    return node.data, node.version


class TestElection:
    def test_the_first_controller_of_a_cluster_has_epoch_one(self) -> None:
        world = World()
        context = stand(world)
        assert context is not None
        assert (context.term.controller_id, context.term.epoch) == (CONTROLLER_ID, 1)
        assert epoch(world) == (b"1", context.term.epoch_zk_version) == (b"1", 1)
        assert world.holder() == CONTROLLER_ID

    def test_a_holder_is_replaced_in_one_transaction(self) -> None:
        world = World()
        world.elect_rival()
        world.driver.performed.clear()
        context = stand(world)
        assert context is not None
        assert context.term.epoch == 2
        assert world.holder() == CONTROLLER_ID
        assert world.driver.transactions() == 1

    def test_without_a_readable_epoch_nothing_is_done(self) -> None:
        world = World()
        world.put(paths.CONTROLLER_EPOCH, b"one")
        with pytest.raises(MalformedZNodeError):
            stand(world)
        assert not world.exists(paths.CONTROLLER)

    def test_whoever_is_elected_meanwhile_stays(self) -> None:
        world = World()
        world.elect_rival(1)
        world.driver.before = once(zk_effects.Multi, lambda: world.elect_rival(2))
        assert stand(world) is None
        assert world.holder() == 2
        assert epoch(world)[0] == b"2"

    def test_an_epoch_node_that_does_not_stay_is_no_ground_to_stand_on(self) -> None:
        world = World()
        world.driver.after = once(zk_effects.Multi, lambda: world.delete(paths.CONTROLLER_EPOCH))
        assert stand(world) is None
        assert not world.exists(paths.CONTROLLER)

    def test_a_holder_that_resigns_meanwhile_leaves_it_to_the_next_attempt(self) -> None:
        world = World()
        world.elect_rival()
        world.driver.before = once(zk_effects.Multi, lambda: world.delete(paths.CONTROLLER))
        assert stand(world) is None
        assert not world.exists(paths.CONTROLLER)
        world.driver.before = lambda _: None
        assert stand(world) is not None


class TestLostAnswers:
    def test_a_transaction_that_took_place_is_found(self) -> None:
        world = World()
        world.put(paths.CONTROLLER_EPOCH, b"7")
        world.driver.after = once(zk_effects.Multi, raising(LOST))
        context = stand(world)
        assert context is not None
        assert (context.term.epoch, context.term.epoch_zk_version) == (8, 1)
        assert world.holder() == CONTROLLER_ID

    def test_a_transaction_that_did_not_take_place_is_lost(self) -> None:
        world = World()
        world.put(paths.CONTROLLER_EPOCH, b"7")
        world.driver.before = once(zk_effects.Multi, raising(LOST))
        assert stand(world) is None
        assert epoch(world)[0] == b"7"

    def test_a_repeated_transaction_whose_first_attempt_succeeded_is_won(self) -> None:
        """The client repeats what it has no answer to, and is told that the version is bad."""
        world = World()
        world.put(paths.CONTROLLER_EPOCH, b"7")

        def first_attempt(effect: zk_effects.Effect[object]) -> None:
            if isinstance(effect, zk_effects.Multi):
                world.driver.client.multi(effect.operations)

        world.driver.before = first_attempt
        context = stand(world)
        assert context is not None
        assert context.term.epoch == 8
        assert epoch(world) == (b"8", context.term.epoch_zk_version)

    def test_the_node_of_another_process_with_our_id_is_no_victory(self) -> None:
        """Both would be the controller, under one epoch that fences neither."""
        world = World()
        world.put(paths.CONTROLLER_EPOCH, b"7")
        world.driver.before = once(zk_effects.Multi, lambda: world.elect_rival(CONTROLLER_ID))
        assert stand(world) is None
        assert epoch(world)[0] == b"8"

    def test_when_the_look_fails_too_the_error_goes_on(self) -> None:
        world = World()
        world.put(paths.CONTROLLER_EPOCH, b"7")
        world.driver.before = once(zk_effects.ReadData, raising(LOST), skip=1)
        world.driver.after = once(zk_effects.Multi, raising(LOST))
        with pytest.raises(ZooKeeperUnavailableError):
            stand(world)


KRAFT = b'{"version":2,"brokerid":3000,"timestamp":"0","kraftControllerEpoch":4}'


class TestMigrationToKraft:
    @pytest.mark.parametrize("content", [b"", b"[]", b'{"version":1}', encode_controller(1, 0)])
    def test_a_persistent_node_that_kraft_has_not_written_is_replaced(self, content: bytes) -> None:
        world = World()
        world.put(paths.CONTROLLER_EPOCH, b"7")
        world.put(paths.CONTROLLER, content)
        assert stand(world) is not None
        assert world.holder() == CONTROLLER_ID

    def test_a_cluster_that_is_about_to_be_migrated_is_left_to_its_brokers(self) -> None:
        world = World()
        world.elect_rival(1)
        world.put(paths.MIGRATION, b"{}")
        with pytest.raises(UnsupportedClusterError, match=r"/migration.*Uninstall Regent"):
            stand(world)
        assert world.holder() == 1

    def test_a_controller_that_it_deposes_stays_away_until_it_is_reverted(self) -> None:
        world = World()
        world.start_broker(1)
        controller = world.active_controller()
        world.put(paths.MIGRATION, b"{}")
        world.put(paths.CONTROLLER_EPOCH, b"9")
        world.delete(paths.CONTROLLER)
        world.put(paths.CONTROLLER, KRAFT)
        world.deliver(controller)
        world.process(controller, world.driver.timers["reelect"].event)
        assert controller.active is None
        assert world.holder() == 3000
        assert "KRaft" in (controller.life.refusal or "")
        world.delete(paths.CONTROLLER)
        world.delete(paths.MIGRATION)
        world.process(controller, world.driver.timers["reelect"].event)
        assert world.holder() == CONTROLLER_ID
        assert controller.life.refusal is None


class TestAnotherRegentThatLeads:
    OTHER = 1_000_000_777

    def other(
        self, world: World, election_path: str | None = "/elsewhere", controller_id: int = OTHER
    ) -> InMemoryClient:
        """Another process becomes the controller, for as long as its session lives."""
        session = world.zookeeper.connect()
        world.put(paths.CONTROLLER_EPOCH, b"7")
        if world.exists(paths.CONTROLLER):
            world.delete(paths.CONTROLLER)
        content = encode_controller(controller_id, 0, election_path=election_path)
        session.multi([Create(paths.CONTROLLER, content, ephemeral=True)])
        return session

    def test_it_is_not_deposed_but_named(self) -> None:
        world = World()
        self.other(world)
        with pytest.raises(OtherControllerError, match=r"1000000777.*/elsewhere.*/regent/election"):
            stand(world)
        assert world.holder() == self.OTHER
        assert epoch(world)[0] == b"7"

    @pytest.mark.parametrize("election_path", [None, "/regent/election"])
    def test_a_broker_and_a_replica_of_ours_are_deposed(self, election_path: str | None) -> None:
        world = World()
        self.other(world, election_path)
        assert stand(world) is not None

    def test_what_we_write_says_which_resources_we_serve(self) -> None:
        served = ServedResources("kafka/regent", ("shop",))
        world = World(resources=served)
        stand(world)
        seen = world.run(watch_controller(world.log))
        assert seen.regent == ActiveRegent(CONTROLLER_ID, served)

    def test_the_reason_is_shown_until_its_end_and_logged_once(self) -> None:
        world = World()
        world.start_broker(1)
        session = self.other(world)
        controller = world.controller()
        world.process(controller, e.Startup(), e.Eligible())
        world.process(controller, world.driver.timers["reelect"].event)
        assert world.holder() == self.OTHER
        assert str(self.OTHER) in (controller.life.refusal or "")
        assert len(world.log.errors("Cluster left to the controller that it has")) == 1
        session.close()
        world.deliver(controller)
        assert world.holder() == CONTROLLER_ID
        assert controller.life.refusal is None

    def test_a_controller_that_was_deposed_does_not_fight(self) -> None:
        world = World()
        world.start_broker(1)
        controller = world.active_controller()
        self.other(world)
        world.deliver(controller)
        world.process(controller, world.driver.timers["reelect"].event)
        assert world.holder() == self.OTHER


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, NO_CONTROLLER),
        (b"?", UNKNOWN_CONTROLLER),
        (b'{"version":1,"brokerid":3}', 3),
        (b'{"version":2,"brokerid":3,"timestamp":"0","kraftControllerEpoch":-1}', 3),
    ],
)
def test_the_holder_is_known_and_every_change_of_it_will_be_told(
    data: bytes | None, expected: int
) -> None:
    world = World()
    if data is not None:
        world.put(paths.CONTROLLER, data)
    assert world.run(watch_controller(world.log)) == Holder(expected)
    world.elect_rival(9)
    assert world.driver.client.take_events()
    seen = world.run(watch_controller(world.log))
    assert seen == Holder(9, world.outsider.session_id)
    world.delete(paths.CONTROLLER)
    assert len(world.driver.client.take_events()) == 1
