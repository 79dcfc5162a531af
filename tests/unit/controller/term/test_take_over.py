"""A replica that is not elected takes over from one that is suspected, or that leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from regent.controller import events as e
from regent.model.errors import UnexpectedZooKeeperError, ZooKeeperUnavailableError
from regent.simulation.zookeeper import InMemoryClient
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from regent.zk_data.brokers import encode_controller_registration
from regent.zk_data.controller import encode_controller
from regent.zk_data.operations import Create, Written
from regent.zk_data.replicas import presence_name, presence_node, presence_path
from tests.unit.controller.driving import once, raising
from tests.unit.controller.world import CONTROLLER_ID, World, active_of, make_broker

ELECTION = "/regent/election"
OTHER = 1_000_000_777
LOST = ZooKeeperUnavailableError("the connection broke")


class Standby:
    """A cluster that another replica leads, and this process, which waits in the queue."""

    def __init__(self) -> None:
        self.world = World()
        self.world.start_broker(1, 2)
        self.world.put(ELECTION)
        self.world.put(presence_path(ELECTION))
        self.other = self.queued()
        self.lead(self.other)
        self.place = queue_up(self.world.driver.client)
        self.controller = self.world.controller()
        self.world.process(self.controller, e.Startup())
        self.world.driver.performed.clear()

    def queued(self) -> InMemoryClient:
        """Another replica with a place in the queue."""
        client = self.world.zookeeper.connect()
        queue_up(client)
        client.multi([Create(presence_node(ELECTION, client.session_id), ephemeral=True)])
        return client

    def lead(self, client: InMemoryClient, *, election_path: str | None = ELECTION) -> None:
        """Somebody holds ``/controller``."""
        if self.world.exists(paths.CONTROLLER):
            self.world.delete(paths.CONTROLLER)
        self.world.put(paths.CONTROLLER_EPOCH, b"7")
        content = encode_controller(OTHER, 0, election_path=election_path)
        client.multi([Create(paths.CONTROLLER, content, ephemeral=True)])

    def absent(self, *clients: InMemoryClient, **given: Any) -> None:
        """Others are found to be absent; some of them are certainly dead."""
        self.process(self.event(*clients, **given))

    def event(
        self,
        *clients: InMemoryClient,
        is_named: bool = False,
        unheard: Sequence[InMemoryClient] = (),
        dead: Sequence[InMemoryClient] = (),
    ) -> e.ReplicasAbsent:
        absent = tuple(
            e.AbsentReplica(client.session_id, "dead", client in dead)
            for client in dict.fromkeys((*clients, *dead))
        )
        silent = tuple(e.AbsentReplica(client.session_id, "silent") for client in unheard)
        return e.ReplicasAbsent(self.session_id, absent, is_named, silent)

    def queue_up_behind(self, *, count: int = 1) -> list[InMemoryClient]:
        """Others get places between the one that leads and this one."""
        self.world.delete(self.place)
        others = [self.queued() for _ in range(count)]
        self.place = queue_up(self.world.driver.client)
        return others

    def process(self, event: e.ControllerEvent) -> None:
        self.world.process(self.controller, event)

    def queue(self) -> list[int]:
        """Sessions in the order of their places."""
        nodes = [
            self.world.zookeeper.get(f"{ELECTION}/{name}")
            for name in self.world.zookeeper.children(ELECTION)
        ]
        return [node.ephemeral_owner for node in nodes if node is not None]

    @property
    def session_id(self) -> int:
        return self.world.driver.client.session_id


def queue_up(client: InMemoryClient) -> str:
    (created,) = client.multi([Create(f"{ELECTION}/x-__lock__", ephemeral=True, sequential=True)])
    assert isinstance(created, Written)
    return created.path


@pytest.fixture
def standby() -> Standby:
    return Standby()


def test_one_transaction_fences_the_other_and_moves_the_node_and_the_queue(
    standby: Standby,
) -> None:
    standby.absent(standby.other)
    assert active_of(standby.controller).context.term.epoch == 8
    assert standby.world.holder() == CONTROLLER_ID
    assert standby.queue() == [standby.session_id]
    (election,) = [x for x in standby.world.driver.performed if isinstance(x, zk_effects.Multi)]
    assert len(election.operations) == 5
    (reported,) = [r for r in standby.world.log.records if r.message.startswith("Taken over")]
    assert reported.fields == {"epoch": 8, "reason": "dead"}


def test_the_registration_of_the_other_goes_with_its_node(standby: Standby) -> None:
    """A broker's controller that follows before the session ends must not see it."""
    path = paths.broker_id(OTHER)
    registration = encode_controller_registration(make_broker(OTHER), 0)
    standby.other.multi([Create(path, registration, ephemeral=True)])
    standby.absent(standby.other)
    assert standby.controller.active is not None
    assert not standby.world.exists(path)


