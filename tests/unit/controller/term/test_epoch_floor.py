"""A ``/controller_epoch`` that is behind: ZooKeeper was restored, or somebody has edited it."""

from __future__ import annotations

from regent.controller import events as e
from regent.controller.kafka_controller import KafkaController
from regent.controller.term.epoch_floor import EpochFloor
from regent.protocol.error_codes import STALE_CONTROLLER_EPOCH
from regent.zk_data import paths
from regent.zk_data.decoding import INT32_MAX
from tests.unit.controller.processes import TIMER, epoch, led_cluster, update_metadata_response
from tests.unit.controller.world import T0, World, active_of

RAISED = (
    "Brokers or partitions know a later controller epoch than ZooKeeper: it is raised. Was "
    "ZooKeeper restored from a backup, or the node edited?"
)
MINUTE_MS = 60_000


def led(world: World, *, stored: int = 0) -> KafkaController:
    world.put(paths.CONTROLLER_EPOCH, str(stored).encode())
    controller = world.controller()
    world.process(controller, e.Startup())
    world.process(controller, e.Eligible())
    return controller


def wait_for_reelection(world: World, controller: KafkaController) -> None:
    assert controller.active is None
    assert TIMER in world.driver.timers
    world.process(controller, e.Reelect())


def test_an_epoch_that_was_set_back_under_us_is_raised_above_ours() -> None:
    world = led_cluster()
    controller = led(world, stored=40)
    assert epoch(controller) == 41
    world.put(paths.CONTROLLER_EPOCH, b"7")
    world.stop_broker(1)
    world.process(controller, e.BrokerChange())  # its first write is refused
    wait_for_reelection(world, controller)
    assert epoch(controller) == 42
    assert world.log.warnings(RAISED) == [{"path": "/controller_epoch", "stored": 7, "epoch": 42}]


def test_states_with_a_higher_epoch_take_one_more_election_and_then_have_leaders() -> None:
    """As after a restart of all brokers: none of them refuses anything."""
    world = led_cluster()
    world.set_state(T0, 1, (1, 2), leader_epoch=5, controller_epoch=40)
    world.stop_broker(1)
    controller = led(world)
    (problem,) = world.log.errors("Controller epoch too low, resigning")
    assert problem == {"reason": "states of partitions have controller epoch 40, ours is 1"}
    wait_for_reelection(world, controller)
    assert epoch(controller) == 41
    assert active_of(controller).context.cluster.leadership[T0].leader == 2


def test_an_epoch_that_no_election_can_exceed_costs_its_partition_only() -> None:
    world = led_cluster()
    world.set_state(T0, 1, (1, 2), leader_epoch=5, controller_epoch=INT32_MAX - 1)
    world.stop_broker(1)
    controller = led(world)
    assert epoch(controller) == 1
    assert world.log.errors("No leader elected")


def test_brokers_that_obey_a_higher_epoch_are_overtaken_in_strides() -> None:
    world = led_cluster()
    controller = led(world)
    epochs = [epoch(controller)]
    while epochs[-1] < 500:
        update_metadata_response(world, controller, STALE_CONTROLLER_EPOCH)
        wait_for_reelection(world, controller)
        epochs.append(epoch(controller))
    assert epochs == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


def test_refusals_far_apart_are_those_of_controllers_that_were_elected() -> None:
    floor = EpochFloor()
    for minute in (1, 12, 23):
        floor.note_refusal(7, minute * MINUTE_MS)
        assert floor.value == 7
    floor.note_refusal(7, 24 * MINUTE_MS)
    assert floor.value == 8
    floor.note_refusal(7, 0)  # a clock that was set back
    assert floor.value == 8


def test_epochs_near_the_highest_number_are_not_counted() -> None:
    floor = EpochFloor()
    floor.note(INT32_MAX - 1)
    assert floor.value == -1
    assert not floor.exceeds(INT32_MAX - 1, of_term=3)
    assert floor.exceeds(4, of_term=3)
    assert not floor.exceeds(3, of_term=3)
