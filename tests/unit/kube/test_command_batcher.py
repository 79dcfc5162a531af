from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    AlterTopicConfig,
    CreateTopic,
    DeleteTopic,
    DescribeTopicConfigs,
    ElectionType,
    ElectLeaders,
    Outcome,
    Reason,
    Rejected,
    TopicCommand,
)
from regent.controller.commands import Command
from regent.kube.command_batcher import (
    BATCH_SIZE_MAX,
    BATCH_WAIT_S,
    REST_MAX_S,
    CommandBatcher,
    CommandsOutdatedError,
)
from regent.model.partition import TopicPartition
from sandbox.waiting import DEADLINE_S
from tests.support.viewed_port import ViewedPort
from tests.unit.kube.jumping_clock import elapse, jumping


class Port(ViewedPort):
    """A controller that takes a second for each submission."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Sequence[Command]] = []
        self.answer: Callable[[Command], Outcome] = lambda _: Accepted()
        self.takes_s = 1.0

    async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
        self.batches.append(tuple(commands))
        await elapse(self.takes_s)
        return [self.answer(command) for command in commands]


async def _batcher(port: Port) -> CommandBatcher:
    batcher = CommandBatcher(port, timeout_s=30)
    task = asyncio.create_task(batcher.run())
    batcher.keep = task  # type: ignore[attr-defined] # as long as the batcher
    return batcher


@jumping
async def test_what_comes_while_one_is_under_way_goes_together() -> None:
    port = Port()
    batcher = await _batcher(port)
    first = asyncio.create_task(batcher.submit([DeleteTopic("first")]))
    await elapse(0.5)
    rest = [asyncio.create_task(batcher.submit([DeleteTopic(str(i))])) for i in range(50)]
    await asyncio.gather(first, *rest)
    assert batcher.batches == 2
    assert [len(batch) for batch in port.batches] == [1, 50]


@jumping
async def test_what_is_not_wanted_any_more_is_not_sent() -> None:
    port = Port()
    is_wanted = True
    batcher = await _batcher(port)
    first = asyncio.create_task(batcher.submit([DeleteTopic("first")]))
    await elapse(0.5)
    outdated = asyncio.create_task(
        batcher.submit([DeleteTopic("outdated")], is_wanted=lambda: is_wanted)
    )
    other = asyncio.create_task(batcher.submit([DeleteTopic("other")]))
    await elapse(0.1)
    is_wanted = False
    await asyncio.gather(first, other)
    with pytest.raises(CommandsOutdatedError):
        await outdated
    alone = batcher.submit([DeleteTopic("alone")], is_wanted=lambda: False)
    with pytest.raises(CommandsOutdatedError):
        await alone
    assert port.batches == [(DeleteTopic("first"),), (DeleteTopic("other"),)]


@jumping
async def test_who_cannot_say_what_is_wanted_keeps_nobody_else_waiting() -> None:
    port = Port()

    def is_wanted() -> bool:
        raise ZeroDivisionError

    batcher = await _batcher(port)
    defective = asyncio.create_task(batcher.submit([DeleteTopic("defective")], is_wanted=is_wanted))
    other = asyncio.create_task(batcher.submit([DeleteTopic("other")]))
    with pytest.raises(CommandsOutdatedError):
        await defective
    await other
    assert port.batches == [(DeleteTopic("other"),)]


@jumping
async def test_what_another_process_may_be_asked_for_holds_nothing_else_up() -> None:
    """In client mode a controller may hang. What a resource asks for together stays together."""
    port, tp = Port(), TopicPartition("t", 0)
    move, elect = AlterPartitionReassignments({tp: (1, 2)}), ElectLeaders(ElectionType.PREFERRED)
    batcher = await _batcher(port)
    port.takes_s = 20.0
    moving = asyncio.create_task(batcher.submit([move, elect]))
    await elapse(0.5)
    electing = asyncio.create_task(batcher.submit([elect]))
    await elapse(0.5)
    port.takes_s = 0.1
    async with asyncio.timeout(DEADLINE_S):
        assert await batcher.submit([DeleteTopic("other")]) == (Accepted(),)
    assert not moving.done()
    assert not electing.done()
    await asyncio.gather(moving, electing)
    assert port.batches == [(move, elect), (elect,), (DeleteTopic("other"),)]


@jumping
async def test_what_comes_soon_after_one_goes_together_however_long_it_took() -> None:
    port = Port()
    batcher, now = await _batcher(port), asyncio.get_running_loop().time
    waits: list[float] = []
    for port.takes_s, rest_s in ((0.01, 0.04), (1.0, REST_MAX_S)):
        await batcher.submit([DeleteTopic("first")])
        ended = now()
        early = asyncio.create_task(batcher.submit([DeleteTopic("early")]))
        await elapse(0.9 * rest_s)
        await asyncio.gather(early, batcher.submit([DeleteTopic("late")]))
        waits.append(now() - ended - port.takes_s - BATCH_WAIT_S)
        await elapse(60)
    await batcher.submit([DeleteTopic("alone")])
    assert waits == pytest.approx([0.04, REST_MAX_S])
    assert [len(batch) for batch in port.batches] == [1, 2, 1, 2, 1]


@jumping
async def test_everybody_gets_their_own_outcomes() -> None:
    port = Port()
    port.answer = lambda command: Rejected(Reason.UNKNOWN_TOPIC, getattr(command, "topic", ""))
    batcher = await _batcher(port)
    # In one batch, and sorted by kind there: the answers go back in the order of asking.
    mixed: list[list[TopicCommand]] = [
        [CreateTopic("a", 1), AlterTopicConfig("a")],
        [DeleteTopic("b")],
        [CreateTopic("c", 1), AlterTopicConfig("c"), DeleteTopic("c")],
    ]
    answers = await asyncio.gather(*(batcher.submit(commands) for commands in mixed))
    names = [
        [outcome.message for outcome in outcomes if isinstance(outcome, Rejected)]
        for outcomes in answers
    ]
    assert names == [["a", "a"], ["b"], ["c", "c", "c"]]
    (batch,) = port.batches
    kinds = [type(command).__name__ for command in batch]
    assert kinds == ["CreateTopic"] * 2 + ["AlterTopicConfig"] * 2 + ["DeleteTopic"] * 2


@jumping
async def test_readings_become_one() -> None:
    port = Port()
    port.answer = lambda command: (
        Accepted({"a": {"x": "1"}, "b": {}})
        if isinstance(command, DescribeTopicConfigs)
        else Accepted()
    )
    batcher = await _batcher(port)
    answers = await asyncio.gather(
        batcher.submit([DescribeTopicConfigs(("a",))]),
        batcher.submit([CreateTopic("z", 1)]),
        batcher.submit([DescribeTopicConfigs(("gone",))]),
        batcher.submit([DescribeTopicConfigs(("b", "a"))]),
    )
    assert list(answers) == [
        (Accepted({"a": {"x": "1"}}),),
        (Accepted(),),
        (Accepted({}),),
        (Accepted({"b": {}, "a": {"x": "1"}}),),
    ]
    assert port.batches == [(DescribeTopicConfigs(("a", "gone", "b")), CreateTopic("z", 1))]


@jumping
async def test_batches_are_bounded() -> None:
    port = Port()
    batcher = await _batcher(port)
    await asyncio.gather(
        *(batcher.submit([DeleteTopic(str(i))]) for i in range(BATCH_SIZE_MAX + 10))
    )
    assert [len(batch) for batch in port.batches] == [BATCH_SIZE_MAX, 10]


@jumping
async def test_a_controller_that_does_not_answer_refuses() -> None:
    port = Port()
    port.takes_s = 100
    batcher = await _batcher(port)
    (outcome,) = await batcher.submit([DeleteTopic("a")])
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.INTERNAL_ERROR
    assert "30 seconds" in outcome.message
    port.takes_s = 1
    assert await batcher.submit([DeleteTopic("a")]) == (Accepted(),)


@jumping
async def test_a_defect_is_logged_and_the_next_batch_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = Port()

    def fail(_: Command) -> Outcome:
        raise ZeroDivisionError

    port.answer = fail
    batcher = await _batcher(port)
    (outcome,) = await batcher.submit([DeleteTopic("a")])
    assert isinstance(outcome, Rejected)
    port.answer = lambda _: Accepted()
    assert await batcher.submit([DeleteTopic("a")]) == (Accepted(),)
    assert "ZeroDivisionError" in caplog.text


@jumping
async def test_a_cancellation_at_the_moment_of_the_answer_ends_it() -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    class Answering(Port):
        async def submit(self, commands: Sequence[Command]) -> Sequence[Outcome]:
            asked.set()
            await answered.wait()
            return [Accepted() for _ in commands]

    batcher = CommandBatcher(Answering(), timeout_s=30)
    running = asyncio.create_task(batcher.run())
    asking = asyncio.create_task(batcher.submit([DeleteTopic("a")]))
    await asked.wait()
    answered.set()
    running.cancel()
    await asyncio.wait([running, asking])
    assert running.cancelled()
