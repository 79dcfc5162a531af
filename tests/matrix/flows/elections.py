"""Leaders are elected on request while their partitions are written to."""

from __future__ import annotations

import json

from regent.admin.commands import ElectionType
from regent.model.partition import TopicPartition
from regent.protocol.error_codes import ELECTION_NOT_NEEDED, NONE, PREFERRED_LEADER_NOT_AVAILABLE
from tests.matrix.flow import Flow, Stage
from tests.support.commands import elect
from tests.support.reassigning import request_reassignment, wait_until_moved
from tests.support.znodes import forget_follower

_REQUEST = "/admin/preferred_replica_election"


def _preferred(stage: Stage) -> None:
    """By the request node, and by a command; each time another replica was made the preferred."""
    cluster, tp = stage.cluster, TopicPartition(stage.topic, 0)

    def prefer(*replicas: int) -> None:
        leader = cluster.znodes.state(stage.topic)["leader"]
        assert leader != replicas[0]
        targets = {(tp.topic, tp.partition): list(replicas)}
        request_reassignment(cluster, targets)
        wait_until_moved(cluster, targets)
        assert cluster.znodes.state(stage.topic)["leader"] == leader

    with stage.regent():
        prefer(2, 3, 1)
        request = {"version": 1, "partitions": [{"topic": tp.topic, "partition": tp.partition}]}
        cluster.znodes.client.create(_REQUEST, json.dumps(request).encode())
        cluster.wait_for_leader(stage.topic, 2)
        cluster.wait(lambda: cluster.znodes.get(_REQUEST) is None, "the request to be removed")
        stage.producer.wait_for_progress()
        prefer(3, 1, 2)
    with stage.controller() as controller:
        (result,) = elect(controller, ElectionType.PREFERRED, tp).values()
        assert result.error_code == NONE
        assert cluster.znodes.state(stage.topic)["leader"] == 3
        (result,) = elect(controller, ElectionType.PREFERRED, tp).values()
        assert result.error_code == ELECTION_NOT_NEEDED
        stage.producer.wait_for_progress()


def _unclean(stage: Stage) -> None:
    """A follower that lacks nothing leads although it is not in the ISR: no record may be lost.

    The leader waits for the follower with every record, since it does not know that the follower
    was taken out of the ISR.
    """
    cluster, tp = stage.cluster, TopicPartition(stage.topic, 0)
    with stage.controller() as controller:
        forget_follower(cluster.znodes, stage.topic, leader=1)
        stage.producer.wait_for_progress()
        cluster.kill_broker(1)
        cluster.wait_for_leader(stage.topic, -1)
        assert cluster.znodes.state(stage.topic)["isr"] == [1]
        (result,) = elect(controller, ElectionType.PREFERRED, tp).values()
        assert result.error_code == PREFERRED_LEADER_NOT_AVAILABLE
        (result,) = elect(controller, ElectionType.UNCLEAN, tp).values()
        assert result.error_code == NONE
        state = cluster.znodes.state(stage.topic)
        assert (state["leader"], state["isr"]) == (2, [2])
        stage.producer.wait_for_progress()
        cluster.broker(1).start()
        cluster.wait_in_sync(stage.topic)
        stage.producer.wait_for_progress()


PREFERRED_ELECTION = Flow(name="preferred-election", run=_preferred)
UNCLEAN_ELECTION = Flow(name="unclean-election", run=_unclean, assignment={0: [1, 2]})
