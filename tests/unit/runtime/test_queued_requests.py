"""Requests of brokers and their answers: who would ask again at once waits for a refusal."""

from __future__ import annotations

import asyncio

import pytest

from regent.controller import events as e
from regent.controller.broker_requests import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrChangeResult,
)
from regent.controller.view import ClusterView
from regent.protocol.error_codes import (
    INVALID_UPDATE_VERSION,
    NONE,
    NOT_CONTROLLER,
    UNKNOWN_SERVER_ERROR,
)
from regent.runtime.queued_requests import QueuedRequests
from regent.runtime.topic_waits import TopicWaits
from tests.unit.runtime.worlds import KeptChannels


def of_partitions(*codes: int) -> AlterPartitionResponse:
    results = (IsrChangeResult("t", number, code) for number, code in enumerate(codes))
    return AlterPartitionResponse(NONE, tuple(results))


class Leader:
    """Asks, and is answered at once; time stands still until it is let go on."""

    def __init__(self, answer: AlterPartitionResponse) -> None:
        self._answer = answer
        self.goes_on = asyncio.Event()
        self.held = asyncio.Event()
        view = ClusterView()
        waits = TopicWaits(lambda: view, KeptChannels())
        self._requests = QueuedRequests(self._process, lambda: view, waits, pause=self._pause)

    async def ask(self) -> AlterPartitionResponse:
        return await self._requests.alter_partition(AlterPartitionRequest(1, 1, ()))

    def _process(self, event: e.ControllerEvent) -> None:
        assert isinstance(event, e.AlterPartitionReceived)
        (asked,) = event.asked
        asked.reply_to(self._answer)

    async def _pause(self, _: float) -> None:
        self.held.set()
        await self.goes_on.wait()


async def test_what_leaders_repeat_at_once_is_held_for_a_moment() -> None:
    answer = of_partitions(NONE, UNKNOWN_SERVER_ERROR)
    leader = Leader(answer)
    asking = asyncio.create_task(leader.ask())
    await leader.held.wait()
    assert not asking.done()
    leader.goes_on.set()
    assert await asking == answer


@pytest.mark.parametrize(
    "answer", [of_partitions(NONE, INVALID_UPDATE_VERSION), AlterPartitionResponse(NOT_CONTROLLER)]
)
async def test_every_other_answer_leaves_at_once(answer: AlterPartitionResponse) -> None:
    leader = Leader(answer)
    assert await leader.ask() == answer
    assert not leader.held.is_set()