def test_a_broker_that_leads_is_left_alone(standby: Standby) -> None:
    standby.world.elect_rival(1)
    standby.absent(standby.other)
    assert standby.world.holder() == 1
    assert standby.controller.active is None


def test_a_standby_that_is_next_has_precedence() -> None:
    standby = Standby()
    world = standby.world
    world.delete(standby.place)
    between = standby.queued()
    queue_up(world.driver.client)
    standby.absent(standby.other)
    assert world.holder() == OTHER
    standby.absent(standby.other, between)
    assert world.holder() == CONTROLLER_ID
    assert standby.queue() == [standby.session_id]


def test_one_that_was_named_passes_others() -> None:
    standby = Standby()
    standby.world.delete(standby.place)
    standby.queued()
    queue_up(standby.world.driver.client)
    standby.absent(standby.other, is_named=True)
    assert standby.world.holder() == CONTROLLER_ID
    assert standby.queue() == [standby.session_id]


def test_without_a_place_in_the_queue_it_has_no_right(standby: Standby) -> None:
    standby.world.delete(standby.place)
    standby.absent(standby.other)
    assert standby.world.holder() == OTHER


def test_what_was_found_under_another_session_counts_no_more(standby: Standby) -> None:
    event = standby.event(standby.other)
    standby.process(e.ReplicasAbsent(standby.session_id + 100, event.absent))
    assert standby.world.holder() == OTHER


def test_its_own_place_that_is_lost_meanwhile_takes_the_right_away(standby: Standby) -> None:
    lost = once(zk_effects.Multi, lambda: standby.world.delete(standby.place))
    standby.world.driver.before = lost
    standby.absent(standby.other)
    assert standby.world.holder() == OTHER


@pytest.mark.parametrize("took_place", [True, False])
def test_a_lost_answer_is_resolved_by_reading_the_owner(took_place: bool) -> None:
    standby = Standby()
    driver = standby.world.driver
    if took_place:
        driver.after = once(zk_effects.Multi, raising(LOST))
    else:
        driver.before = once(zk_effects.Multi, raising(LOST))
    standby.absent(standby.other)
    assert standby.world.holder() == (CONTROLLER_ID if took_place else OTHER)
    assert (standby.controller.active is not None) is took_place
    assert len(standby.queue()) == (1 if took_place else 2)


class TestUnheard:
    """Replicas that do not answer, and were never heard: the former self of this one, for instance,
    which was killed, and whose session lives on."""

    def test_they_lose_their_places_in_the_same_transaction(self, standby: Standby) -> None:
        former, another = standby.queue_up_behind(count=2)
        standby.absent(standby.other, unheard=[former, another])
        assert standby.world.holder() == CONTROLLER_ID
        assert standby.queue() == [standby.session_id]
        (election,) = [x for x in standby.world.driver.performed if isinstance(x, zk_effects.Multi)]
        assert len(election.operations) == 7
        (reported,) = [r for r in standby.world.log.records if r.message.startswith("Taken over")]
        assert reported.fields == {"epoch": 8, "reason": "dead", "passed": "silent; silent"}

    def test_one_that_leads_is_not_deposed_for_the_sake_of_others(self, standby: Standby) -> None:
        (suspected,) = standby.queue_up_behind()
        standby.absent(suspected, unheard=[standby.other])
        assert standby.world.holder() == OTHER
        assert len(standby.queue()) == 3

    def test_one_that_has_a_place_and_was_not_found_is_waited_for(self, standby: Standby) -> None:
        """It is not registered: nobody can ask it."""
        former, _ = standby.queue_up_behind(count=2)
        standby.absent(standby.other, unheard=[former])
        assert standby.world.holder() == OTHER


