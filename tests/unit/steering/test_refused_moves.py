"""A controller that refuses to be asked, or is not reached, has begun and ended nothing."""

from __future__ import annotations

import pytest

from regent.admin.commands import AlterPartitionReassignments, Rejected
from regent.model.errors import (
    BrokerQuestionError,
    BrokerRefusedError,
    BrokerSilentError,
    BrokerTooOldError,
    BrokerUnreachedError,
)
from regent.model.partition import TopicPartition
from regent.zk_data import paths
from regent.zk_data.throttles import THROTTLED_TOPICS
from tests.unit.steering.client_world import ClientWorld

T0 = TopicPartition("t", 0)
THROTTLED = "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("failure", "stays"),
    [
        (BrokerRefusedError("no right"), False),
        (BrokerTooOldError("no API 45"), False),
        (BrokerUnreachedError("no route"), False),
        (BrokerSilentError("no answer in time"), True),
        (BrokerQuestionError("it closed the connection"), True),
    ],
)
async def test_replicas_are_throttled_only_if_they_may_be_on_their_way(
    world: ClientWorld, failure: Exception, stays: bool
) -> None:
    world.controller.failure = failure
    (outcome,) = await world.submit(AlterPartitionReassignments({T0: (3, 2)}, throttle=1000))
    assert isinstance(outcome, Rejected)
    assert (THROTTLED in world.config(paths.topic_config("t"))) is stays
    assert bool(world.server.children(THROTTLED_TOPICS)) is stays


@pytest.mark.parametrize(
    "failure", [BrokerRefusedError("no right"), BrokerQuestionError("it closed the connection")]
)
async def test_what_goes_on_as_its_cancellation_is_not_answered_stays_throttled(
    world: ClientWorld, failure: Exception
) -> None:
    world.loop.set_serving(True)
    await world.submit(AlterPartitionReassignments({T0: (3, 2)}, throttle=1000))
    cancellation = AlterPartitionReassignments({T0: None}, throttle=1000)
    world.controller.failure = failure
    (outcome,) = await world.submit(cancellation)
    assert isinstance(outcome, Rejected)
    assert world.topic("t").assignments[0].is_being_reassigned
    assert THROTTLED in world.config(paths.topic_config("t"))
    world.controller.failure = None
    await world.submit(cancellation)
    await world.until(lambda: THROTTLED not in world.config(paths.topic_config("t")))
