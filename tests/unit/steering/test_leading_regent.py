"""Client mode while a Regent is the controller."""

from __future__ import annotations

import asyncio

import pytest

from regent.admin.commands import (
    Accepted,
    AlterPartitionReassignments,
    PartitionResult,
    Reason,
    Rejected,
)
from regent.model.active_regent import ActiveRegent, RegentEndpoint
from regent.model.cluster import Address
from regent.model.errors import BrokerSilentError
from regent.model.partition import TopicPartition
from tests.unit.steering.client_world import ClientWorld

REGENT = 1_000_000_007
T0 = TopicPartition("t", 0)
MOVE = AlterPartitionReassignments({T0: (2, 3)})


async def elect(world: ClientWorld, endpoint: RegentEndpoint | None) -> None:
    world.elect(REGENT, epoch=8, regent=ActiveRegent(REGENT, endpoint=endpoint))
    await world.until(lambda: world.view.controller_id == REGENT)


@pytest.mark.parametrize(
    ("listeners", "address"),
    [({}, ("regent", 9095)), ({"PLAINTEXT": Address("inside", 9096)}, ("inside", 9096))],
)
async def test_leading_regent_is_asked_at_its_endpoint(
    world: ClientWorld, listeners: dict[str, Address], address: tuple[str, int]
) -> None:
    await elect(world, RegentEndpoint({"PLAINTEXT": Address("regent", 9095)}, listeners))
    assert await world.submit(MOVE) == (Accepted({T0: PartitionResult()}),)
    assert [asked for asked, _ in world.controller.asked] == [REGENT]
    (endpoint,) = world.controller.endpoints
    assert (endpoint.listener, endpoint.host, endpoint.port) == ("PLAINTEXT", *address)


@pytest.mark.parametrize(
    ("endpoint", "way_out"),
    [
        (None, "set its endpoint_port"),
        (RegentEndpoint({"SSL": Address("regent", 9095)}), "only ['SSL']"),
    ],
)
async def test_refusal_names_the_regent_without_a_usable_endpoint(
    world: ClientWorld, endpoint: RegentEndpoint | None, way_out: str
) -> None:
    await elect(world, endpoint)
    (outcome,) = await world.submit(MOVE)
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.BROKERS_UNAVAILABLE
    assert f"Regent {REGENT}" in outcome.message
    assert way_out in outcome.message
    assert world.controller.asked == []


async def test_refusal_names_the_silent_regent(world: ClientWorld) -> None:
    await elect(world, RegentEndpoint({"PLAINTEXT": Address("regent", 9095)}))
    world.controller.failure = BrokerSilentError("no answer within 10 s")
    (outcome,) = await world.submit(MOVE)
    assert isinstance(outcome, Rejected)
    assert f"Regent {REGENT}, which is the controller, was asked" in outcome.message


async def test_next_command_is_asked_of_the_broker_that_was_elected_meanwhile(
    world: ClientWorld,
) -> None:
    await elect(world, RegentEndpoint({"PLAINTEXT": Address("regent", 9095)}))
    world.controller.is_silent = True
    asking = asyncio.create_task(world.submit(MOVE, MOVE))
    await world.until(lambda: world.controller.asked)
    world.controller.is_silent = False
    world.elect(1, epoch=9)
    await asking
    assert [asked for asked, _ in world.controller.asked] == [REGENT, 1]
    assert world.controller.endpoints == world.view.brokers[1].endpoints
