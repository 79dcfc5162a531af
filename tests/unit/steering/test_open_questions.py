"""Client mode while the controller is asked something, and does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    CreateTopic,
    ElectionType,
    ElectLeaders,
    Outcome,
    PartitionResult,
    Reason,
    Rejected,
)
from regent.controller.commands import Command
from regent.model.partition import TopicPartition
from regent.services.open_questions import MAX_QUESTIONS
from regent.zk_data import paths
from sandbox.waiting import DEADLINE_S
from tests.unit.steering.client_world import ClientWorld

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
THROTTLED = "leader.replication.throttled.replicas"

MOVE = AlterPartitionReassignments({T0: (3, 2)}, throttle=1000)


@pytest.fixture
async def world() -> AsyncIterator[ClientWorld]:
    """A controller that hangs, and resources that are served."""
    world = ClientWorld(settle_interval_s=0.05)
    world.create_topic("t", (1, 2), (2, 1))
    async with world:
        await world.known()
        world.loop.set_serving(True)
        world.controller.is_silent = True
        yield world


async def asked(world: ClientWorld, *commands: Command) -> asyncio.Task[Sequence[Outcome]]:
    """Ask the controller, and wait until it has heard the question."""
    before = len(world.controller.asked)
    task = asyncio.create_task(world.submit(*commands))
    await world.until(lambda: len(world.controller.asked) > before)
    return task


def answer(world: ClientWorld) -> None:
    """The controller breaks off what it was asked, and answers from now on."""
    world.controller.is_silent = False
    world.controller.close()


async def test_everything_else_goes_on(world: ClientWorld) -> None:
    moving = await asked(world, MOVE)
    assert await world.submit(CreateTopic("new", 1, 1)) == (Accepted(),)
    world.create_topic("u", (1, 2))
    await world.until(lambda: {"new", "u"} <= world.view.topics.keys())
    elected = await world.submit(ElectLeaders(ElectionType.PREFERRED, (U0,)))
    assert elected == (Accepted({U0: PartitionResult()}),)
    assert not moving.done()
    answer(world)
    (outcome,) = await moving
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.BROKERS_UNAVAILABLE


async def test_what_is_asked_for_stays_throttled_though_nothing_moves_yet(
    world: ClientWorld,
) -> None:
    moving = await asked(world, MOVE)
    for name in ("u", "v", "w"):  # turns, and looks at all throttles
        await world.submit(CreateTopic(name, 1, 1))
        await world.until(lambda name=name: name in world.view.topics)  # type: ignore[misc]
    assert world.config(paths.topic_config("t"))[THROTTLED] == "0:2,0:1"
    answer(world)
    await moving
    await world.until(lambda: THROTTLED not in world.config(paths.topic_config("t")))


async def test_a_move_that_is_refused_takes_no_throttle_from_one_that_is_asked_for(
    world: ClientWorld,
) -> None:
    moving = await asked(world, MOVE)
    world.controller.is_silent = False
    invalid = AlterPartitionReassignments({T1: (99, 1)}, throttle=1000)
    (outcome,) = await world.submit(invalid)
    assert isinstance(outcome, Accepted)
    assert outcome.result[T1].error_code
    assert "0:2,0:1" in world.config(paths.topic_config("t"))[THROTTLED]
    answer(world)
    await moving


async def test_questions_are_bounded_and_hold_no_topic_up(world: ClientWorld) -> None:
    open_ = [await asked(world, MOVE) for _ in range(MAX_QUESTIONS)]
    (refused,) = await world.submit(MOVE)
    assert isinstance(refused, Rejected)
    assert f"{MAX_QUESTIONS} earlier questions" in refused.message
    assert await world.submit(CreateTopic("u", 1, 1)) == (Accepted(),)
    answer(world)
    await asyncio.gather(*open_)
    assert isinstance((await world.submit(MOVE))[0], Accepted)


async def test_the_end_of_the_process_waits_for_no_answer(world: ClientWorld) -> None:
    moving = await asked(world, MOVE)
    async with asyncio.timeout(DEADLINE_S):
        await world.__aexit__()
        (outcome,) = await moving
    assert isinstance(outcome, Rejected)
    assert "this process ends" in outcome.message


async def test_without_a_session_no_answer_is_waited_for(world: ClientWorld) -> None:
    moving = await asked(world, MOVE)
    world.connections.client.disconnect()
    world.connections.is_session_fenced = True
    (outcome,) = await moving
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.NOT_CONTROLLER
