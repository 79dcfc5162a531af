"""Requests of brokers that shut down: several that wait are one set, with an answer for each."""

from __future__ import annotations

from regent.controller import effects
from regent.controller import events as e
from regent.controller.commands import (
    Accepted,
    ControlledShutdown,
    ControlledShutdownResult,
    Reason,
    Rejected,
)
from regent.controller.event_merging import EventQueue
from regent.controller.kafka_controller import KafkaController
from regent.model.errors import UnexpectedZooKeeperError
from regent.protocol.error_codes import BROKER_NOT_AVAILABLE, NONE
from tests.unit.controller.driving import once, raising
from tests.unit.controller.world import World, active_of

UNKNOWN_EPOCH = -1


def make_world() -> World:
    world = World()
    world.start_broker(1, 2, 3)
    world.create_led_topic("t", {0: (1, 2, 3)}, leader_epoch=0)
    return world


def ask(world: World, controller: KafkaController) -> dict[object, object]:
    """Brokers 1, 9 and 2 ask. The answers by the broker that asked."""
    queue = EventQueue()
    for broker_id in (1, 9, 2):
        command = ControlledShutdown(broker_id, UNKNOWN_EPOCH)
        queue.put(e.commands_received((command,), reply_to=broker_id), now=0)
    assert len(queue) == 1
    world.process(controller, queue.take().event)
    answers = {}
    for given in world.driver.answers:
        (answers[given.reply_to],) = given.answer
    return answers


def test_each_gets_its_own_answer() -> None:
    world = make_world()
    controller = world.active_controller()
    codes = {}
    for broker_id, answer in ask(world, controller).items():
        assert isinstance(answer, Accepted)
        assert isinstance(answer.result, ControlledShutdownResult)
        codes[broker_id] = answer.result.error_code
    assert codes == {1: NONE, 9: BROKER_NOT_AVAILABLE, 2: NONE}
    assert active_of(controller).context.shutting_down_broker_ids == {1, 2}


def refusals(answers: dict[object, object]) -> dict[object, Reason]:
    return {b: answer.reason for b, answer in answers.items() if isinstance(answer, Rejected)}


def test_a_process_that_is_not_the_controller_says_so_to_each() -> None:
    world = make_world()
    answers = ask(world, world.controller())
    assert refusals(answers) == dict.fromkeys((1, 9, 2), Reason.NOT_CONTROLLER)


def test_an_unexpected_error_ends_the_term_and_is_an_answer_to_each() -> None:
    world = make_world()
    controller = world.active_controller()
    error = UnexpectedZooKeeperError("SYSTEMERROR", "/brokers/topics/t")
    world.driver.before = once(effects.SendRequests, raising(error))
    answers = ask(world, controller)
    assert refusals(answers) == dict.fromkeys((1, 9, 2), Reason.NOT_CONTROLLER)
    assert controller.active is None