class TestNewsThatIsOutOfDate:
    def test_one_that_answers_again_is_not_deposed(self, standby: Standby) -> None:
        standby.world.driver.answering = [standby.other.session_id]
        standby.absent(standby.other)
        assert standby.world.holder() == OTHER
        standby.world.driver.answering = []
        standby.absent(standby.other)
        assert standby.world.holder() == CONTROLLER_ID

    def test_one_that_was_never_heard_and_answers_now_keeps_its_place(
        self, standby: Standby
    ) -> None:
        (former,) = standby.queue_up_behind()
        standby.world.driver.answering = [former.session_id]
        standby.absent(standby.other, unheard=[former])
        assert standby.world.holder() == OTHER

    def test_one_that_leaves_goes_on_to_answer(self, standby: Standby) -> None:
        standby.world.driver.answering = [standby.other.session_id]
        standby.absent(standby.other, is_named=True)
        assert standby.world.holder() == CONTROLLER_ID


class TestLimits:
    def deposed(self, standby: Standby) -> None:
        """The other one takes the node back, as an elected replica may."""
        standby.lead(standby.other)
        standby.world.put(paths.CONTROLLER_EPOCH, b"20")
        standby.process(e.ControllerChange())
        assert standby.controller.active is None

    def test_who_was_deposed_does_not_depose_in_turn(self, standby: Standby) -> None:
        standby.absent(standby.other, is_named=True)
        self.deposed(standby)
        standby.absent(standby.other)
        assert standby.world.holder() == OTHER
        standby.world.driver.now_ms += 29_999
        standby.absent(standby.other)
        assert standby.world.holder() == OTHER

    def test_who_was_deposed_knows_it_from_its_place_in_the_queue_as_well(
        self, standby: Standby
    ) -> None:
        """What is heard first, the end of its place or that of its node, is chance."""
        standby.absent(standby.other, is_named=True)
        standby.process(e.Eligible())
        standby.lead(standby.other)
        standby.world.put(paths.CONTROLLER_EPOCH, b"20")
        standby.process(e.NotEligible())
        assert standby.controller.active is None
        standby.absent(standby.other)
        assert standby.world.holder() == OTHER

    def replaced_by(self, standby: Standby) -> InMemoryClient:
        """Another replica leads instead of this one, and stands before it in the queue."""
        standby.world.delete(standby.place)
        successor = standby.other = standby.queued()
        standby.place = queue_up(standby.world.driver.client)
        self.deposed(standby)
        return successor

    def test_two_dead_ones_are_followed_while_the_first_is_registered(
        self, standby: Standby
    ) -> None:
        first = standby.other
        standby.absent(dead=[first])
        assert standby.world.holder() == CONTROLLER_ID
        second = self.replaced_by(standby)
        standby.absent(dead=[first, second])
        assert standby.world.holder() == CONTROLLER_ID
        registered = standby.world.zookeeper.children(presence_path(ELECTION))
        assert set(registered) == {presence_name(x.session_id) for x in (first, second)}

    def test_one_that_leads_after_it_was_held_to_be_dead_is_waited_for(
        self, standby: Standby
    ) -> None:
        """Its connections end and its port refuses, but it lives, and has queued up again."""
        standby.absent(dead=[standby.other])
        standby.world.delete(standby.place)
        queue_up(standby.other)
        standby.place = queue_up(standby.world.driver.client)
        self.deposed(standby)
        standby.absent(dead=[standby.other])
        assert standby.world.holder() == OTHER
        standby.world.driver.now_ms += 30_000
        standby.absent(dead=[standby.other])
        assert standby.world.holder() == CONTROLLER_ID

    def test_one_that_is_named_does_not_wait(self, standby: Standby) -> None:
        standby.absent(standby.other)
        self.deposed(standby)
        standby.absent(standby.other, is_named=True)
        assert standby.world.holder() == CONTROLLER_ID

    def test_a_frozen_one_is_waited_for_after_another_frozen_one(self, standby: Standby) -> None:
        first = standby.other
        standby.absent(first)
        second = self.replaced_by(standby)
        standby.absent(first, second)
        assert standby.world.holder() == OTHER

    def test_a_frozen_one_is_waited_for_though_an_earlier_one_is_dead(
        self, standby: Standby
    ) -> None:
        first = standby.other
        standby.absent(dead=[first])
        second = self.replaced_by(standby)
        standby.absent(second, dead=[first])
        assert standby.world.holder() == OTHER


def test_one_that_has_failed_holds_off(standby: Standby) -> None:
    error = UnexpectedZooKeeperError("NOAUTH", paths.CONTROLLER)
    standby.world.driver.before = once(zk_effects.ReadData, raising(error))
    standby.process(e.Reelect())
    standby.absent(standby.other)
    assert standby.controller.active is None
    standby.process(e.Reelect())
    standby.absent(standby.other)
    assert standby.controller.active is not None
