"""Producer ids: a block for each broker, and none twice."""

from __future__ import annotations

import json

import pytest

from regent.controller import events as e
from regent.controller.active_controller import ActiveController
from regent.controller.broker_requests import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    Asked,
)
from regent.controller.producer_ids.allocate_producer_ids import process_allocate_producer_ids
from regent.protocol.error_codes import (
    BROKER_ID_NOT_REGISTERED,
    STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR,
)
from regent.zk_data import effects as zk_effects
from regent.zk_data import paths
from tests.unit.controller.driving import once
from tests.unit.controller.world import World, active_of


def cluster() -> tuple[World, ActiveController]:
    world = World()
    world.start_broker(1, 2)
    return world, world.fail_over()


def ask(
    world: World, active: ActiveController, *broker_ids: int, broker_epoch: int | None = None
) -> list[AllocateProducerIdsResponse]:
    brokers = active.context.cluster.brokers
    asked = [
        Asked(
            AllocateProducerIdsRequest(
                broker_id, brokers[broker_id].epoch if broker_epoch is None else broker_epoch
            ),
            broker_id,
        )
        for broker_id in broker_ids
    ]
    return world.run(process_allocate_producer_ids(active, asked))


def block(first_id: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(0, first_id, 1000)


def stored(world: World) -> dict[str, object]:
    node = world.node(paths.PRODUCER_ID_BLOCK)
    content: dict[str, object] = json.loads(node.data)
    return content


def test_the_first_block_begins_at_zero_and_the_next_where_it_ends() -> None:
    world, active = cluster()
    assert ask(world, active, 2) == [block(0)]
    assert stored(world) == {"version": 1, "broker": 2, "block_start": "0", "block_end": "999"}
    assert ask(world, active, 1) == [block(1000)]


def test_brokers_that_wait_together_get_a_block_each_out_of_one_write() -> None:
    world, active = cluster()
    world.driver.performed.clear()
    assert ask(world, active, 1, 2, 1) == [block(0), block(1000), block(2000)]
    writes = [x for x in world.driver.performed if isinstance(x, zk_effects.Write)]
    assert [len(write.operations) for write in writes] == [1]
    assert stored(world)["block_end"] == "2999"


def test_a_block_that_a_broker_took_meanwhile_is_not_given_again() -> None:
    world, active = cluster()
    taken = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    world.driver.before = once(zk_effects.Write, lambda: world.put(paths.PRODUCER_ID_BLOCK, taken))
    assert ask(world, active, 1) == [block(1000)]


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b'{"version":1,"broker":1,"block_start":"0","block_end":"many"}',
        b'{"version":1,"broker":1,"block_start":"0","block_end":"-2"}',
        b'{"version":1,"broker":1,"block_start":"0","block_end":"9223372036854775000"}',
    ],
)
def test_ids_that_are_not_known_to_be_free_are_not_given(data: bytes) -> None:
    world, active = cluster()
    world.put(paths.PRODUCER_ID_BLOCK, data)
    assert ask(world, active, 1) == [AllocateProducerIdsResponse(UNKNOWN_SERVER_ERROR)]
    assert world.node(paths.PRODUCER_ID_BLOCK).data == data


def test_an_unknown_broker_and_a_former_life_get_none() -> None:
    world, active = cluster()
    assert ask(world, active, 9, broker_epoch=1) == [
        AllocateProducerIdsResponse(BROKER_ID_NOT_REGISTERED)
    ]
    assert ask(world, active, 1, broker_epoch=1) == [
        AllocateProducerIdsResponse(STALE_BROKER_EPOCH)
    ]


@pytest.mark.parametrize(
    "data",
    [None, b"", b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'],
    ids=["deleted", "emptied", "set back"],
)
def test_what_was_given_is_not_given_again_where_the_node_was_set_back(data: bytes | None) -> None:
    world, active = cluster()
    assert ask(world, active, 1, 2) == [block(0), block(1000)]
    if data is None:
        world.delete(paths.PRODUCER_ID_BLOCK)
    else:
        world.put(paths.PRODUCER_ID_BLOCK, data)
    assert ask(world, active, 1) == [block(2000)]
    assert stored(world)["block_end"] == "2999"
    (warned,) = [r for r in world.log.records if r.message.startswith("Producer ids were given")]
    assert warned.fields["next_id"] == 2000
    assert ask(world, active, 1) == [block(3000)]


def test_what_a_former_term_of_the_process_gave_is_not_given_again() -> None:
    world = World()
    world.start_broker(1)
    controller = world.active_controller()
    assert ask(world, active_of(controller), 1) == [block(0)]
    world.process(controller, e.NotEligible())
    world.delete(paths.PRODUCER_ID_BLOCK)
    world.process(controller, e.Eligible())
    assert controller.active is not None
    assert ask(world, active_of(controller), 1) == [block(1000)]
