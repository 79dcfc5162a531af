"""Client mode where the address of ZooKeeper leads to another Kafka cluster."""

from __future__ import annotations

import pytest

from regent.admin.commands import DeleteTopic, Rejected
from regent.simulation.broker_znodes import encode_cluster_id
from regent.zk_data import paths
from regent.zk_data.operations import Create, Delete, SetData
from tests.unit.steering.client_world import ClientWorld


@pytest.mark.parametrize("is_gone", [False, True])
async def test_it_is_left_alone_until_the_known_one_is_back(is_gone: bool) -> None:
    """What is declared for one must not be done in the other."""
    async with ClientWorld() as world:
        await world.known()
        another = SetData(paths.CLUSTER_ID, encode_cluster_id("two"))
        world.admin.multi([Delete(paths.CLUSTER_ID) if is_gone else another])
        await world.until(lambda: world.loop.steering.refusal)
        assert "was one" in str(world.loop.steering.refusal)
        assert not world.view.may_act
        (outcome,) = await world.submit(DeleteTopic("t"))
        assert isinstance(outcome, Rejected)
        assert "this is not the cluster that Regent was started for" in outcome.message
        write = Create if is_gone else SetData
        world.admin.multi([write(paths.CLUSTER_ID, encode_cluster_id("one"))])
        await world.until(lambda: world.view.may_act)
        assert world.loop.steering.refusal is None
